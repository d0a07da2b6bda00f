/** Contents that are immutable lists of pieces: made, shared, let go and swept. The functions only read and write rows. */
import assert from 'node:assert';
import { after, type Key } from '../partition/keys.ts';
import type { Snapshot, Transaction } from '../partition/partition.ts';
import { changeReferences } from './refcounts.ts';
import {
  CELL_PARTS_MAX,
  type Content,
  type ContentId,
  type Counting,
  cellKey,
  cellOffset,
  cellsIn,
  contentKey,
  decodeCell,
  decodeContent,
  decodeTrash,
  encodeCell,
  encodeContent,
  encodeTrash,
  type Part,
  type Piece,
  type Trash,
  textOf,
  trashKey,
  uncountedIf,
} from './rows.ts';

export function addContent(tx: Transaction, account: bigint, id: ContentId, pieces: readonly Piece[]): void {
  const length = addCells(tx, account, id, 0, pieces);
  tx.put(contentKey(account, id), encodeContent({ kind: 'list', length, refs: 1 }));
}

/** Where the next piece begins. */
export function addCells(
  tx: Transaction,
  account: bigint,
  id: ContentId,
  offset: number,
  pieces: readonly Piece[],
): number {
  let end = offset;
  for (const cell of inCells(pieces)) {
    tx.put(cellKey(account, id, end), encodeCell(cell));
    for (const { length } of cell) end += length;
  }
  return end;
}

/** The key of the trash row. */
export function beginPending(tx: Transaction, account: bigint, id: ContentId, counting?: Counting): Key {
  const key = trashKey(account, tx.stamp, textOf(id));
  tx.put(key, encodeTrash({ ...trashOf(id, counting), pending: true }));
  return key;
}

export async function finishPending(
  tx: Transaction,
  account: bigint,
  id: ContentId,
  trash: Key,
  length: number,
): Promise<void> {
  const row = await tx.get(trash);
  const found = row && decodeTrash(row);
  if (found?.kind !== 'content' || !found.pending) throw new Error(`content ${textOf(id)} is not pending any more`);
  tx.remove(trash);
  tx.put(contentKey(account, id), encodeContent({ kind: 'list', length, refs: 1 }));
}

export function abandonPending(tx: Transaction, id: ContentId, trash: Key, counting?: Counting): void {
  tx.put(trash, encodeTrash(trashOf(id, counting)));
}

export async function shareContent(tx: Transaction, account: bigint, id: ContentId): Promise<void> {
  const content = await contentAt(tx, account, id);
  tx.put(contentKey(account, id), encodeContent({ ...content, refs: content.refs + 1 }));
}

export async function releaseContent(tx: Transaction, account: bigint, id: ContentId): Promise<void> {
  const content = await contentAt(tx, account, id);
  const refs = content.refs - 1;
  if (refs > 0) {
    tx.put(contentKey(account, id), encodeContent({ ...content, refs }));
    return;
  }
  trashContent(tx, account, id, 'counted');
}

export async function isUnshared(at: Snapshot, account: bigint, id: ContentId): Promise<boolean> {
  return (await contentAt(at, account, id)).refs === 1;
}

export function handOver(tx: Transaction, account: bigint, id: ContentId): void {
  trashContent(tx, account, id, 'uncounted');
}

function trashContent(tx: Transaction, account: bigint, id: ContentId, counting: Counting): void {
  tx.remove(contentKey(account, id));
  tx.put(trashKey(account, tx.stamp, textOf(id)), encodeTrash(trashOf(id, counting)));
}

function trashOf(id: ContentId, counting?: Counting): Trash & { kind: 'content' } {
  return { kind: 'content', content: textOf(id), ...uncountedIf(counting) };
}

/** A cell at a time, from the front; of one that is too large for a commit, the rest stays under its key. */
export async function sweepContent(tx: Transaction, account: bigint, id: ContentId): Promise<boolean> {
  assert(!(await tx.get(contentKey(account, id))), `content ${textOf(id)} is in use`);
  const [cell, next] = await tx.scan(cellsIn(account, id), { limit: 2 });
  if (!cell) return true;
  const gone: Part[] = [];
  const rest: Piece[] = [];
  for (const piece of decodeCell(cell)) {
    const room = CELL_PARTS_MAX - gone.length;
    gone.push(...piece.parts.slice(0, room));
    if (piece.parts.length > room) rest.push({ ...piece, parts: piece.parts.slice(room) });
  }
  await changeReferences(tx, account, gone, -1);
  if (rest.length > 0) tx.put(cell.key, encodeCell(rest));
  else tx.remove(cell.key);
  return rest.length === 0 && !next;
}

export async function piecesFrom(
  at: Snapshot,
  account: bigint,
  id: ContentId,
  offset: number,
): Promise<{ offset: number; pieces: Piece[] }> {
  const { from } = cellsIn(account, id);
  const [row] = await at.scan({ from, to: after(cellKey(account, id, offset)) }, { limit: 1, reverse: true });
  if (!row) return { offset, pieces: [] };
  const pieces = decodeCell(row);
  let begin = cellOffset(row.key);
  const first = pieces.findIndex(({ length }) => {
    if (begin + length > offset) return true;
    begin += length;
    return false;
  });
  return first < 0 ? { offset, pieces: [] } : { offset: begin, pieces: pieces.slice(first) };
}

async function contentAt(at: Snapshot, account: bigint, id: ContentId): Promise<Content> {
  const row = await at.get(contentKey(account, id));
  if (!row) throw new Error(`content ${textOf(id)} has no row, although it is in use`);
  return decodeContent(row);
}

function* inCells(pieces: readonly Piece[]): Iterable<readonly Piece[]> {
  let cell: Piece[] = [];
  let parts = 0;
  for (const piece of pieces) {
    assert(piece.length > 0, 'a piece without bytes');
    if (cell.length > 0 && parts + piece.parts.length > CELL_PARTS_MAX) {
      yield cell;
      [cell, parts] = [[], 0];
    }
    cell.push(piece);
    parts += piece.parts.length;
  }
  if (cell.length > 0) yield cell;
}
