/**
 * The first short write of a range map stays in the row of the content until the next change: most small files are written once and read
 * whole, and so are one row to write, to read and to remove. Readers see a page with one segment.
 */
import type { Transaction } from '../../partition/partition.ts';
import type { AccountId, FirstBytes } from '../rows.ts';
import { emptyPage, type MapSegment } from './map-page.ts';
import { encodeMapPage } from './map-page-codec.ts';
import { mapPageKey, type RangeMap, updateRanges } from './map-rows.ts';
import { storePieces } from './pieces.ts';

export function firstSegments({ born, bytes }: FirstBytes): MapSegment[] {
  return [{ from: 0, to: bytes.length, born, source: { piece: 0, length: bytes.length, bytes }, at: 0 }];
}

/** Before a change: the bytes become a map page, with the generation of their write. */
export async function moveFirstToPage(tx: Transaction, account: AccountId, map: RangeMap): Promise<RangeMap> {
  const { first, id, lastVoid } = map;
  if (!first) return map;
  const segments = storePieces(tx, { account, id, offset: 0 }, firstSegments(first));
  const page = { ...emptyPage(tx.timestamp, first.born, lastVoid), nextPiece: 1, segments };
  tx.put(mapPageKey(account, id, 0), encodeMapPage(page));
  await updateRanges(tx, account, id, { first: undefined });
  return { ...map, first: undefined };
}
