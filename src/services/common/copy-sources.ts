/**
 * The source of an operation "From URL", a blob or file of this server: one snapshot is read as Get Blob or Get File would read it. Within the
 * account the chunks of a block blob are shared and no bytes are written; otherwise, and where there are too many chunks for one commit, the
 * bytes are uploaded.
 */
import { type ContentRead, DanglingReference } from '../../content/content.ts';
import { INLINE_WRITE_BYTES_MAX } from '../../content/ranges/range-maps.ts';
import type { ChunkRef } from '../../content/rows.ts';
import { crc64Base64, md5Base64 } from '../../hashing/hasher.ts';
import type { Key } from '../../partition/keys.ts';
import { type Snapshot, type Timestamp, Unavailable } from '../../partition/partition.ts';
import { parseRange, resolveRange } from '../../rules/byte-ranges.ts';
import { type Conditions, judgeRead, type Validators } from '../../rules/conditions.ts';
import type { BlobSegment } from '../../rules/copy-slices.ts';
import type { Lease } from '../../rules/lease.ts';
import type { Tags } from '../../rules/tags.ts';
import type { ContentHeaders } from './content-headers.ts';
import { type PlannedRead, type PlanRanges, planOrHold } from './content-reads.ts';
import { commonErrors, errorFactory, StorageError } from './errors.ts';
import type { Metadata } from './names.ts';
import { withRemoteSource } from './remote-source.ts';
import type { RemoteRequest } from './remote-sources.ts';
import { copies } from './slice-sources.ts';
import type { AccountId, AccountScope, Storage } from './storage.ts';
import { checkHashes, type Hashes, type StagedContent, stageUpload, withUpload } from './upload.ts';

const fail = errorFactory(commonErrors);

/** Services whose resources can be copied. */
export type SourceService = 'blob' | 'file';

/** A blob or file of this server. */
export interface LocalSource {
  /** The URL as it was sent, without its signature. */
  readonly url: string;
  readonly service: SourceService;
  /** The container or share. */
  readonly container: string;
  /** The name of the blob, or the path of the file. */
  readonly item: string;
  /** Of the blob, or of the share of a file; undefined: the blob or file as it is. */
  readonly snapshot?: Timestamp | undefined;
  /** Of a file: whether dots at the end of a name belong to it. */
  readonly keepsTrailingDots?: boolean | undefined;
}

/** Where the source is, as its service reads it. */
export type SourcePlace = Pick<LocalSource, 'container' | 'item' | 'snapshot' | 'keepsTrailingDots'>;

/** A resource of another server. */
export interface RemoteSource {
  readonly url: string;
  readonly remote: Pick<RemoteRequest, 'url' | 'authorization' | 'version'>;
}

export type CopySource = LocalSource | RemoteSource;

/** What a copy takes from its source besides the bytes. */
export interface SourceProperties {
  readonly content: ContentHeaders;
  readonly metadata: Metadata;
  readonly tags: Tags;
}

/** A blob or file as one snapshot has it. */
export interface OpenableSource extends SourceProperties, Omit<Validators, 'tags'> {
  readonly length: number;
  readonly crc64?: string | undefined;
  readonly lease?: Lease | undefined;
  /**
   * Finds the bytes of a range.
   * @param sharedMax how many chunks may be shared; 0: none
   */
  open(
    read: ContentRead,
    range: { readonly from: number; readonly to: number },
    plan: PlanRanges,
    sharedMax: number,
  ): Promise<SourceBytes>;
  /** The next bytes of a running copy, as segments that are not to be divided. */
  slice(
    read: ContentRead,
    offset: number,
  ): Promise<{ readonly segments: readonly BlobSegment[]; readonly inline?: Buffer }>;
}

export interface SourceBytes {
  readonly isPlanned: boolean;
  /** The bytes, if they are in a row. */
  readonly inline?: Buffer | undefined;
  /** Undefined: the chunks cannot be shared. */
  readonly chunkRefs?: readonly ChunkRef[] | undefined;
}

/** What a service gives to those that copy from it. */
export interface SourceReader {
  /** Throws unless container and item can be names. */
  check(source: SourcePlace): void;
  queueKey(account: AccountId, source: SourcePlace): Key;
  /** Fails as a read of the source would. */
  find(at: Snapshot, content: Storage['content'], scope: AccountScope, source: SourcePlace): Promise<OpenableSource>;
}

export function readerOf({ sources }: Pick<Storage, 'sources'>, service: SourceService): SourceReader {
  const found = sources?.[service];
  if (!found) throw new Error(`sources of the ${service} service cannot be read here`);
  return found;
}

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

/** Of a source that gives no answer, or one that cannot be used. */
export function cannotVerify(message = 'Could not verify the copy source within the specified time.'): StorageError {
  return new StorageError('CannotVerifyCopySource', 409, message);
}

/** An error of the source has a code of its own, and the status that a read of the source would have. */
export function copySourceError(error: unknown): unknown {
  if (!(error instanceof StorageError) || error.status === 501 || error.code === 'OperationTimedOut') return error;
  // Of other servers: a client that follows or repeats such an answer would not reach the source.
  if (error.status >= 500 || (error.status < 400 && error.status !== 304)) return cannotVerify();
  return new StorageError('CannotVerifyCopySource', error.status, error.message, error.details);
}

interface OpenedSource extends PlannedRead, SourceBytes {
  readonly source: OpenableSource;
  readonly isPlanned: boolean;
  readonly isWhole: boolean;
  readonly length: number;
}

async function openSource(
  storage: Storage,
  input: FromUrlInput,
  named: LocalSource,
  read: ContentRead,
): Promise<OpenedSource> {
  const reader = readerOf(storage, named.service);
  try {
    reader.check(named);
    const { account } = sourceScope(storage);
    const queueKey = () => reader.queueKey(account, named);
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
  named: LocalSource,
  read: ContentRead,
  plan: PlanRanges,
): Promise<OpenedSource> {
  const scope = sourceScope(storage);
  const source = await readerOf(storage, named.service).find(at, storage.content, scope, named);
  checkReadConditions(source, sourceConditions);
  const { from, to } = sourceBounds(sourceRange, source.length);
  const length = to - from;
  if (length > sourceBytesMax) throw sourceTooLarge(sourceBytesMax);
  const sharedMax = scope.account === storage.account ? SHARED_CHUNKS_MAX : 0;
  const bytes = await source.open(read, { from, to }, plan, sharedMax);
  return { source, from, to, isWhole: length === source.length, length, ...bytes };
}

export function checkReadConditions(found: Validators, conditions: Conditions): void {
  const verdict = judgeRead(found, conditions);
  if (verdict !== 'proceed') throw fail(verdict);
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
  return cannotVerify(message);
}

const NO_BYTES = Buffer.alloc(0);

async function stage<T>(
  storage: Storage,
  { sourceHashes: expected }: FromUrlInput,
  wanted: WantedContent,
  { source, isWhole, length, inline: inRow, chunkRefs }: OpenedSource,
  read: ContentRead,
  use: (staged: StagedContent, source: SourceProperties) => Promise<T>,
): Promise<T> {
  const { content, account } = storage;
  const inline = inRow ?? read.inMemory ?? (length === 0 ? NO_BYTES : undefined);
  const md5 = expected.md5 !== undefined || wanted.md5(source);
  const { mapOffset } = wanted;
  if (inline && wanted.inline && (mapOffset === undefined || inline.length <= INLINE_WRITE_BYTES_MAX)) {
    const hashes = { md5: md5Base64(inline), crc64: crc64Base64(inline) };
    checkHashes(expected, hashes);
    return use({ ...hashes, length, inline }, source);
  }
  if (chunkRefs && mapOffset === undefined) {
    const known = isWhole && !md5 && source.crc64 !== undefined ? { md5: undefined, crc64: source.crc64 } : undefined;
    const hashes = known ?? (await content.hash(read.stream(), length, { md5 }));
    checkHashes(expected, hashes);
    const reference: StagedContent['reference'] = (tx) => content.increfChunks(tx, account, chunkRefs);
    return use({ ...hashes, length, chunkRefs, reference }, source);
  }
  const bytes = () => copies(inline ? [inline] : read.stream());
  return withUpload(storage, { length, expected, bytes }, { md5, mapOffset }, (uploaded) =>
    use(stageUpload(storage, uploaded), source),
  );
}
