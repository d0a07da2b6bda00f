/**
 * Where operations of REST and opens of SMB meet: each operation on a file or directory checks the summary of its opens, in its commit, or in
 * its snapshot if it reads. Opens of a process that is no member of the store any more count as absent; so the owners that a summary names are
 * checked with it.
 */
import { ownerKey } from '../../content/membership/owner-rows.ts';
import { keyAfter } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { DELETE, judgeOperation, type Open, READ, type SmbAccess, WRITE } from '../../rules/file/share-mode.ts';
import { fail } from './errors.ts';
import { parentId, type ReadRow, type Target } from './namespace.ts';
import {
  countOpen,
  decodeOpens,
  encodeOpens,
  isDeletePending,
  type OpenGroup,
  type Opens,
  opensIn,
  opensKey,
  ownersOf,
  withoutOwners,
} from './open-rows.ts';
import type { NodeId, ShareKeys } from './rows.ts';

const SCAN_ROWS = 1_000;

/**
 * The opens of a node that its owners still hold; undefined: it is not open.
 * @param read their row, if it was read with the node
 */
export async function readOpens(
  at: Snapshot,
  share: ShareKeys,
  node: NodeId,
  read?: ReadRow,
): Promise<Opens | undefined> {
  const row = read ? read.row : await at.get(opensKey(share, node));
  return row && liveOpens(at, row);
}

/** Of a summary, what is left without the opens of processes that are gone. */
export async function liveOpens(at: Snapshot, row: Row): Promise<Opens | undefined> {
  const opens = decodeOpens(row);
  const live = withoutOwners(opens, await findGone(at, [...ownersOf(opens)]));
  return live.groups.length === 0 ? undefined : live;
}

/** Of these processes, the ones whose handles are gone with them. */
export async function findGone(at: Snapshot, owners: readonly bigint[]): Promise<ReadonlySet<bigint>> {
  const rows = await at.getMany(owners.map(ownerKey));
  return new Set(owners.filter((_, i) => !rows[i]));
}

/** The opens without one of them: a handle does not stand in its own way. */
export function othersThan(opens: Opens | undefined, own: (Open & { readonly owner: bigint }) | undefined) {
  const groups = opens?.groups ?? [];
  return own ? countOpen(groups, own, -1) : groups;
}

/** What an operation found on its path. */
interface UsedNode {
  readonly share: ShareKeys;
  readonly node: { readonly id: NodeId } | undefined;
  readonly opens?: ReadRow | undefined;
  /** In a snapshot, where nothing is open. */
  readonly seenAt?: number | undefined;
}

/**
 * Belongs into every operation on a file or directory, read or write. Returns the opens beside which it runs.
 * @param own the handle that the operation came through, if any
 */
export async function checkSharing(
  at: Snapshot,
  { share, node, opens: read, seenAt }: UsedNode,
  access: SmbAccess,
  own?: Open & { readonly owner: bigint },
): Promise<Opens | undefined> {
  if (!node || seenAt !== undefined) return undefined;
  const opens = await readOpens(at, share, node.id, read);
  if (!opens) return undefined;
  if (isDeletePending(opens)) throw fail('SMBDeletePending');
  const verdict = judgeOperation(access, othersThan(opens, own));
  if (verdict !== 'proceed') throw fail(verdict);
  return opens;
}

/** Belongs into everything that adds an entry to the directory: one that is to be deleted takes none. */
export async function checkTakesEntries(at: Snapshot, target: Target): Promise<void> {
  const { share, parentOpens: opens } = target;
  await checkSharing(at, { share, node: { id: parentId(target) }, opens }, 'none');
}

/**
 * Part of a rename of a directory. A check of all opens of the share, and no file is read. An open below the directory checks the entries of
 * its path, one of which the rename removes: so one of the two is first.
 */
export async function checkNothingOpenBelow(tx: Transaction, share: ShareKeys, directory: NodeId): Promise<void> {
  const { from: start, to } = opensIn(share);
  for (let from = start; ; ) {
    const rows = await tx.scan({ from, to }, { limit: SCAN_ROWS });
    for (const row of rows) {
      if (!decodeOpens(row).ancestors.includes(directory)) continue;
      if (await liveOpens(tx, row)) throw fail('SharingViolation');
    }
    if (rows.length < SCAN_ROWS) return;
    from = keyAfter(rows.at(-1)!.key);
  }
}

export async function hasOpens(at: Snapshot, share: ShareKeys): Promise<boolean> {
  return (await at.scan(opensIn(share), { limit: 1 })).length > 0;
}

/** Of these nodes, the ones that are marked for deletion. */
export async function findDeletePending(
  at: Snapshot,
  share: ShareKeys,
  nodes: readonly NodeId[],
): Promise<ReadonlySet<NodeId>> {
  const rows = await at.getMany(nodes.map((node) => opensKey(share, node)));
  const pending = new Set<NodeId>();
  for (const [i, row] of rows.entries()) if (row && isDeletePending(await liveOpens(at, row))) pending.add(nodes[i]!);
  return pending;
}

export function putOpens(tx: Transaction, share: ShareKeys, node: NodeId, opens: Opens): void {
  const key = opensKey(share, node);
  if (opens.groups.length === 0) tx.remove(key);
  else tx.put(key, encodeOpens(opens));
}

const ACCESS_NAMES: readonly (readonly [bit: number, name: string])[] = [
  [READ, 'Read'],
  [WRITE, 'Write'],
  [DELETE, 'Delete'],
];

/** As List Handles names them. */
export const accessNames = (access: number): string[] =>
  ACCESS_NAMES.filter(([bit]) => access & bit).map(([, name]) => name);

export const openCount = (groups: readonly OpenGroup[]): number => groups.reduce((sum, { count }) => sum + count, 0);
