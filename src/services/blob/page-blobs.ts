/** Page blobs: Put Blob, Put Page and Clear Page, Get Page Ranges. */
import { type ByteRange, NO_END } from '../../content/ranges/range-maps.ts';
import { parseId } from '../../content/rows.ts';
import type { Timestamp } from '../../partition/partition.ts';
import { parseRange, resolveRange } from '../../rules/byte-ranges.ts';
import {
  isPageBlobLength,
  judgeSequence,
  nextSequence,
  PUT_PAGE_BYTES_MAX,
  pageRange,
  pagesAround,
  type SequenceAction,
  type SequenceConditions,
} from '../../rules/page.ts';
import { judgeTierLength, type PageTier } from '../../rules/page-tiers.ts';
import { emitRanges } from '../common/content-reads.ts';
import { type FromUrlInput, withSource } from '../common/copy-sources.ts';
import type { StagedBytes } from '../common/staged-bytes.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { readBlob } from './blob-record.ts';
import { changeInPlace, findInPlace } from './change-in-place.ts';
import { findEarlierState } from './earlier-states.ts';
import { fail } from './errors.ts';
import { type CreateInPlaceInput, checkInPlaceInput, createInPlace, withBlobBytes } from './in-place-blobs.ts';
import {
  type BlobInput,
  checkLease,
  checkReadable,
  checkReadConditions,
  checkReadInput,
  parseSentPageTier,
  type SnapshotInput,
} from './request-checks.ts';
import type { Blob, ContainerId, ContentHeaders } from './rows.ts';
import { checkType, findContainerId, readTarget } from './write-target.ts';

export { PAGE_BLOB_BYTES_MAX, PUT_PAGE_BYTES_MAX, SEQUENCE_NUMBER_MAX } from '../../rules/page.ts';

export interface CreatePageBlobInput extends CreateInPlaceInput {
  readonly length: number;
  readonly sequenceNumber: bigint | undefined;
  readonly tier?: string | undefined;
}

/** Costs nothing until it is written, whatever its length. */
export function createPageBlob(storage: Storage, { tier: sentTier, ...input }: CreatePageBlobInput) {
  const { length, sequenceNumber = 0n } = input;
  checkLength(length);
  const tier = sentTier === undefined ? undefined : parseSentPageTier(sentTier);
  checkTierLength(tier, length);
  return createInPlace(storage, input, { length, page: { sequenceNumber, tier } });
}

function checkTierLength(tier: PageTier | undefined, length: number): void {
  const verdict = judgeTierLength(tier, length);
  if (verdict !== 'proceed') throw fail(verdict);
}

export function checkLength(length: number): void {
  if (!isPageBlobLength(length))
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-blob-content-length', HeaderValue: String(length) });
}

export interface WritePagesInput extends BlobInput {
  /** As sent. */
  readonly range: string;
  readonly sequence: SequenceConditions;
}

export interface PutPageInput extends WritePagesInput {
  readonly wantsMd5: boolean;
  readonly body: SentContent;
}

/** For Expect: 100-continue: fails as Put Page would, before the body is sent. */
export async function precheckPutPage(storage: Storage, input: Omit<PutPageInput, 'wantsMd5' | 'body'>): Promise<void> {
  const leaseId = checkInPlaceInput(storage, input);
  const range = checkPutRange(input);
  await storage.partition.read(async (at) => {
    const target = await readTarget(at, storage, input);
    const blob = findInPlace(at, target.blob, input.conditions, leaseId, 'page');
    checkPages(blob, range, input.sequence);
  });
}

export async function putPage(storage: Storage, input: PutPageInput) {
  const leaseId = checkInPlaceInput(storage, input);
  const range = checkPutRange(input);
  const { length } = input.body;
  if (length !== range.to - range.from)
    throw fail('InvalidHeaderValue', { HeaderName: 'Content-Length', HeaderValue: String(length) });
  return await withBlobBytes(
    storage,
    input,
    () => range.from,
    (bytes, containerId) => commitPages(storage, input, leaseId, range, bytes, containerId),
  );
}

export type PutPageFromUrlInput = Omit<PutPageInput, 'body'> & FromUrlInput;

export async function putPageFromUrl(storage: Storage, input: PutPageFromUrlInput) {
  const leaseId = checkInPlaceInput(storage, input);
  const range = checkPutRange(input);
  await precheckPutPage(storage, input);
  const containerId = await findContainerId(storage, input.container);
  const wanted = { md5: () => input.wantsMd5, inline: true, mapOffset: range.from };
  return withSource(storage, input, wanted, async (staged) => {
    const { md5, crc64, length } = staged;
    if (length !== range.to - range.from)
      throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-source-range', HeaderValue: String(input.sourceRange) });
    return { written: await commitPages(storage, input, leaseId, range, staged, containerId), md5, crc64 };
  });
}

/** @param leaseId in its canonical form */
function commitPages(
  storage: Storage,
  input: BlobInput & Pick<WritePagesInput, 'sequence'>,
  leaseId: string | undefined,
  range: ByteRange,
  bytes: StagedBytes,
  containerId: ContainerId | undefined,
) {
  return changeInPlace(storage, { input, leaseId, type: 'page', containerId, bytes }, (blob) => {
    const page = checkPages(blob, range, input.sequence);
    return { record: { page }, offset: range.from, result: page };
  });
}

/** A range of any length is one commit. */
export async function clearPages(storage: Storage, input: WritePagesInput) {
  const leaseId = checkInPlaceInput(storage, input);
  const range = parsePages(input.range);
  return changeInPlace(storage, { input, leaseId, type: 'page' }, (blob) => {
    const page = checkPages(blob, range, input.sequence);
    return {
      record: { page },
      write: (tx, map) => storage.content.ranges.clear(tx, storage.account, map, range.from, range.to),
      result: page,
    };
  });
}

function checkPutRange({ range: text }: Pick<WritePagesInput, 'range'>): ByteRange {
  const range = parsePages(text);
  if (range.to - range.from > PUT_PAGE_BYTES_MAX)
    throw fail('RequestBodyTooLarge', { MaxLimit: String(PUT_PAGE_BYTES_MAX) });
  return range;
}

function parsePages(text: string): ByteRange {
  const range = pageRange(parseRange(text));
  if (!range) throw fail('InvalidPageRange');
  return range;
}

function checkPages(blob: Blob, { to }: ByteRange, conditions: SequenceConditions) {
  const page = blob.page!;
  const verdict = judgeSequence(page.sequenceNumber, conditions);
  if (verdict !== 'proceed') throw fail(verdict);
  if (to > blob.length) throw fail('InvalidPageRange');
  return page;
}

export interface SetPagePropertiesInput extends BlobInput {
  /** Undefined: the headers of the blob stay as they are. */
  readonly content: ContentHeaders | undefined;
  /** Undefined: it stays. */
  readonly length: number | undefined;
  readonly sequence: SequenceAction | undefined;
}

/** Set Blob Properties that changes the length or the sequence number. A shorter blob loses its last pages, whatever it grows to later. */
export async function setPageProperties(storage: Storage, input: SetPagePropertiesInput) {
  const { content, length, sequence } = input;
  const leaseId = checkInPlaceInput(storage, input);
  if (length !== undefined) checkLength(length);
  const { ranges } = storage.content;
  return changeInPlace(storage, { input, leaseId, type: 'page' }, (blob) => {
    const sequenceNumber = sequence ? nextSequence(blob.page!.sequenceNumber, sequence) : blob.page!.sequenceNumber;
    if (typeof sequenceNumber === 'string') throw fail(sequenceNumber);
    const isShorter = length !== undefined && length < blob.length;
    if (length !== undefined) checkTierLength(blob.page!.tier, length);
    return {
      record: { page: { ...blob.page, sequenceNumber }, content, length },
      ...(isShorter && { write: (tx, map) => ranges.clear(tx, storage.account, map, length, NO_END) }),
      result: { sequenceNumber },
    };
  });
}

export interface GetPageRangesInput extends SnapshotInput {
  /** What changed since this snapshot; undefined: all that was written. */
  readonly since?: Timestamp | undefined;
  readonly range: string | undefined;
  /** The byte at which a page of the list begins. */
  readonly start: number | undefined;
  readonly resultsMax: number;
}

export type PageRange = ByteRange & { readonly isWritten?: boolean };

/**
 * The ranges that were written and not cleared, in order; neighbours are one.
 * @param emit gets them in slices: there may be millions
 * @returns the blob, and where the next page of the list begins; undefined: it is complete
 */
export async function getPageRanges(
  storage: Storage,
  input: GetPageRangesInput,
  emit: (ranges: readonly PageRange[]) => void,
): Promise<{ blob: Blob; next: number | undefined }> {
  const leaseId = checkReadInput(input);
  const { account, content, partition } = storage;
  return partition.read(async (at) => {
    const { blob } = await readBlob(at, storage, input.container, input.blob, input.snapshot);
    checkLease(at, blob.lease, leaseId, 'read', 'blob');
    checkReadConditions(blob, input.conditions);
    checkType(blob, 'page');
    checkReadable(blob);
    const map = await content.ranges.read(at, account, parseId(blob.contentId!));
    const within = listedRange(blob, input);
    const since = await findEarlierState(at, storage, input, blob);
    const ranges =
      since === undefined
        ? content.ranges.list(at, account, map, blob.generation, within)
        : content.ranges.compare(at, account, map, since, blob.generation, within);
    return { blob, next: await emitRanges(ranges, input.resultsMax, emit) };
  });
}

function listedRange(blob: Blob, { range: text, start = 0 }: GetPageRangesInput): ByteRange {
  // SDKs ask for the range from byte 0 on, which an empty blob does not have.
  const requested = text === undefined || blob.length === 0 ? undefined : parseRange(text);
  const range = requested && resolveRange(requested, blob.length);
  if (range === 'InvalidRange') throw fail('InvalidRange');
  const pages = range ? pagesAround(range.from, range.to + 1) : { from: 0, to: blob.length };
  return { from: Math.max(pages.from, start), to: pages.to };
}
