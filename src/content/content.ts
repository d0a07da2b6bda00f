/** What the services know of bytes: taken from a stream before a transaction, named and let go in it, read after it. */
import type { ChunkLocation } from '../extents/extents.ts';
import type { Key } from '../partition/keys.ts';
import type { Snapshot, Transaction } from '../partition/partition.ts';
import type { AccountId, ChunkRef, ContentId, RefCounting, Segment } from './rows.ts';

/** Bytes that are durable and that no row names yet. */
export interface UploadedContent {
  readonly length: number;
  /** Base64; only if it was asked for. */
  readonly md5: string | undefined;
  /** Base64. */
  readonly crc64: string;
  readonly chunkRefs: readonly ChunkRef[];
  /** Where the parts lie, in their order. */
  readonly locations: readonly ChunkLocation[];
  /** Whether they were named or not, the taker is done: the collector may have what no row names. */
  release(): void;
}

/** Bytes as they come. */
export interface Source extends AsyncIterable<Uint8Array> {
  /** Is told of pieces once they are written: nobody needs them any more. */
  readonly recycle?: (pieces: readonly Uint8Array[]) => void;
}

/** One a process. The functions that take a transaction only read and write rows: they may run again. */
export interface ContentStore {
  /** Streams the bytes into extents. Just `length` of them must come. */
  upload(account: AccountId, bytes: Source, length: number, wants: { md5: boolean }): Promise<UploadedContent>;
  /** Gives taken bytes their rows, each with one reference; fails if this process was declared dead. */
  commitUpload(tx: Transaction, account: AccountId, uploaded: UploadedContent): Promise<void>;

  /** A name for a content that is to be made; never given twice. */
  newId(): ContentId;
  /**
   * Makes a content of one reference. Its parts' references are the caller's: it has raised them, or hands over those of
   * `nameChunks`. No piece is empty.
   */
  addContent(tx: Transaction, account: AccountId, id: ContentId, segments: readonly Segment[]): void;
  /**
   * The first step to a content that is too large for one commit: a trash row, whose key it returns. The sweeper lets it lie
   * while this process lives. Then come cells, each slice in a transaction of its own, then the finish or the end of it.
   * `uncounted`: its parts' references are still those of others, who hand them over in the transaction that finishes it.
   */
  beginPending(tx: Transaction, account: AccountId, id: ContentId, counting?: RefCounting): Promise<Key>;
  /** Pieces from this offset on. As with `addContent`, their parts' references are the caller's: raised in the same transaction, unless uncounted. */
  addSegments(
    tx: Transaction,
    account: AccountId,
    id: ContentId,
    offset: number,
    segments: readonly Segment[],
  ): Promise<void>;
  /** It becomes a content of one reference, just as one of `addContent`. */
  finishPending(tx: Transaction, account: AccountId, id: ContentId, pendingKey: Key, length: number): Promise<void>;
  /** It will not be finished: the sweeper may have it. */
  abandonPending(tx: Transaction, account: AccountId, id: ContentId, pendingKey: Key, counting?: RefCounting): void;
  increfContent(tx: Transaction, account: AccountId, id: ContentId): Promise<void>;
  /** The last one to let go of it leaves it to the sweeper. */
  decrefContent(tx: Transaction, account: AccountId, id: ContentId): Promise<void>;
  /** Whether one head alone names it: then its references can be handed over. */
  isUnshared(at: Snapshot, account: AccountId, id: ContentId): Promise<boolean>;
  /** All its references are another's from now on. Those who read it still find its rows. */
  transferRefs(tx: Transaction, account: AccountId, id: ContentId): void;
  /** Throws PartGone if one of them is: whoever looked them up outside of this transaction looks again. */
  increfChunks(tx: Transaction, account: AccountId, chunkRefs: readonly ChunkRef[]): Promise<void>;
  /** What nobody names any more is gone with this commit; its bytes follow when the collector comes to them. */
  decrefChunks(tx: Transaction, account: AccountId, chunkRefs: readonly ChunkRef[]): Promise<void>;
  /** One slice of what the trash says about a counted content; true once nothing is left of it but the trash row. */
  sweepContent(tx: Transaction, account: AccountId, id: ContentId): Promise<boolean>;

  /**
   * The pieces of a content in order, from the one that holds this byte on, as many as lie in one cell; `offset` is that of
   * the first. None: the content ends here.
   */
  segmentsFrom(
    at: Snapshot,
    account: AccountId,
    id: ContentId,
    offset: number,
  ): Promise<{ offset: number; segments: Segment[] }>;
  /** Begun before the snapshot that finds the content: until its end nothing that it can see is taken away. */
  beginRead(): ContentRead;
}

export interface ContentRead {
  /** Looks up where the first bytes lie; the rest is looked up as the stream goes on. */
  plan(at: Snapshot, account: AccountId, id: ContentId, from: number, to: number): Promise<void>;
  /**
   * The bytes from `from` to before `to`, checked. A piece is good until the next one is asked for, or the stream is let go of: its
   * memory is used again. Ends the read when it ends, fails or is returned early.
   */
  stream(): AsyncIterable<Buffer>;
  end(): void;
}

export { CorruptChunk, NoSpace } from '../extents/extents.ts';

/** A part that nobody names any more. */
export class DanglingReference extends Error {
  override readonly name = 'PartGone';
}
