/**
 * The tail of a content: short writes at its end, as pieces that their map page does not name yet. So an append writes the row of one piece,
 * and neither reads nor writes the page. The row of the content has the place where the tail begins. From there on it is divided into slots: a
 * piece begins with a slot, whose number it has, and has whole slots, or a part of the last one; so an append finds the piece that it continues.
 * A tail belongs to the current generation: what ends that, or changes other bytes, closes the tail first.
 */
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { encodeBytes } from '../../partition/values.ts';
import type { AccountId, Tail } from '../rows.ts';
import { hasRoomFor, MAP_PAGE_BYTES, type MapSegment, withSegment } from './map-page.ts';
import { decodeMapPage } from './map-page-codec.ts';
import { mapPageKey, type RangeMap, updateRanges } from './map-rows.ts';
import { MapPageFull, PageChanges } from './pages.ts';
import { decodePiece, type PagePlace, pieceKey, readPiece } from './pieces.ts';

/** The row of a piece that does not fill its slot is logged again with the write that continues it. */
const SLOT_BYTES = 4 << 10;
/** Of whole slots that one transaction writes: a read of a part of them reads the whole row. */
const PIECE_BYTES_MAX = 16 << 10;
/** Of a tail: reads look for all its pieces, and a page takes some tails before it is merged. */
const TAIL_BYTES_MAX = 64 << 10;
const TAIL_SLOTS = TAIL_BYTES_MAX / SLOT_BYTES;

/**
 * Writes bytes at an offset from which on nothing can be seen.
 * @returns true: the sweeper has work to do
 * @throws MapPageFull
 */
export async function appendToTail(
  tx: Transaction,
  account: AccountId,
  found: RangeMap,
  offset: number,
  bytes: Buffer,
): Promise<boolean> {
  let map = found;
  let needsSweep = false;
  for (let at = 0; at < bytes.length; ) {
    const page = offset + at - ((offset + at) % MAP_PAGE_BYTES);
    const from = offset + at - page;
    const length = Math.min(bytes.length - at, MAP_PAGE_BYTES - from, TAIL_BYTES_MAX);
    if (map.tail?.offset !== page || from + length - map.tail.from > TAIL_BYTES_MAX) {
      needsSweep = (await nameTail(tx, account, map)) || needsSweep;
      map = await openTail(tx, account, map, page, from);
    }
    await writePieces(tx, { account, id: map.id, offset: page }, map.tail!, from, bytes.subarray(at, at + length));
    at += length;
  }
  return needsSweep;
}

/** The page has room for all that the tail will have, so that it can be closed at any time. */
async function openTail(
  tx: Transaction,
  account: AccountId,
  map: RangeMap,
  offset: number,
  from: number,
): Promise<RangeMap> {
  const row = await tx.get(mapPageKey(account, map.id, offset));
  const page = row && decodeMapPage(row);
  if (page && !hasRoomFor(page.use, TAIL_SLOTS, TAIL_BYTES_MAX)) throw new MapPageFull(map.id, offset);
  const tail = { offset, from, piece: page?.nextPiece ?? 0 };
  await updateRanges(tx, account, map.id, { tail });
  return { ...map, tail };
}

async function writePieces(tx: Transaction, place: PagePlace, tail: Tail, from: number, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const begin = from + at - tail.from;
    const length = begin % SLOT_BYTES;
    const piece = tail.piece + (begin - length) / SLOT_BYTES;
    const part = bytes.subarray(at, at + (length > 0 ? SLOT_BYTES - length : pieceLength(bytes.length - at)));
    const value = length > 0 ? encodeBytes(await readPiece(tx, place, { piece, length }), part) : encodeBytes(part);
    tx.put(pieceKey(place.account, place.id, place.offset, piece), value);
    at += part.length;
  }
}

/** Of a piece that begins with so many bytes left to be written. */
function pieceLength(left: number): number {
  return left < SLOT_BYTES ? left : Math.min(left - (left % SLOT_BYTES), PIECE_BYTES_MAX);
}

/** Before a change of other bytes, and at the end of the generation. @returns the map without a tail */
export async function closeTail(tx: Transaction, account: AccountId, map: RangeMap): Promise<RangeMap> {
  if (!map.tail) return map;
  await nameTail(tx, account, map);
  await updateRanges(tx, account, map.id, { tail: undefined });
  return { ...map, tail: undefined };
}

/** The map page names the pieces of the tail. @returns true: the sweeper has work to do */
async function nameTail(tx: Transaction, account: AccountId, map: RangeMap): Promise<boolean> {
  const { tail, id } = map;
  if (!tail) return false;
  const added = await tailSegments(tx, account, map);
  const changes = new PageChanges(tx, account, map);
  await changes.rewrite(tail.offset, await tx.get(mapPageKey(account, id, tail.offset)), ({ segments }) => ({
    segments: withSegments(segments, added),
    nextPiece: tail.piece + TAIL_SLOTS,
  }));
  await changes.refs.apply(tx, account);
  return changes.hasQueued;
}

export function withSegments(segments: readonly MapSegment[], added: readonly MapSegment[]): readonly MapSegment[] {
  return added.reduce(withSegment, segments);
}

/** The tail as its page will name it. */
export async function tailSegments(
  at: Snapshot,
  account: AccountId,
  { tail, id, gen }: RangeMap,
): Promise<readonly MapSegment[]> {
  if (!tail) return [];
  const keys = Array.from({ length: TAIL_SLOTS }, (_, slot) => pieceKey(account, id, tail.offset, tail.piece + slot));
  const rows = await at.getMany(keys);
  const segments: MapSegment[] = [];
  for (let slot = 0, row = rows[0]; row; row = rows[slot]) {
    const { length } = decodePiece(row);
    const from = tail.from + slot * SLOT_BYTES;
    segments.push({ from, to: from + length, born: gen, source: { piece: tail.piece + slot, length }, at: 0 });
    const slots = length / SLOT_BYTES;
    if (slots < 1 || !Number.isInteger(slots)) break;
    slot += slots;
  }
  return segments;
}
