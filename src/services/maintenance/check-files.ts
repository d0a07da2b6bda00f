/** The check of the rows of shares: entries and nodes lead to each other, and every directory to the root. */
import { decodeKey, keysUnder } from '../../partition/keys.ts';
import type { Row, Snapshot } from '../../partition/partition.ts';
import { decodeCounter } from '../../partition/values.ts';
import { isPending } from '../../rules/copy-state.ts';
import { foldName } from '../../rules/file/names.ts';
import { decodeRunningCopy } from '../common/running-copies.ts';
import { decodeEntry, decodeNode, type File, type Node } from '../file/node-rows.ts';
import { entryKey, type NodeId, nodeKey, ROOT, type ShareKeys } from '../file/rows.ts';
import { placeOfFileCopy } from '../file/running-copies.ts';
import { checkEntryInSnapshots, checkHistory, checkShareSnapshot } from './check-history.ts';
import { checkPermission, checkPermissionOf } from './check-permissions.ts';
import { checkRangesRecord } from './check-ranges.ts';
import { qualifiedId, type ReferenceCounts } from './check-refcounts.ts';

/** No path is longer: in a damaged share directories may be below each other. */
const DEPTH_MAX = 250;

/** Of a share that exists. */
export async function checkShareRow(at: Snapshot, row: Row, counts: ReferenceCounts): Promise<void> {
  const [account, type, id, ...rest] = decodeKey(row.key) as [bigint, string, bigint, ...(bigint | string)[]];
  const share = { account, id };
  switch (type) {
    case 'd':
      await checkEntry(at, row, share, rest[0] as NodeId, rest[1] as string);
      return checkEntryInSnapshots(at, row, share, counts);
    case 'j':
      return checkNode(at, decodeNode(rest[0] as NodeId, row), share, counts);
    case 'z':
      decodeCounter(row);
      if ((await findNode(at, share, rest[0] as NodeId))?.kind !== 'directory')
        throw new Error('times of no directory');
      return;
    case 'h':
      return checkHistory(at, row, share, counts);
    case 'S':
      return checkShareSnapshot(at, row, share);
    case 'P':
      return checkPermission(row);
    case 'R':
      return checkRunningFileCopy(at, row);
    default:
      decodeCounter(row);
  }
}

async function checkEntry(at: Snapshot, row: Row, share: ShareKeys, parent: NodeId, folded: string): Promise<void> {
  const { node: id, name, kind } = decodeEntry(row);
  if (foldName(name) !== folded) throw new Error(`its name is ${name}`);
  const node = await findNode(at, share, id);
  if (!node) throw new Error(`it leads to node ${id}, which does not exist`);
  if (node.kind !== kind) throw new Error(`it leads to a ${node.kind}, not a ${kind}`);
  if (node.parent !== parent || node.name !== name) throw new Error(`node ${id} has another name, or is elsewhere`);
  if ((await findNode(at, share, parent))?.kind !== 'directory') throw new Error('it is in no directory');
}

async function checkNode(at: Snapshot, node: Node, share: ShareKeys, counts: ReferenceCounts): Promise<void> {
  await checkPermissionOf(at, share, node);
  if (node.id === ROOT) {
    if (node.kind !== 'directory' || node.parent !== ROOT) throw new Error('the root is no directory');
    return;
  }
  const row = await at.get(entryKey(share, node.parent, foldName(node.name)));
  if (!row || decodeEntry(row).node !== node.id) throw new Error('no entry leads to it');
  if (node.kind !== 'file') return;
  checkFileContent(node, share, counts);
  await checkCopyRuns(at, node, share);
}

/** The file knows the copy, and has none of its bytes. */
async function checkRunningFileCopy(at: Snapshot, row: Row): Promise<void> {
  const place = placeOfFileCopy(row.key);
  const node = await findNode(at, { account: place.account, id: place.share }, place.node);
  const copy = node?.kind === 'file' ? node.copy : undefined;
  if (copy?.id !== decodeRunningCopy(row).id || !isPending(copy)) throw new Error('a copy that its file does not know');
}

async function checkCopyRuns(at: Snapshot, { id, copy }: File, share: ShareKeys): Promise<void> {
  if (!isPending(copy)) return;
  const [row] = await at.scan(keysUnder([share.account, 'R', share.id, id]), { limit: 1 });
  if (!row) throw new Error('a copy onto it is pending and does not run');
}

function checkFileContent({ contentId, length }: File, { account }: ShareKeys, counts: ReferenceCounts): void {
  if (contentId === undefined) return;
  const name = qualifiedId(account, contentId);
  const content = counts.contents.get(name)?.row;
  if (!content) throw new Error('its content is missing');
  if (content.kind !== 'ranges') throw new Error('its content does not change in place');
  checkRangesRecord({ length }, name, counts);
}

async function findNode(at: Snapshot, share: ShareKeys, id: NodeId): Promise<Node | undefined> {
  const row = await at.get(nodeKey(share, id));
  return row && decodeNode(id, row);
}

/** Of the node of a file whose content is damaged; undefined: it is another node. */
export async function damagedFilePath(
  at: Snapshot,
  row: Row,
  isDamaged: (contentId: string) => boolean,
): Promise<string | undefined> {
  const [account, , id, own] = decodeKey(row.key) as [bigint, string, bigint, bigint];
  let node: Node | undefined = decodeNode(own, row);
  if (node.kind !== 'file' || node.contentId === undefined || !isDamaged(node.contentId)) return undefined;
  const names: string[] = [];
  for (let depth = 0; node && node.id !== ROOT && depth < DEPTH_MAX; depth++) {
    names.unshift(node.name);
    node = await findNode(at, { account, id }, node.parent);
  }
  return names.join('/');
}

/** Shares without a root, and directories that the root does not lead to: each is in another one, and none in the root. */
export function treeFaults({ directories, containers, deletionQueue, accounts }: ReferenceCounts): string[] {
  const faults: string[] = [];
  for (const container of containers) {
    const [, account = '', id = ''] = /^(\d+)\/file (\d+)$/.exec(container) ?? [];
    if (id === '' || deletionQueue.has(`share ${account}/${id}`)) continue;
    const share = `share ${id} of ${accounts.get(BigInt(account)) ?? account}`;
    const parents = directories.get(`${account}/${id}`) ?? new Map<NodeId, NodeId>();
    if (!parents.has(ROOT)) faults.push(`${share}: it has no root`);
    const reached = new Set<NodeId>([ROOT]);
    for (const directory of parents.keys()) {
      const path = new Set<NodeId>();
      let at: NodeId | undefined = directory;
      while (at !== undefined && !reached.has(at) && !path.has(at)) {
        path.add(at);
        at = parents.get(at);
      }
      if (at !== undefined && path.has(at)) faults.push(`${share}: directory ${directory} is below itself`);
      for (const each of path) reached.add(each);
    }
  }
  return faults;
}

/** Of shares that are not being deleted, whose files go one after the other. */
export function usageMismatches({ usage, containers, accounts }: ReferenceCounts): string[] {
  return [...usage].flatMap(([name, { counted, bytes }]) => {
    const [account = '', share = ''] = name.split('/');
    if (counted === bytes || !containers.has(qualifiedId(account, `file ${share}`))) return [];
    const owner = accounts.get(BigInt(account)) ?? account;
    return [`share ${share} of ${owner}: it counts ${counted} bytes in use and its files have ${bytes}`];
  });
}
