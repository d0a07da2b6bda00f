/**
 * After the deletion of a snapshot: the kept rows that no other snapshot sees are removed, in slices. A page of a file's content changes only
 * together with its node, so what is unneeded of a content is found by the kept nodes that are removed here.
 */
import { parseId } from '../../content/rows.ts';
import { decodeKey, type Key, keyAfter } from '../../partition/keys.ts';
import type { Row, Transaction } from '../../partition/partition.ts';
import { type Deletion, encodeDeletion } from '../common/deletions.ts';
import { contentGeneration, heldGenerations, releaseShareGeneration } from './generations.ts';
import { decodeKeptTimes, diedIn } from './history.ts';
import { decodeEntry, decodeNode, type File, nodeBorn } from './node-rows.ts';
import { dropFileContent, type FileContents } from './release-content.ts';
import { historyIn, type NodeId } from './rows.ts';

export type SnapshotDeletion = Deletion & { readonly kind: 'shareSnapshot' };

/** Each removed row may be a content less, and an entry of the deletion queue more. */
const SLICE_ROWS = 200;

/** One slice; true: only the entry is left. */
export async function sweepSnapshot(
  tx: Transaction,
  contents: FileContents,
  key: Key,
  deletion: SnapshotDeletion,
): Promise<boolean> {
  const share = { account: contents.account, id: BigInt(deletion.share) };
  const range = historyIn(share);
  if (deletion.next === undefined) {
    releaseShareGeneration(tx, share, deletion.gen);
    tx.put(key, encodeDeletion({ ...deletion, next: formatCursor(range.from) }));
    return false;
  }
  const rows = await tx.scanUnchecked({ from: parseCursor(deletion.next), to: range.to }, { limit: SLICE_ROWS });
  const last = rows.at(-1);
  if (!last) return true;
  // Unchecked: of the generations in which a kept row was current, none can be held again.
  const held = await heldGenerations(tx, share);
  for (const row of rows) {
    const { born, died } = lifeOf(row);
    if (held.some((gen) => gen >= born && gen < died)) continue;
    const file = await dropHistoryRow(tx, contents, row);
    if (file?.contentId === undefined) continue;
    const generation = contentGeneration(deletion.gen);
    contents.content.ranges.release(tx, contents.account, parseId(file.contentId), generation);
  }
  tx.put(key, encodeDeletion({ ...deletion, next: formatCursor(keyAfter(last.key)) }));
  return false;
}

const formatCursor = (key: Key): string => Buffer.from(key, 'latin1').toString('base64');
const parseCursor = (text: string): Key => Buffer.from(text, 'base64').toString('latin1') as Key;

/** The generations in which a kept row was current: from `born` to before `died`. */
export function lifeOf(row: Row): { readonly born: number; readonly died: number } {
  const [, , , kind] = decodeKey(row.key);
  const died = diedIn(row.key);
  if (kind === 'z') return { born: decodeKeptTimes(row).born, died };
  return { born: kind === 'd' ? decodeEntry(row).born : nodeBorn(row), died };
}

/** Removes a kept row, and its use of a content. The row is checked: another entry of the deletion queue may remove it, too. */
export async function dropHistoryRow(tx: Transaction, contents: FileContents, row: Row): Promise<File | undefined> {
  tx.addReadCheck(row);
  tx.remove(row.key);
  const [, , , kind, id] = decodeKey(row.key);
  if (kind !== 'j') return undefined;
  const node = decodeNode(id as NodeId, row);
  if (node.kind !== 'file') return undefined;
  await dropFileContent(tx, contents, node);
  return node;
}
