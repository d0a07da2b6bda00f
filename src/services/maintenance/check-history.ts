/**
 * The check of a share's snapshots: every generation that is held shows a whole tree, and nothing is kept that none of them shows. Only what the
 * sweeper has finished is judged.
 */
import { decodeKey } from '../../partition/keys.ts';
import type { Row, Snapshot } from '../../partition/partition.ts';
import { foldName } from '../../rules/file/names.ts';
import { heldGenerationKey } from '../file/generations.ts';
import { decodeKeptTimes, entryAt, nodeAt } from '../file/history.ts';
import { decodeEntry, decodeNode, type Entry, type Node } from '../file/node-rows.ts';
import { type NodeId, ROOT, type ShareKeys } from '../file/rows.ts';
import { decodeSnapshot } from '../file/snapshot-rows.ts';
import { lifeOf } from '../file/sweep-history.ts';
import { checkPermissionOf } from './check-permissions.ts';
import { qualifiedId, type ReferenceCounts } from './check-refcounts.ts';

export async function checkShareSnapshot(at: Snapshot, row: Row, share: ShareKeys): Promise<void> {
  const { gen } = decodeSnapshot(row);
  if (!(await at.get(heldGenerationKey(share, gen)))) throw new Error(`its generation ${gen} is not held`);
  if (!(await nodeAt(at, share, ROOT, gen))) throw new Error('it has no root');
}

/** A kept row. */
export async function checkHistory(at: Snapshot, row: Row, share: ShareKeys, counts: ReferenceCounts): Promise<void> {
  const { born, died } = lifeOf(row);
  if (born >= died) throw new Error(`it lived from ${born} to ${died}`);
  const shown = shownGenerations(share, counts).filter((gen) => gen >= born && gen < died);
  if (shown.length === 0 && !counts.deletionQueue.has(`history ${qualifiedId(share.account, share.id)}`))
    throw new Error('a kept row that no snapshot needs');
  const [, , , kind, ...rest] = decodeKey(row.key) as [bigint, string, bigint, string, NodeId, string | bigint];
  if (kind === 'z') {
    decodeKeptTimes(row);
    return;
  }
  const [id, folded] = rest as [NodeId, string];
  const node = kind === 'j' ? decodeNode(id, row) : undefined;
  if (node) await checkPermissionOf(at, share, node);
  if (node?.kind === 'file' && node.contentId !== undefined) checkContent(share, node.contentId, counts);
  for (const gen of shown) {
    if (node) await checkNodeSeen(at, share, node, gen);
    else await checkEntrySeen(at, share, { parent: id, folded, entry: decodeEntry(row) }, gen);
  }
}

/** An entry that has not changed since a snapshot: its node may have, and is kept then. */
export async function checkEntryInSnapshots(
  at: Snapshot,
  row: Row,
  share: ShareKeys,
  counts: ReferenceCounts,
): Promise<void> {
  const entry = decodeEntry(row);
  const [, , , parent, folded] = decodeKey(row.key) as [bigint, string, bigint, NodeId, string];
  for (const gen of shownGenerations(share, counts))
    if (gen >= entry.born) await checkEntrySeen(at, share, { parent, folded, entry }, gen);
}

const shownGenerations = ({ account, id }: ShareKeys, { snapshotsOf }: ReferenceCounts): readonly number[] =>
  snapshotsOf.get(qualifiedId(account, id)) ?? [];

function checkContent({ account }: ShareKeys, contentId: string, { contents }: ReferenceCounts): void {
  const content = contents.get(qualifiedId(account, contentId))?.row;
  if (!content) throw new Error('its content is missing');
  if (content.kind !== 'ranges') throw new Error('its content does not change in place');
}

interface FoundEntry {
  readonly parent: NodeId;
  readonly folded: string;
  readonly entry: Entry;
}

async function checkEntrySeen(
  at: Snapshot,
  share: ShareKeys,
  { parent, folded, entry }: FoundEntry,
  gen: number,
): Promise<void> {
  if (foldName(entry.name) !== folded) throw new Error(`its name is ${entry.name}`);
  const node = await nodeAt(at, share, entry.node, gen);
  if (!node) throw new Error(`in the snapshot of generation ${gen} it leads to no node`);
  if (node.parent !== parent || node.name !== entry.name || node.kind !== entry.kind)
    throw new Error(`in the snapshot of generation ${gen} its node has another name, or is elsewhere`);
}

async function checkNodeSeen(at: Snapshot, share: ShareKeys, node: Node, gen: number): Promise<void> {
  if (node.id === ROOT) return;
  const entry = await entryAt(at, share, node.parent, foldName(node.name), gen);
  if (entry?.node !== node.id) throw new Error(`in the snapshot of generation ${gen} no entry leads to it`);
}
