/** The check of contents that change in place: their pages, their held generations and their voids. */
import { groupId } from '../../content/ranges/groups.ts';
import {
  applyVoid,
  isPiece,
  MAP_PAGE_BYTES,
  type MapPage,
  measure,
  type PieceSource,
  unseenVoids,
} from '../../content/ranges/map-page.ts';
import { decodeMapPage } from '../../content/ranges/map-page-codec.ts';
import { mapPageKey, numbersAfterId, type RangesDeletion } from '../../content/ranges/map-rows.ts';
import { decodePiece, pieceKey } from '../../content/ranges/pieces.ts';
import { tailSegments } from '../../content/ranges/tail.ts';
import { type ContentId, formatId, type RangesContent } from '../../content/rows.ts';
import { decodeKey } from '../../partition/keys.ts';
import type { Row, Snapshot } from '../../partition/partition.ts';
import { isPending } from '../../rules/copy-state.ts';
import type { BlobRecord } from '../blob/rows.ts';
import { shareGeneration } from '../file/generations.ts';
import { qualifiedId, type ReferenceCounts } from './check-refcounts.ts';

/** The content that a row belongs to, by its key. */
export const contentOfKey = (row: Row): string => {
  const [account, , epoch, number] = decodeKey(row.key);
  return qualifiedId(account, `${epoch}-${number}`);
};

/** Counts an entry of the deletion queue; the names are those that the checks below look for. */
export function countRangesDeletion(counts: ReferenceCounts, account: bigint, deletion: RangesDeletion): void {
  const content = qualifiedId(account, deletion.content);
  if (deletion.kind === 'void') counts.deletionQueue.add(`void ${content} ${deletion.number}`);
  if (deletion.kind === 'merge') counts.deletionQueue.add(`merge ${content} ${deletion.offset}`);
  if (deletion.kind !== 'generation') return;
  counts.deletionQueue.add(`generations of ${content}`);
  if (deletion.read === undefined) counts.deletionQueue.add(`generation ${content} ${deletion.gen}`);
  if (deletion.read !== undefined) counts.deletionQueue.add(`read ${content} ${deletion.gen} ${deletion.read}`);
}

export function countHeld({ held }: ReferenceCounts, row: Row): void {
  const content = contentOfKey(row);
  const known = held.get(content);
  const gen = numbersAfterId(row.key)[0]!;
  if (known) known.add(gen);
  else held.set(content, new Set([gen]));
}

export function checkRangesContent(content: RangesContent, name: string, counts: ReferenceCounts): void {
  const newest = Math.max(0, ...(counts.held.get(name) ?? []));
  if (content.newest !== newest) throw new Error(`its newest generation is ${newest}, not ${content.newest}`);
  if (newest >= content.gen) throw new Error(`generation ${newest} is held before it ends`);
  if (counts.current.has(name) === (content.isEnded === true))
    throw new Error(content.isEnded ? 'a state that has ended is in use' : 'its last state is in use by nothing');
  const known = counts.contents.get(name)!;
  if (content.first) known.end = Math.max(known.end, content.first.bytes.length);
  for (const { number } of content.voids)
    if (!counts.deletionQueue.has(`void ${name} ${number}`)) throw new Error(`void ${number} would never be applied`);
}

/**
 * An older state shows a generation that is held; the current one ends where its blob does, or as far as a copy has come. Of an incremental
 * copy it ends anywhere: nobody can read it.
 */
export function checkRangesRecord(
  { generation, length, copy, page }: Pick<BlobRecord, 'generation' | 'length' | 'copy' | 'page'>,
  name: string,
  { held, contents }: ReferenceCounts,
): void {
  if (generation !== undefined) {
    if (!held.get(name)?.has(generation)) throw new Error(`generation ${generation} of its content is not held`);
    return;
  }
  if (page?.incremental) return;
  const { end } = contents.get(name)!;
  const bytes = isPending(copy) ? (copy?.copied ?? 0) : length;
  if (end > bytes) throw new Error(`its content has ${end} bytes, not ${bytes}`);
}

/** What was appended has no holes. Only of a blob: its row comes after all that have its bytes. */
export function checkAppended(
  { append, contentId, length, copy }: Pick<BlobRecord, 'append' | 'contentId' | 'length' | 'copy'>,
  account: bigint,
  { contents }: ReferenceCounts,
): void {
  const end = contents.get(qualifiedId(account, contentId))?.end ?? 0;
  if (append && !isPending(copy) && end < length) throw new Error(`its content has ${end} bytes, not ${length}`);
}

/** Of a map page: also notes the last byte that is visible. */
export async function checkMapPage(at: Snapshot, row: Row, account: bigint, counts: ReferenceCounts): Promise<void> {
  const name = contentOfKey(row);
  const page = decodeMapPage(row);
  const [offset = 0] = numbersAfterId(row.key);
  const content = existingContent(name, counts);
  checkPage(page, account, counts);
  await checkPieces(at, row, page, account);
  if (!content) return;
  if (content.first) throw new Error('the bytes of its content are in the content itself');
  if (page.born > content.gen) throw new Error(`it was written in generation ${page.born}, after ${content.gen}`);
  if (page.isQueued && !counts.deletionQueue.has(`merge ${name} ${offset}`))
    throw new Error('it would never be merged');
  if (content.isEnded) {
    checkNeeded(name, content, page.born, content.endedIn ?? Infinity, counts);
    return;
  }
  let { segments } = page;
  for (const each of unseenVoids(page, offset, content.voids, content.gen))
    segments = applyVoid(segments, offset, each);
  const last = segments.findLast(({ source }) => source);
  const known = counts.contents.get(name)!;
  if (last) known.end = Math.max(known.end, offset + last.to);
}

export function checkOlderPage(row: Row, account: bigint, counts: ReferenceCounts): void {
  const name = contentOfKey(row);
  const page = decodeMapPage(row);
  const [, died = 0] = numbersAfterId(row.key);
  const content = existingContent(name, counts);
  checkPage(page, account, counts);
  if (!content) return;
  if (page.born >= died || died > content.gen) throw new Error(`it lived from ${page.born} to ${died}`);
  checkNeeded(name, content, page.born, died, counts);
}

export function checkHeld(row: Row, counts: ReferenceCounts): void {
  const name = contentOfKey(row);
  const [gen] = numbersAfterId(row.key);
  const [account, , of, share, , epoch, number] = decodeKey(row.key) as bigint[];
  // Of a group, which is a share.
  if (of === 0n) {
    checkHeldShare(qualifiedId(account, share), shareGeneration(gen!), counts);
    return;
  }
  existingContent(name, counts);
  const isReleased =
    counts.deletionQueue.has(`generation ${name} ${gen}`) || counts.deletionQueue.has(`content ${name}`);
  if (epoch === 0n && !isReleased && !counts.shown.has(`${name} ${gen}`))
    throw new Error('a generation that nothing shows');
  if (epoch !== 0n && !counts.deletionQueue.has(`read ${name} ${gen} ${formatId({ epoch: epoch!, number: number! })}`))
    throw new Error('a read that would never end');
}

function checkHeldShare(share: string, gen: number, { snapshotsOf, deletionQueue }: ReferenceCounts): void {
  const isSwept = deletionQueue.has(`snapshot ${share} ${gen}`) || deletionQueue.has(`share ${share}`);
  if (!isSwept && !snapshotsOf.get(share)?.includes(gen)) throw new Error('a generation that no snapshot shows');
}

/** Undefined: the content is to be swept. */
function existingContent(name: string, counts: ReferenceCounts): RangesContent | undefined {
  const content = counts.contents.get(name)?.row;
  if (content && content.kind !== 'ranges') throw new Error('its content does not change in place');
  if (!content && !counts.building.has(name) && !counts.deletionQueue.has(`content ${name}`))
    throw new Error('bytes of a content that does not exist');
  return content;
}

function checkNeeded(
  name: string,
  { group, since = 0 }: RangesContent,
  born: number,
  died: number,
  counts: ReferenceCounts,
): void {
  const share = qualifiedId(name.split('/')[0], group);
  if (counts.deletionQueue.has(`generations of ${name}`) || counts.deletionQueue.has(`history ${share}`)) return;
  if (counts.deletionQueue.has(`share ${share}`)) return;
  for (const gen of counts.held.get(name) ?? []) if (gen >= born && gen < died) return;
  const shared = counts.held.get(qualifiedId(name.split('/')[0], formatId(groupId(group ?? '0')))) ?? [];
  for (const gen of shared) if (gen >= Math.max(born, since) && gen < died) return;
  throw new Error('an older page that nothing needs');
}

/** The short writes of a map page are in rows of their own. */
async function checkPieces(at: Snapshot, row: Row, { segments }: MapPage, account: bigint): Promise<void> {
  const [offset = 0] = numbersAfterId(row.key);
  for (const { piece, length, bytes } of measure(segments).pieces) {
    if (bytes) continue;
    const found = await at.get(pieceKey(account, idInKey(row), offset, piece));
    if (!found) throw new Error(`bytes that it names are missing: piece ${piece}`);
    const stored = decodePiece(found).length;
    if (stored !== length) throw new Error(`bytes that it names have another length: piece ${piece} has ${stored}`);
  }
}

/** Of a content that is swept, the pages are removed first. */
export async function checkPiece(at: Snapshot, row: Row, account: bigint, counts: ReferenceCounts): Promise<void> {
  decodePiece(row);
  const name = contentOfKey(row);
  const content = existingContent(name, counts);
  if (!content) return;
  const [offset = 0, piece] = numbersAfterId(row.key);
  const id = idInKey(row);
  const page = await at.get(mapPageKey(account, id, offset));
  const named = page ? measure(decodeMapPage(page).segments).pieces : [];
  const isNamed = named.some((each) => each.piece === piece);
  const inTail = offset === content.tail?.offset ? await tailSegments(at, account, { id, ...content }) : [];
  const part = inTail.find(({ source }) => (source as PieceSource).piece === piece);
  if (isNamed === (part !== undefined)) throw new Error(isNamed ? 'bytes that two name' : 'bytes that nothing names');
  const known = counts.contents.get(name)!;
  if (part) known.end = Math.max(known.end, offset + part.to);
}

function idInKey(row: Row): ContentId {
  const [, , epoch, number] = decodeKey(row.key) as [bigint, string, bigint, bigint];
  return { epoch, number };
}

function checkPage({ born, segments }: MapPage, account: bigint, { chunks }: ReferenceCounts): void {
  let end = 0;
  for (const { from, to, born: since, source, at } of segments) {
    if (from < end || to <= from || to > MAP_PAGE_BYTES) throw new Error(`its byte ${from} is there twice`);
    if (since > born) throw new Error(`its byte ${from} was written in generation ${since}, after ${born}`);
    end = to;
    if (!source) continue;
    const length = isPiece(source)
      ? source.length
      : chunks.get(qualifiedId(account, formatId(source.chunk)))?.row?.length;
    const what = isPiece(source) ? `piece ${source.piece}` : `chunk ${formatId(source.chunk)}`;
    if (length === undefined) throw new Error(`bytes that it names are missing: ${what}`);
    if (at + to - from > length) throw new Error(`bytes that it names have another length: ${what} has ${length}`);
  }
}
