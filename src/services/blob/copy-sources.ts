/**
 * The source of an operation "From URL", a blob of this server: one snapshot is read as Get Blob would read it. Within the account its chunks
 * are shared and no bytes are written; between accounts, and where there are too many chunks for one commit, the bytes are uploaded.
 */
import { type ContentRead, DanglingReference } from '../../content/content.ts';
import { INLINE_WRITE_BYTES_MAX } from '../../content/ranges/range-maps.ts';
import { type ChunkRef, parseId } from '../../content/rows.ts';
import { crc64Base64, md5Base64 } from '../../hashing/hasher.ts';
import { type Snapshot, type Timestamp, Unavailable } from '../../partition/partition.ts';
import { decodeBytes } from '../../partition/values.ts';
import { parseRange, resolveRange } from '../../rules/byte-ranges.ts';
import type { Conditions } from '../../rules/conditions.ts';
import { type PlannedRead, type PlanRanges, planOrHold } from '../common/content-reads.ts';
import { StorageError } from '../common/errors.ts';
import type { RemoteRequest } from '../common/remote-sources.ts';
import type { AccountScope, Storage } from '../common/storage.ts';
import { checkHashes, type Hashes, type StagedContent, stageUpload, withUpload } from '../common/upload.ts';
import { planBlobRead } from './blob-reads.ts';
import { readBlob } from './blob-record.ts';
import { fail } from './errors.ts';
import { withRemoteSource } from './remote-source.ts';
import {
  checkBlobName,
  checkContainerName,
  checkCopyable,
  checkOnline,
  checkReadConditions,
} from './request-checks.ts';
import { type Blob, changesInPlace, inlineKey, txQueueKey } from './rows.ts';
import { copies } from './slice-sources.ts';

/** A blob of this server. */
export interface LocalSource {
  /** The URL as it was sent, without its signature. */
  readonly url: string;
  readonly container: string;
  readonly blob: string;
  /** Undefined: the base blob. */
  readonly snapshot?: Timestamp | undefined;
}

/** A resource of another server. */
export interface RemoteSource {
  readonly url: string;
  readonly remote: Pick<RemoteRequest, 'url' | 'authorization' | 'version'>;
}

export type CopySource = LocalSource | RemoteSource;

/** What a copy takes from its source besides the bytes. */
export type SourceProperties = Pick<Blob, 'content' | 'metadata' | 'tags'>;

export interface FromUrlInput {
  readonly source: CopySource;
  readonly sourceConditions: Conditions;
  /** As sent; undefined: the whole blob. */
  readonly sourceRange?: string | undefined;
  /** The checksums that the request states for the bytes of the source. */
  readonly sourceHashes: Hashes;
  readonly sourceBytesMax: number;
}

/** What the operation needs to know besides the bytes. */
export interface WantedContent {
  readonly md5: (source: SourceProperties) => boolean;
  /** Whether the bytes of a small blob may be stored in a row again. */
  readonly inline: boolean;
  /** The offset of the first byte in a content that changes in place. Chunks are not shared then: a few bytes could keep a large one. */
  readonly mapOffset?: number;
}

/** Chunks that are shared at most: each is a row of the commit. A Put Blob of the greatest length has 625. */
const SHARED_CHUNKS_MAX = 640;
/** Attempts while the source is overwritten, and its chunks removed, between its snapshot and the commit. */
const ATTEMPTS_MAX = 20;

/** Calls `use` with the content of the source, which a transaction in it can name. */
export async function withSource<T>(
  storage: Storage,
  input: FromUrlInput,
  wanted: WantedContent,
  use: (staged: StagedContent, source: SourceProperties) => Promise<T>,
): Promise<T> {
  checkSourceRange(input);
  const { source: named } = input;
  if ('remote' in named) return withRemoteSource(storage, input, named, wanted, use);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    // Two reads: one ends with its stream, the other keeps the chunks until the commit is decided.
    const held = storage.content.beginRead();
    const read = storage.content.beginRead();
    try {
      const source = await openSource(storage, input, named, read);
      return await stage(storage, input, wanted, source, read, use);
    } catch (error) {
      if (!(error instanceof DanglingReference)) throw error;
    } finally {
      read.end();
      held.end();
    }
  }
  throw new Unavailable('Too many others write the source of the copy at the same time.');
}

/** A range that cannot be read is refused: without it, other bytes would be copied. */
function checkSourceRange({ sourceRange: text }: FromUrlInput): void {
  if (text === undefined || parseRange(text)) return;
  throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-source-range', HeaderValue: text });
}

/** An error of the source has a code of its own, and the status that a read of the source would have. */
export function copySourceError(error: unknown): unknown {
  if (!(error instanceof StorageError) || error.status === 501 || error.code === 'OperationTimedOut') return error;
  // Of other servers: a client that follows or repeats such an answer would not reach the source.
  if (error.status >= 500 || (error.status < 400 && error.status !== 304)) return fail('CannotVerifyCopySource');
  return new StorageError('CannotVerifyCopySource', error.status, error.message, error.details);
}

interface OpenedSource extends PlannedRead {
  readonly blob: Blob;
  readonly isWhole: boolean;
  readonly length: number;
  /** The bytes, if they are in a row. */
  readonly inline: Buffer | undefined;
  /** Undefined: the chunks cannot be shared. */
  readonly chunkRefs: readonly ChunkRef[] | undefined;
}

async function openSource(
  storage: Storage,
  input: FromUrlInput,
  named: LocalSource,
  read: ContentRead,
): Promise<OpenedSource> {
  const { container, blob } = named;
  try {
    checkContainerName(container);
    checkBlobName(blob);
    const { account } = sourceScope(storage);
    const queueKey = txQueueKey(account, container, blob);
    return await planOrHold({ ...storage, account }, queueKey, read, (at, plan) =>
      readSource(at, storage, input, named, read, plan),
    );
  } catch (error) {
    throw copySourceError(error);
  }
}

async function readSource(
  at: Snapshot,
  storage: Storage,
  { sourceConditions, sourceRange, sourceBytesMax }: FromUrlInput,
  source: LocalSource,
  read: ContentRead,
  plan: PlanRanges,
): Promise<OpenedSource> {
  const { content } = storage;
  const scope = sourceScope(storage);
  const { id, blob } = await readBlob(at, scope, source.container, source.blob, source.snapshot);
  checkReadConditions(blob, sourceConditions);
  checkOnline(at, blob);
  checkCopyable(blob);
  const { from, to } = sourceBounds(sourceRange, blob.length);
  const length = to - from;
  if (length > sourceBytesMax) throw sourceTooLarge(sourceBytesMax);
  const isWhole = length === blob.length;
  if (blob.contentId === undefined) {
    const row = await at.get(inlineKey(scope.account, id, source.blob, blob.snapshot));
    if (!row) throw new Error('a blob without its content');
    const inline = decodeBytes(row).subarray(from, to);
    return { blob, from, to, isWhole, length, inline, chunkRefs: undefined, isPlanned: true };
  }
  const contentId = parseId(blob.contentId);
  const isPlanned = await planBlobRead(at, { content, account: scope.account }, blob, read, { from, to }, plan);
  // Chunks of a content that changes in place are small, or hardly visible.
  const isShared = scope.account === storage.account && !changesInPlace(blob);
  const chunkRefs = isShared
    ? await content.chunkRefsIn(at, scope.account, contentId, from, to, SHARED_CHUNKS_MAX)
    : undefined;
  return { blob, from, to, isWhole, length, inline: undefined, chunkRefs, isPlanned };
}

/** The account of the source, with the limits of the source's own authorization. */
export function sourceScope({ account, granted }: Storage): AccountScope {
  const { source } = granted ?? {};
  return { account: source?.account ?? account, granted: { container: source?.container } };
}

export function sourceBounds(text: string | undefined, length: number): { from: number; to: number } {
  if (text === undefined) return { from: 0, to: length };
  const range = resolveRange(parseRange(text)!, length);
  if (range === 'InvalidRange') throw fail('InvalidRange');
  return { from: range.from, to: range.to + 1 };
}

export function sourceTooLarge(bytesMax: number): StorageError {
  const limit = `${bytesMax / 2 ** 20}MB`;
  const message = `The source request body for copy source is too large and exceeds the maximum permissible limit (${limit}).`;
  return fail('CannotVerifyCopySource', undefined, message);
}

async function stage<T>(
  storage: Storage,
  { sourceHashes: expected }: FromUrlInput,
  wanted: WantedContent,
  { blob, isWhole, length, inline, chunkRefs }: OpenedSource,
  read: ContentRead,
  use: (staged: StagedContent, source: SourceProperties) => Promise<T>,
): Promise<T> {
  const { content, account } = storage;
  const md5 = expected.md5 !== undefined || wanted.md5(blob);
  const { mapOffset } = wanted;
  if (inline && wanted.inline && (mapOffset === undefined || inline.length <= INLINE_WRITE_BYTES_MAX)) {
    const hashes = { md5: md5Base64(inline), crc64: crc64Base64(inline) };
    checkHashes(expected, hashes);
    return use({ ...hashes, length, inline }, blob);
  }
  if (chunkRefs && mapOffset === undefined) {
    const known = isWhole && !md5 && blob.crc64 !== undefined ? { md5: undefined, crc64: blob.crc64 } : undefined;
    const hashes = known ?? (await content.hash(read.stream(), length, { md5 }));
    checkHashes(expected, hashes);
    const reference: StagedContent['reference'] = (tx) => content.increfChunks(tx, account, chunkRefs);
    return use({ ...hashes, length, chunkRefs, reference }, blob);
  }
  const bytes = () => copies(inline ? [inline] : read.stream());
  return withUpload(storage, { length, expected, bytes }, { md5, mapOffset }, (uploaded) =>
    use(stageUpload(storage, uploaded), blob),
  );
}
