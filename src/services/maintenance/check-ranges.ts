/** The check of contents that change in place: their pages, their held generations and their voids. */
import { applyVoid, isInline, MAP_PAGE_BYTES, type MapPage, unseenVoids } from '../../content/ranges/map-page.ts';
import { decodeMapPage } from '../../content/ranges/map-page-codec.ts';
import { numbersAfterId, type RangesDeletion } from '../../content/ranges/map-rows.ts';
import { formatId, type RangesContent } from '../../content/rows.ts';
import { decodeKey } from '../../partition/keys.ts';
import type { Row } from '../../partition/partition.ts';
import { isPending } from '../../rules/copy-state.ts';
import type { BlobRecord } from '../blob/rows.ts';
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

/** Of a map page: also notes the last byte that is visible. */
export function checkMapPage(row: Row, account: bigint, counts: ReferenceCounts): void {
  const name = contentOfKey(row);
  const page = decodeMapPage(row);
  const [offset = 0] = numbersAfterId(row.key);
  const content = existingContent(name, counts);
  checkPage(page, account, counts);
  if (!content) return;
  if (page.born > content.gen) throw new Error(`it was written in generation ${page.born}, after ${content.gen}`);
  if (page.isQueued && !counts.deletionQueue.has(`merge ${name} ${offset}`))
    throw new Error('it would never be merged');
  if (content.isEnded) {
    checkNeeded(name, page.born, Infinity, counts);
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
  checkNeeded(name, page.born, died, counts);
}

export function checkHeld(row: Row, counts: ReferenceCounts): void {
  const name = contentOfKey(row);
  const [gen] = numbersAfterId(row.key);
  const [, , , , , epoch, number] = decodeKey(row.key) as [bigint, string, bigint, bigint, bigint, bigint, bigint];
  existingContent(name, counts);
  const isReleased =
    counts.deletionQueue.has(`generation ${name} ${gen}`) || counts.deletionQueue.has(`content ${name}`);
  if (epoch === 0n && !isReleased && !counts.shown.has(`${name} ${gen}`))
    throw new Error('a generation that nothing shows');
  if (epoch !== 0n && !counts.deletionQueue.has(`read ${name} ${gen} ${formatId({ epoch, number })}`))
    throw new Error('a read that would never end');
}

/** Undefined: the content is to be swept. */
function existingContent(name: string, counts: ReferenceCounts): RangesContent | undefined {
  const content = counts.contents.get(name)?.row;
  if (content && content.kind !== 'ranges') throw new Error('its content does not change in place');
  if (!content && !counts.building.has(name) && !counts.deletionQueue.has(`content ${name}`))
    throw new Error('bytes of a content that does not exist');
  return content;
}

function checkNeeded(name: string, born: number, died: number, counts: ReferenceCounts): void {
  if (counts.deletionQueue.has(`generations of ${name}`)) return;
  for (const gen of counts.held.get(name) ?? []) if (gen >= born && gen < died) return;
  throw new Error('an older page that nothing needs');
}

function checkPage({ born, segments }: MapPage, account: bigint, { chunks }: ReferenceCounts): void {
  let end = 0;
  for (const { from, to, born: since, source, at } of segments) {
    if (from < end || to <= from || to > MAP_PAGE_BYTES) throw new Error(`its byte ${from} is there twice`);
    if (since > born) throw new Error(`its byte ${from} was written in generation ${since}, after ${born}`);
    end = to;
    if (!source) continue;
    const length = isInline(source)
      ? source.bytes.length
      : chunks.get(qualifiedId(account, formatId(source.chunk)))?.row?.length;
    const what = isInline(source) ? `piece ${source.piece}` : `chunk ${formatId(source.chunk)}`;
    if (length === undefined) throw new Error(`bytes that it names are missing: ${what}`);
    if (at + to - from > length) throw new Error(`bytes that it names have another length: ${what} has ${length}`);
  }
}
