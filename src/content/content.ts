/** Content store, as the services see it: uploads before the transaction, reference counts inside it, downloads after it. */
import type { ChunkLocation } from '../extents/extents.ts';
import type { Key } from '../partition/keys.ts';
import type { Snapshot, Transaction } from '../partition/partition.ts';
import type { RangeMap } from './ranges/map-rows.ts';
import type { RangeMaps } from './ranges/range-maps.ts';
import type { AccountId, ChunkRef, Content, ContentId, RefCounting, Segment } from './rows.ts';

export interface ContentHashes {
  /** Base64; undefined unless it was wanted. */
  readonly md5: string | undefined;
  /** Base64. */
  readonly crc64: string;
}

/** Bytes that are durable, and that no row names yet. */
export interface UploadedContent extends ContentHashes {
  readonly length: number;
  readonly chunkRefs: readonly ChunkRef[];
  /** Locations of the chunks, in the order of `chunkRefs`. */
  readonly locations: readonly ChunkLocation[];
  /** To be called once the commit is decided, either way: the garbage collector may then remove bytes that no row names. */
  release(): void;
}

/** Bytes as they arrive. */
export interface Source extends AsyncIterable<Uint8Array> {
  /** Called with pieces that are written: their memory may be used again. */
  readonly recycle?: (pieces: readonly Uint8Array[]) => void;
}

export interface WantedUpload {
  readonly md5: boolean;
  /** The offset of the first byte in a content that changes in place: chunks end at the borders of its map pages. */
  readonly mapOffset?: number | undefined;
}

/** What became of a content with one reference less. At 0 it goes into the deletion queue, unless all of it was one row. */
export type ReleasedContent = 'kept' | 'queued' | 'removed';

/** One per process. The functions that take a transaction only read and write rows, so they may run again. */
export interface ContentStore {
  /** Streams the bytes into extents. Fails unless exactly `length` bytes arrive. */
  upload(account: AccountId, bytes: Source, length: number, wants: WantedUpload): Promise<UploadedContent>;
  /** Adds the chunk rows of an upload, each with one reference; fails if this process was evicted. */
  commitUpload(tx: Transaction, account: AccountId, uploaded: UploadedContent): Promise<void>;

  /** Contents that change in place. */
  readonly ranges: RangeMaps;

  /** A new id for a content. No id is given twice. */
  newId(): ContentId;
  /**
   * Adds a content with one reference. The caller provides the references of its chunks: those of `commitUpload`, or of
   * `increfChunks`. No segment is empty.
   */
  addContent(tx: Transaction, account: AccountId, id: ContentId, segments: readonly Segment[]): void;
  /**
   * Begins a content that is too large for one commit, with a pending entry in the deletion queue, whose key is returned. The
   * sweeper leaves the entry alone while this process is a member. `addSegments` follows, in one transaction per slice, and then
   * `finishPending` or `abandonPending`.
   * `uncounted`: the references of the chunks still belong to others, and are transferred in the transaction that finishes.
   */
  beginPending(tx: Transaction, account: AccountId, id: ContentId, counting?: RefCounting): Promise<Key>;
  /** Adds segments from this offset on. The caller increments the references of their chunks in the same transaction, unless uncounted. */
  addSegments(
    tx: Transaction,
    account: AccountId,
    id: ContentId,
    offset: number,
    segments: readonly Segment[],
  ): Promise<void>;
  /** The pending content becomes a content with one reference, as by `addContent`. */
  finishPending(tx: Transaction, account: AccountId, id: ContentId, pendingKey: Key, length: number): Promise<void>;
  /** The pending content will not be finished: the sweeper removes it. */
  abandonPending(tx: Transaction, id: ContentId, pendingKey: Key, counting?: RefCounting, kind?: Content['kind']): void;
  /**
   * A content whose pages were added by `addSegments`, and that a row of the caller has named instead of a pending entry, becomes a
   * content with one reference.
   */
  completeContent(tx: Transaction, account: AccountId, id: ContentId, length: number): void;
  /** Such a content will not be completed: the sweeper removes its pages. */
  discardContent(tx: Transaction, account: AccountId, id: ContentId, kind?: Content['kind']): void;
  increfContent(tx: Transaction, account: AccountId, id: ContentId): Promise<void>;
  decrefContent(tx: Transaction, account: AccountId, id: ContentId): Promise<ReleasedContent>;
  /** Whether the content has one reference only: then the references of its chunks can be transferred. */
  isUnshared(at: Snapshot, account: AccountId, id: ContentId): Promise<boolean>;
  /** Removes the content; the references of its chunks belong to another one from now on. Running reads still find its pages. */
  transferRefs(tx: Transaction, account: AccountId, id: ContentId): void;
  /** @throws DanglingReference if a chunk has no row any more: it was looked up outside of this transaction, and has to be again */
  increfChunks(tx: Transaction, account: AccountId, chunkRefs: readonly ChunkRef[]): Promise<void>;
  /** A chunk row that reaches 0 is removed with this commit. The garbage collector removes its bytes later. */
  decrefChunks(tx: Transaction, account: AccountId, chunkRefs: readonly ChunkRef[]): Promise<void>;
  /** Removes one slice of a counted content in the deletion queue; true once only the entry is left. */
  sweepContent(tx: Transaction, account: AccountId, id: ContentId): Promise<boolean>;

  /**
   * Segments of a content in order, from the one with this byte to the end of its manifest page; `offset` is where the first
   * segment begins. No segments: the content ends here.
   */
  segmentsFrom(
    at: Snapshot,
    account: AccountId,
    id: ContentId,
    offset: number,
  ): Promise<{ offset: number; segments: Segment[] }>;
  /** References to the bytes from `from` to before `to`, for `increfChunks`; undefined if there are more than `refsMax`. */
  chunkRefsIn(
    at: Snapshot,
    account: AccountId,
    id: ContentId,
    from: number,
    to: number,
    refsMax: number,
  ): Promise<ChunkRef[] | undefined>;
  /** Hashes bytes that are not stored again. */
  hash(bytes: AsyncIterable<Uint8Array>, length: number, wants: { md5: boolean }): Promise<ContentHashes>;
  /** To be called before the snapshot that finds the content: until the end of the read, nothing in that snapshot is removed. */
  beginRead(): ContentRead;
}

export interface ContentRead {
  /** Looks up the locations of the first bytes; the stream looks up the others. */
  plan(at: Snapshot, account: AccountId, id: ContentId, from: number, to: number): Promise<void>;
  /**
   * As `plan`, of a content that changes in place. If the current state needs more lookups, nothing is planned: it has to be held
   * (`RangeMaps.holdForRead`) and planned again at its generation.
   * @param gen a generation that is held; undefined: the current state
   */
  planRanges(
    at: Snapshot,
    account: AccountId,
    map: RangeMap,
    gen: number | undefined,
    from: number,
    to: number,
  ): Promise<{ readonly isComplete: boolean }>;
  /** What `planRanges` has found, if it is short and all of it was in rows; it is valid after the end of the read. */
  readonly inMemory: Buffer | undefined;
  /** Called once, at the end of the read. */
  onEnd(fn: () => void): void;
  /**
   * The bytes from `from` to before `to`, verified. A piece is valid until the next one is requested or the stream is returned: its
   * memory is used again. The read ends when the stream ends, fails or is returned early.
   */
  stream(): AsyncIterable<Buffer>;
  end(): void;
}

export { CorruptChunk, NoSpace } from '../extents/extents.ts';

/** A reference to a chunk that has no row any more. */
export class DanglingReference extends Error {
  override readonly name = 'DanglingReference';
}
