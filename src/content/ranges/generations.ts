/** Held generations: snapshots and long reads. While a generation is held, its bytes can be read, whatever is written. */
import { type Key, keyAfter } from '../../partition/keys.ts';
import type { Row, Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { RefcountChanges } from '../refcounts.ts';
import { type AccountId, type ContentId, formatId, type Id, parseId } from '../rows.ts';
import { type GroupPlace, isHeld } from './groups.ts';
import { decodeBorn, decodeMapPage, turnForPage } from './map-page-codec.ts';
import {
  encodeRangesDeletion,
  findRanges,
  heldIn,
  heldKey,
  mapPageKey,
  mapPagesIn,
  numbersAfterId,
  olderPageKey,
  olderPagesAt,
  olderPagesIn,
  queueRanges,
  type RangeMap,
  type RangesDeletion,
  updateRanges,
} from './map-rows.ts';
import { VersionSurvey } from './merge-plan.ts';
import { piecesIn, removePieces } from './pieces.ts';
import { closeTail } from './tail.ts';

type GenerationDeletion = RangesDeletion & { readonly kind: 'generation' };

/** Map pages of a slice: each may have 64 chunks and 128 pieces. Older ones have no rows of pieces. */
const SLICE_PAGES = 5;
const SLICE_OLDER_PAGES = 12;
const SLICE_PIECES = 500;

/** Takes a snapshot: the generation is held, and the next write belongs to the next one. @returns the held generation */
export async function holdGeneration(tx: Transaction, account: AccountId, map: RangeMap): Promise<number> {
  const { id, gen } = await closeTail(tx, account, map);
  tx.put(heldKey(account, id, gen), encodeValue({}));
  await updateRanges(tx, account, id, { gen: gen + 1, newest: gen });
  return gen;
}

/**
 * Holds the current generation for a read of this process, as a snapshot would.
 * @param read epoch of the process, and a number that it gives once
 * @returns the generation, and the entry of the deletion queue by which `endRead` releases it; the sweeper does if the process is evicted
 */
export async function holdForRead(
  tx: Transaction,
  account: AccountId,
  map: RangeMap,
  read: Id,
): Promise<{ gen: number; entry: Key }> {
  const { id, gen } = await closeTail(tx, account, map);
  tx.put(heldKey(account, id, gen, read), encodeValue({}));
  await updateRanges(tx, account, id, { gen: gen + 1, newest: gen });
  return { gen, entry: queueRanges(tx, account, { ...generationDeletion(id, gen, read), pending: true }) };
}

export function releaseRead(tx: Transaction, id: ContentId, gen: number, read: Id, entry: Key): void {
  tx.put(entry, encodeRangesDeletion(generationDeletion(id, gen, read)));
}

/** The snapshot is gone; the sweeper removes what only it needed, once the reads that may have found it have ended. */
export function releaseGeneration(tx: Transaction, account: AccountId, id: ContentId, gen: number): void {
  queueRanges(tx, account, generationDeletion(id, gen));
}

const generationDeletion = (id: ContentId, gen: number, read?: Id): GenerationDeletion => ({
  ...{ kind: 'generation', content: formatId(id), gen },
  ...(read && { read: formatId(read) }),
});

/** One slice of the release of a generation; true once only the entry is left. */
export async function sweepGeneration(
  tx: Transaction,
  account: AccountId,
  key: Key,
  deletion: GenerationDeletion,
): Promise<boolean> {
  const id = parseId(deletion.content);
  const content = await findRanges(tx, account, id);
  if (deletion.next === undefined) {
    tx.remove(heldKey(account, id, deletion.gen, deletion.read === undefined ? undefined : parseId(deletion.read)));
    if (!content) return true;
    const [last] = await tx.scan(heldIn(account, id), { limit: 1, reverse: true });
    const newest = last ? numbersAfterId(last.key)[0]! : 0;
    if (newest !== content.newest) await updateRanges(tx, account, id, { newest });
    tx.put(key, encodeRangesDeletion({ ...deletion, next: { offset: 0, died: 0 } }));
    return false;
  }
  if (!content) return true;
  const next = await sweepUnneeded(tx, account, { id, ...content }, deletion.next);
  if (!next) return true;
  tx.put(key, encodeRangesDeletion({ ...deletion, next }));
  return false;
}

type Cursor = NonNullable<GenerationDeletion['next']>;

/** Older pages first; then, if the current state has ended, the map pages. Undefined: nothing is left to look at. */
async function sweepUnneeded(
  tx: Transaction,
  account: AccountId,
  map: RangeMap,
  { offset, died }: Cursor,
): Promise<Cursor | undefined> {
  const { id, isEnded } = map;
  const isOlder = died !== undefined;
  const range = isOlder
    ? { from: olderPageKey(account, id, offset, died), to: olderPagesIn(account, id).to }
    : { from: mapPageKey(account, id, offset), to: mapPagesIn(account, id).to };
  const rows = await tx.scanUnchecked(range, { limit: isOlder ? SLICE_OLDER_PAGES : SLICE_PAGES });
  const refs = new RefcountChanges();
  const hidden = new Set<number>();
  let before: Row | undefined;
  for (const [i, row] of rows.entries()) {
    if (await removeUnneeded(tx, account, map, row, isOlder, refs)) {
      const neighbours = await findNeighbours(tx, account, map, row, before, rows[i + 1]);
      if (await showsAlone(row, neighbours)) hidden.add(numbersAfterId(row.key)[0]!);
    } else before = row;
  }
  await refs.apply(tx, account);
  // Chunks that a removed page showed may have little left that others show.
  for (const at of hidden) queueRanges(tx, account, { kind: 'merge', content: formatId(id), offset: at });
  const last = rows.at(-1);
  if (last) {
    const [at = 0, until] = numbersAfterId(last.key);
    return isOlder ? { offset: at, died: until! + 1 } : { offset: at + 1 };
  }
  return isOlder && isEnded ? { offset: 0 } : undefined;
}

async function removeUnneeded(
  tx: Transaction,
  account: AccountId,
  map: RangeMap,
  row: Row,
  isOlder: boolean,
  refs: RefcountChanges,
): Promise<boolean> {
  const [offset = 0, until] = numbersAfterId(row.key);
  const died = isOlder ? until : map.endedIn;
  tx.addReadCheck(row);
  if (await isHeld(tx, account, map, decodeBorn(row), died)) return false;
  tx.remove(row.key);
  await turnForPage(row);
  const { chunks, pieces } = decodeMapPage(row).use;
  if (!isOlder) removePieces(tx, { account, id: map.id, offset }, pieces, []);
  for (const { chunk } of chunks) refs.add(chunk, -1);
  return true;
}

/**
 * The versions of a page before and after one that is removed.
 * @param before a row that was looked at before it, and stays
 * @param after the row that is looked at after it
 */
async function findNeighbours(
  tx: Transaction,
  account: AccountId,
  { id }: RangeMap,
  { key }: Row,
  before: Row | undefined,
  after: Row | undefined,
): Promise<Row[]> {
  const [offset = 0, died] = numbersAfterId(key);
  const isHere = (row: Row | undefined) => row && numbersAfterId(row.key)[0] === offset;
  const { from, to } = olderPagesAt(account, id, offset);
  const [older] =
    died !== undefined && isHere(before)
      ? [before]
      : await tx.scanUnchecked({ from, to: died === undefined ? to : key }, { limit: 1, reverse: true });
  if (died === undefined) return older ? [older] : [];
  const [next] = after ? [after] : await tx.scanUnchecked({ from: keyAfter(key), to }, { limit: 1 });
  const [newer] = isHere(next) ? [next] : await tx.getUnchecked([mapPageKey(account, id, offset)]);
  return [older, newer].filter((row) => row !== undefined);
}

/**
 * Whether the version shows bytes of chunks that its neighbours do not. No other has them then: bytes that were overwritten are in no later version.
 */
async function showsAlone(row: Row, neighbours: readonly Row[]): Promise<boolean> {
  const survey = new VersionSurvey();
  for (const each of neighbours) {
    await turnForPage(each);
    survey.add(decodeMapPage(each), false);
  }
  const shown = survey.chunkBytes();
  survey.add(decodeMapPage(row), false);
  return survey.chunkBytes() > shown;
}

/**
 * No record names the current state any more, but generations are still held: map pages that none of them needs are to be removed.
 * Nothing can be written any more.
 * @param place of a content in a group: the generation of this write
 */
export async function endCurrent(
  tx: Transaction,
  account: AccountId,
  id: ContentId,
  place?: GroupPlace,
): Promise<void> {
  const content = await findRanges(tx, account, id);
  // With the last reference the whole content is gone.
  if (!content) return;
  await closeTail(tx, account, { id, ...content });
  const gen = Math.max(content.gen, place?.gen ?? 0);
  const ended = place && { gen, endedIn: gen, group: place.group };
  await updateRanges(tx, account, id, { isEnded: true, ...ended });
  queueRanges(tx, account, generationDeletion(id, gen));
}

/** One slice of a content in the deletion queue: its pages, then its held generations and short writes. True: nothing is left. */
export async function sweepRanges(tx: Transaction, account: AccountId, id: ContentId): Promise<boolean> {
  const refs = new RefcountChanges();
  for (const range of [mapPagesIn(account, id), olderPagesIn(account, id)]) {
    const rows = await tx.scanUnchecked(range, { limit: SLICE_OLDER_PAGES });
    if (rows.length === 0) continue;
    for (const row of rows) {
      tx.addReadCheck(row);
      tx.remove(row.key);
      await turnForPage(row);
      for (const { chunk } of decodeMapPage(row).use.chunks) refs.add(chunk, -1);
    }
    await refs.apply(tx, account);
    return false;
  }
  for (const range of [heldIn(account, id), piecesIn(account, id)]) {
    const rows = await tx.scanUnchecked(range, { limit: SLICE_PIECES, bytesMax: 1 << 20 });
    for (const { key } of rows) tx.remove(key);
    if (rows.length > 0) return false;
  }
  return true;
}
