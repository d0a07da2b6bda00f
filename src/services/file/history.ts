/**
 * History: an entry, a node or the times of a directory as snapshots of the share see them. Before a row is overwritten or removed, its value
 * is kept if a held generation sees it, in the same commit. `namespace.ts` is the only writer of such rows.
 */
import { increfContent } from '../../content/manifest.ts';
import { parseId } from '../../content/rows.ts';
import { decodeKey, type Key } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeCounter, decodeValue, encodeValue } from '../../partition/values.ts';
import { isGenerationHeld } from './generations.ts';
import {
  decodeEntry,
  decodeNode,
  type Entry,
  encodeEntry,
  encodeNode,
  type Node,
  nodeBorn,
  recordFrom,
} from './node-rows.ts';
import { entryKey, historyIn, historyKey, type NodeId, nodeKey, type Share, type ShareKeys, timesKey } from './rows.ts';

/** The parts of a history key before `died`. */
const entryParts = (parent: NodeId, folded: string) => ['d', parent, folded] as const;
const nodeParts = (id: NodeId) => ['j', id] as const;
const timesParts = (id: NodeId) => ['z', id] as const;

const entryBorn = (row: Row): number => decodeEntry(row).born;

/** Whether the commit that overwrites a row of this generation has to keep it. */
async function isSeen(tx: Transaction, share: Share, born: number): Promise<boolean> {
  return born <= share.newest && (await isGenerationHeld(tx, share, born, share.gen));
}

export async function keepEntry(
  tx: Transaction,
  share: Share,
  parent: NodeId,
  folded: string,
  entry: Entry,
): Promise<void> {
  if (!(await isSeen(tx, share, entry.born))) return;
  tx.put(historyKey(share, entryParts(parent, folded), share.gen), encodeEntry(entry));
}

/** The kept row is one more user of the file's content. Its lease is none of the snapshot's. */
export async function keepNode(tx: Transaction, share: Share, node: Node): Promise<void> {
  if (!(await isSeen(tx, share, node.born))) return;
  const record = { ...recordFrom(node), etag: node.version, ...(node.kind === 'file' && { lease: undefined }) };
  const key = historyKey(share, nodeParts(node.id), share.gen);
  const isKept = (await tx.get(key)) !== undefined;
  tx.put(key, encodeNode(record));
  if (!isKept && node.kind === 'file' && node.contentId !== undefined)
    await increfContent(tx, share.account, parseId(node.contentId));
}

/**
 * Before the first change of a directory's times in this generation. The row of the times conflicts with no transaction; the absence of the kept row
 * is checked, so the value that is kept is the one before this generation.
 */
export async function keepTimes(tx: Transaction, share: Share, directory: NodeId): Promise<void> {
  if (share.newest === 0) return;
  const parts = timesParts(directory);
  const kept = historyKey(share, parts, share.gen);
  if (await tx.get(kept)) return;
  const [before] = await tx.scan({ from: historyIn(share, ...parts).from, to: kept }, { limit: 1, reverse: true });
  const born = before ? diedIn(before.key) : 0;
  if (!(await isGenerationHeld(tx, share, born, share.gen))) return;
  const key = timesKey(share, directory);
  const [row] = await tx.getUnchecked([key]);
  tx.put(kept, encodeTimes({ born, changed: decodeCounter(row) }));
}

/** The times of a directory's entries as they were from generation `born` on; 0: they had never changed. */
export interface KeptTimes {
  readonly born: number;
  readonly changed: bigint;
}

const encodeTimes = ({ born, changed }: KeptTimes): Buffer => encodeValue({ born, changed: changed.toString() });

export function decodeKeptTimes(row: Row): KeptTimes {
  const { born, changed } = decodeValue<{ born: number; changed: string }>(row);
  return { born, changed: BigInt(changed) };
}

/** The generation in which the row of a history key was overwritten or removed. */
export const diedIn = (key: Key): number => Number(decodeKey(key).at(-1));

/**
 * The kept row that generation `gen` sees, if one is kept.
 * @param born of the current row, if there is one: mostly it took the place of the row that is looked for, which died in that generation
 */
async function keptRow(
  at: Snapshot,
  share: ShareKeys,
  parts: readonly (string | bigint)[],
  gen: number,
  born: number | undefined,
  bornIn: (row: Row) => number,
): Promise<Row | undefined> {
  // A get is cheaper than a scan. At most one row of a name or node is current in a generation, so the one that was is found.
  const replaced = born === undefined ? undefined : await at.get(historyKey(share, parts, born));
  const row = replaced && bornIn(replaced) <= gen ? replaced : await firstKeptAfter(at, share, parts, gen);
  return row && bornIn(row) <= gen ? row : undefined;
}

/** The kept row with the least `died` above the generation. */
async function firstKeptAfter(
  at: Snapshot,
  share: ShareKeys,
  parts: readonly (string | bigint)[],
  gen: number,
): Promise<Row | undefined> {
  const range = { from: historyKey(share, parts, gen + 1), to: historyIn(share, ...parts).to };
  const [row] = await at.scan(range, { limit: 1 });
  return row;
}

/** @param gen of a snapshot; undefined: the current state */
export async function entryAt(
  at: Snapshot,
  share: ShareKeys,
  parent: NodeId,
  folded: string,
  gen: number | undefined,
): Promise<Entry | undefined> {
  const current = await at.get(entryKey(share, parent, folded));
  const entry = current && decodeEntry(current);
  // A row that was current in the generation has no younger kept one.
  if (gen === undefined || (entry && entry.born <= gen)) return entry;
  const kept = await keptRow(at, share, entryParts(parent, folded), gen, entry?.born, entryBorn);
  return kept && decodeEntry(kept);
}

/** @param row the current one, if there is one */
export async function nodeFrom(
  at: Snapshot,
  share: ShareKeys,
  id: NodeId,
  row: Row | undefined,
  gen: number | undefined,
): Promise<Node | undefined> {
  if (gen === undefined) return row && decodeNode(id, row);
  const born = row && nodeBorn(row);
  if (row && born! <= gen) return withoutLease(decodeNode(id, row));
  const kept = await keptRow(at, share, nodeParts(id), gen, born, nodeBorn);
  return kept && decodeNode(id, kept);
}

const withoutLease = (node: Node): Node => (node.kind === 'file' && node.lease ? { ...node, lease: undefined } : node);

export async function nodeAt(at: Snapshot, share: ShareKeys, id: NodeId, gen: number | undefined) {
  return nodeFrom(at, share, id, await at.get(nodeKey(share, id)), gen);
}

/** When the entries of a directory had changed last. */
export async function timesAt(at: Snapshot, share: ShareKeys, directory: NodeId, gen: number): Promise<bigint> {
  const kept = await firstKeptAfter(at, share, timesParts(directory), gen);
  return kept ? decodeKeptTimes(kept).changed : decodeCounter(await at.get(timesKey(share, directory)));
}
