/** The names of 8.3 characters of a share: shown to clients of SMB, and understood in their paths and searches. */
import type { Snapshot } from '../../partition/partition.ts';
import { foldName, type Name, type Path } from '../../rules/file/names.ts';
import { formatShortName, parseShortName } from '../../rules/file/short-names.ts';
import type { AccountScope } from '../common/storage.ts';
import { entryAt, nodeAt } from './history.ts';
import type { Node } from './node-rows.ts';
import { type NodeId, ROOT, readShare, type ShareKeys } from './rows.ts';

/** Ids are times: from the creation of the share on they have few digits. */
export function shortNameOf(shareId: bigint, { id, name }: Pick<Node, 'id' | 'name'>): string | undefined {
  return id === ROOT ? undefined : formatShortName(name, id - shareId);
}

/**
 * The path with the names of the nodes instead of short ones; what leads to nothing stays as it is.
 * @param seenAt the generation of a snapshot; undefined: the current state
 */
export async function withLongNames(
  at: Snapshot,
  scope: AccountScope,
  shareName: string,
  path: Path,
  seenAt?: number,
): Promise<Path> {
  if (path.every(({ folded }) => parseShortName(folded) === undefined)) return path;
  const share = await readShare(at, scope, shareName);
  const long: Name[] = [];
  let parent: NodeId = ROOT;
  for (const name of path) {
    const entry = await entryAt(at, share, parent, name.folded, seenAt);
    const node = entry ? undefined : await nodeByShortName(at, share, parent, name.folded, seenAt);
    if (!entry && !node) break;
    long.push(node ? { name: node.name, folded: foldName(node.name) } : name);
    parent = node?.id ?? entry!.node;
  }
  return [...long, ...path.slice(long.length)];
}

/** The node in this directory whose short name this is. */
export async function nodeByShortName(
  at: Snapshot,
  share: ShareKeys,
  directory: NodeId,
  folded: string,
  seenAt?: number,
): Promise<Node | undefined> {
  const number = parseShortName(folded);
  if (number === undefined) return undefined;
  const node = await nodeAt(at, share, share.id + number, seenAt);
  return node?.parent === directory && shortNameOf(share.id, node) === folded ? node : undefined;
}
