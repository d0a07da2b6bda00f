/** A writable copy of one generation: a new content of the same chunks, made in slices. Of the bytes only short writes are copied. */
import { encodeKey, type Key } from '../../partition/keys.ts';
import type { Partition, Transaction } from '../../partition/partition.ts';
import { RefcountChanges } from '../refcounts.ts';
import { type AccountId, type ContentId, formatId } from '../rows.ts';
import { isPiece, type MapSegment, measure, withoutZeros } from './map-page.ts';
import { encodeMapPage } from './map-page-codec.ts';
import { mapPageKey, NEW_MAP, type RangeMap } from './map-rows.ts';
import { storePieces, withBytes } from './pieces.ts';
import { type PageSegments, pagesAt } from './reads.ts';

export interface ForkSource {
  readonly map: RangeMap;
  /** It stays held, or its reads are waited for, until the copy is finished. */
  readonly gen: number;
  readonly length: number;
}

const SLICE_PAGES = 100;
/** Chunks and pieces of a slice: each is a row of the commit, and a chunk may be one of another extent's live bytes. */
const SLICE_SOURCES = 400;
const SLICE_BYTES = 1 << 20;

/** The caller has begun the pending content, and finishes or abandons it. */
export async function forkPages(
  partition: Pick<Partition, 'transact'>,
  account: AccountId,
  copy: ContentId,
  source: ForkSource,
  check: (tx: Transaction) => Promise<void>,
): Promise<void> {
  const queueKey: Key = encodeKey([account, 'map', formatId(copy)]);
  for (let from = 0; from < source.length; ) {
    const { value } = await partition.transact(queueKey, async (tx) => {
      await check(tx);
      return forkSlice(tx, account, copy, source, from);
    });
    from = value;
  }
}

/** @returns where the next slice begins */
async function forkSlice(
  tx: Transaction,
  account: AccountId,
  copy: ContentId,
  { map, gen, length }: ForkSource,
  from: number,
): Promise<number> {
  const refs = new RefcountChanges();
  let [sources, bytes, pages, end] = [0, 0, 0, length];
  for await (const { offset, segments } of pagesAt(tx, account, map, gen, { from, to: length })) {
    if (sources >= SLICE_SOURCES || bytes >= SLICE_BYTES || pages >= SLICE_PAGES) {
      end = offset;
      break;
    }
    const found = copiedSegments({ offset, segments }, length);
    if (found.length === 0) continue;
    const withPieces = await withBytes(tx, { account, id: map.id, offset }, found);
    const copied = storePieces(tx, { account, id: copy, offset }, withPieces);
    const { chunks, pieces, pieceBytes } = measure(copied);
    for (const { chunk } of chunks) refs.add(chunk, 1);
    sources += chunks.length + pieces.length;
    bytes += pieceBytes;
    pages++;
    const { gen: born, lastVoid: seen } = NEW_MAP;
    const page = { ...{ born, seen }, made: tx.timestamp, isQueued: false, kept: 0, nextPiece: nextPieceAfter(copied) };
    tx.put(mapPageKey(account, copy, offset), encodeMapPage({ ...page, segments: copied }));
  }
  await refs.apply(tx, account);
  return end;
}

/** Without the history: nobody compares with a generation before the copy. */
function copiedSegments({ offset, segments }: PageSegments, length: number): MapSegment[] {
  return withoutZeros(segments)
    .filter(({ from }) => offset + from < length)
    .map((segment) => ({ ...segment, born: NEW_MAP.gen, to: Math.min(segment.to, length - offset) }));
}

function nextPieceAfter(segments: readonly MapSegment[]): number {
  return segments.reduce(
    (next, { source }) => (source && isPiece(source) ? Math.max(next, source.piece + 1) : next),
    0,
  );
}
