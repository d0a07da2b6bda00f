/**
 * Rows of short writes. Those of a map page have rows of their own, so that a write logs its bytes and a short page, not those of its neighbours.
 * They belong to that page alone: a copy of the page for older generations, or for another content, has the bytes again.
 */
import { encodeKey, type Key, keysUnder, type Range } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeBytes, encodeBytes } from '../../partition/values.ts';
import { type AccountId, type ContentId, formatId } from '../rows.ts';
import { isPiece, type MapSegment, measure, type PieceSource } from './map-page.ts';

export const pieceKey = (account: AccountId, { epoch, number }: ContentId, offset: number, piece: number): Key =>
  encodeKey([account, 'I', epoch, number, offset, piece]);
export const piecesIn = (account: AccountId, { epoch, number }: ContentId): Range =>
  keysUnder([account, 'I', epoch, number]);

export const decodePiece = (row: Pick<Row, 'value'>): Buffer => decodeBytes(row);

/** A map page of a content. */
export interface PagePlace {
  readonly account: AccountId;
  readonly id: ContentId;
  readonly offset: number;
}

/** A new piece, or one that is continued: with these bytes before the new ones. */
export function makePiece(piece: number, bytes: Buffer, before?: Buffer): PieceSource {
  const row = before ? encodeBytes(before, bytes) : encodeBytes(bytes);
  return { piece, length: bytes.length + (before?.length ?? 0), row };
}

/** The bytes of a piece that has a row. */
export async function readPiece(at: Snapshot, place: PagePlace, source: PieceSource): Promise<Buffer> {
  return bytesFrom(source, place.id, await at.get(keyOf(place, source.piece)));
}

/** The bytes of pieces that have rows. */
export async function readPieces(
  at: Snapshot,
  place: PagePlace,
  pieces: readonly PieceSource[],
): Promise<Map<PieceSource, Buffer>> {
  const rows = await at.getMany(pieces.map(({ piece }) => keyOf(place, piece)));
  return new Map(pieces.map((source, i) => [source, bytesFrom(source, place.id, rows[i])]));
}

export function bytesFrom({ piece, length }: PieceSource, id: ContentId, row: Row | undefined): Buffer {
  const bytes = row && decodePiece(row);
  if (bytes?.length !== length) throw new Error(`piece ${piece} of content ${formatId(id)} has ${bytes?.length} bytes`);
  return bytes;
}

/** The segments with the bytes of all their pieces. */
export async function withBytes(
  at: Snapshot,
  place: PagePlace,
  segments: readonly MapSegment[],
): Promise<readonly MapSegment[]> {
  const stored = measure(segments).pieces.filter(({ bytes }) => !bytes);
  if (stored.length === 0) return segments;
  const found = await readPieces(at, place, stored);
  return replaceSources(segments, new Map([...found].map(([source, bytes]) => [source, { ...source, bytes }])));
}

/** Writes rows for the pieces that have none yet, and returns the segments without their bytes. */
export function storePieces(tx: Transaction, place: PagePlace, segments: readonly MapSegment[]): readonly MapSegment[] {
  let stored: Map<PieceSource, PieceSource> | undefined;
  for (const { source } of segments) {
    // Nearly all pieces of a page have their rows.
    if (!source || !isPiece(source) || (!source.row && !source.bytes) || stored?.has(source)) continue;
    const { piece, length, bytes, row = encodeBytes(bytes!) } = source;
    tx.put(keyOf(place, piece), row);
    stored ??= new Map();
    stored.set(source, { piece, length });
  }
  return stored ? replaceSources(segments, stored) : segments;
}

/** Removes the rows of pieces that no segment of the page names any more. */
export function removePieces(
  tx: Transaction,
  place: PagePlace,
  before: readonly PieceSource[],
  left: readonly PieceSource[],
): void {
  // Most writes add a piece somewhere, or continue one: the others are left in their order.
  let found = 0;
  for (let i = 0; i < left.length && found < before.length; i++) if (left[i]!.piece === before[found]!.piece) found++;
  if (found === before.length) return;
  const numbers = new Set(left.map(({ piece }) => piece));
  for (const { piece, bytes } of before) if (!bytes && !numbers.has(piece)) tx.remove(keyOf(place, piece));
}

function replaceSources(segments: readonly MapSegment[], by: ReadonlyMap<object, PieceSource>): MapSegment[] {
  return segments.map((segment) => {
    const source = segment.source && by.get(segment.source);
    if (!source) return segment;
    const { from, to, born, at } = segment;
    return { from, to, born, source, at };
  });
}

const keyOf = ({ account, id, offset }: PagePlace, piece: number): Key => pieceKey(account, id, offset, piece);
