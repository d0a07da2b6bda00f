/** Schema of the content store: keys and values of contents, manifests, chunks and epochs. docs/adr/0002-row-schema.md lists all rows. */
import type { ChunkLocation, ChunkName } from '../extents/extents.ts';
import { decodeKey, encodeKey, type Key, keysUnder, type Range } from '../partition/keys.ts';
import type { Row, Timestamp } from '../partition/partition.ts';
import { decodeBytes, decodeValue, encodeBytes, encodeText, encodeValue } from '../partition/values.ts';

export type AccountId = bigint;

/** Names a content or a chunk: the epoch of the process that made it, and a number that the process gives once. */
export interface Id {
  readonly epoch: bigint;
  readonly number: bigint;
}
export type ContentId = Id;
export type ChunkId = Id;

/** Consecutive bytes of a content that were uploaded together. The label is the caller's: a block has its block id there. */
export interface Segment {
  readonly label?: string | undefined;
  readonly length: number;
  readonly chunkRefs: readonly ChunkRef[];
}

/** Bytes of one chunk. */
export interface ChunkRef {
  readonly chunk: ChunkId;
  readonly length: number;
  /** Where they begin in the chunk, if they are a part of it; undefined: all bytes of the chunk. */
  readonly offset?: number;
}

/** The bytes of a reference from `from` to before `to`. */
export function sliceRef(ref: ChunkRef, from: number, to: number): ChunkRef {
  if (from === 0 && to === ref.length) return ref;
  return { chunk: ref.chunk, length: to - from, offset: (ref.offset ?? 0) + from };
}

/** References to the bytes from `from` to before `to` of those that these name together. */
export function sliceRefs(refs: readonly ChunkRef[], from: number, to: number): ChunkRef[] {
  const sliced: ChunkRef[] = [];
  let begin = 0;
  for (const ref of refs) {
    const [first, end] = [Math.max(from - begin, 0), Math.min(to - begin, ref.length)];
    if (first < end) sliced.push(sliceRef(ref, first, end));
    begin += ref.length;
  }
  return sliced;
}

/** Exists while `refs` is above 0. A content that waits for the sweeper has manifest or map pages, but no row of its own. */
export type Content = ListContent | RangesContent;

interface CountedContent {
  /** Invariant, in every commit: the number of records (a blob record, for example) that name this content. */
  readonly refs: number;
}

/** An immutable list of segments. */
export interface ListContent extends CountedContent {
  readonly kind: 'list';
  readonly length: number;
}

/** A content that changes in place: ranges/map-rows.ts. Its length is in the record that names it. */
export interface RangesContent extends CountedContent, RangeMapState {
  readonly kind: 'ranges';
}

/** The generations of a range map, and the voids that some of its pages may not have seen. */
export interface RangeMapState {
  /** The generation of the next write. */
  readonly gen: number;
  /** The greatest generation that is held, by a snapshot or a read; 0: none is. */
  readonly newest: number;
  /** In the order of their numbers. */
  readonly voids: readonly Void[];
  readonly lastVoid: number;
  /** No record names the current state any more, only held generations are left. */
  readonly isEnded?: true | undefined;
  /** Of a content in a group: the generation in which the current state ended; only generations before it see the content. */
  readonly endedIn?: number | undefined;
  /** The number of a group of contents whose generations are held together: ranges/groups.ts. */
  readonly group?: string | undefined;
  /** The first generation of the group that can see the content. */
  readonly since?: number | undefined;
  /** Undefined: the bytes are in map pages. */
  readonly first?: FirstBytes | undefined;
  /** Undefined: map pages name all short writes. */
  readonly tail?: Tail | undefined;
}

/** The bytes of a content that has had one short write, from byte 0 on. They are in its row until the next change: ranges/first-bytes.ts. */
export interface FirstBytes {
  /** The generation of the write. */
  readonly born: number;
  readonly bytes: Buffer;
}

/** Where the short writes at the end of a content begin that no map page names yet: ranges/tail.ts. */
export interface Tail {
  /** Of the map page. */
  readonly offset: number;
  /** Counted from the start of the page. */
  readonly from: number;
  /** The number of the first piece. */
  readonly piece: number;
}

/** Everything from `from` to before `to` that was written before this void is zeros, for its generation and later ones. */
export interface Void {
  readonly number: number;
  readonly from: number;
  readonly to: number;
  readonly gen: number;
}

export interface Chunk {
  readonly place: ChunkLocation;
  /**
   * Invariant, in every commit: the number of segments and uncommitted segments that name this chunk. The commit that brings
   * it to 0 removes the row.
   */
  readonly refs: number;
}

/**
 * Entry of the deletion queue for a content: no row names the content any more, and the sweeper removes its manifest pages.
 * The queue also holds entries of other kinds, whose values are opaque to this layer.
 */
export interface ContentDeletion {
  readonly kind: 'content';
  readonly content: string;
  /** The content is still being built. Written before the first manifest page; swept only if the epoch of its process is gone. */
  readonly pending?: true;
  /** The references of its chunks belong to another content: the sweeper removes the pages and decrements nothing. */
  readonly uncounted?: true;
  /** The content has map pages, no manifest pages. */
  readonly ranges?: true;
}

export const contentKey = (account: AccountId, { epoch, number }: ContentId): Key =>
  encodeKey([account, 'c', epoch, number]);
/** The manifest page that begins at this byte of the content. */
export const manifestPageKey = (account: AccountId, { epoch, number }: ContentId, offset: number): Key =>
  encodeKey([account, 'm', epoch, number, offset]);
export const manifestPageOffset = (key: Key): number => Number(decodeKey(key).at(-1));
export const manifestPagesIn = (account: AccountId, { epoch, number }: ContentId): Range =>
  keysUnder([account, 'm', epoch, number]);
export const chunkKey = (account: AccountId, { epoch, number }: ChunkId): Key =>
  encodeKey([account, 'k', epoch, number]);
/**
 * Counter of live bytes. Invariant, in every commit: the sum of `place.length` of the chunk rows of this account in this extent.
 * Changed only together with a chunk row, in refcounts.ts and gc/compaction.ts.
 */
export const liveBytesKey = (account: AccountId, extent: string): Key => encodeKey([account, 'l', extent]);
export const liveBytesIn = (account: AccountId): Range => keysUnder([account, 'l']);
/** `id` only tells entries with the same timestamp apart. */
export const deletionKey = (account: AccountId, timestamp: Timestamp, id: string): Key =>
  encodeKey([account, 'x', timestamp, id]);
export const deletionsIn = (account: AccountId): Range => keysUnder([account, 'x']);
/**
 * One row per running process, for the whole store. Invariant: the process may commit new bytes if and only if its row exists;
 * the row is removed before the extents or the pending contents of the process may be.
 */
export const epochKey = (epoch: bigint): Key => encodeKey(['epoch', epoch]);
export const epochsIn = (): Range => keysUnder(['epoch']);
/** Written with every epoch that is added where several processes share a store, so no two epochs are equal. */
export const LAST_EPOCH_KEY = encodeKey(['last epoch']);
/** The last heartbeat of a process that shares the store, by its epoch. */
export const heartbeatKey = (epoch: bigint): Key => encodeKey(['beat', epoch]);
export const heartbeatsIn = (): Range => keysUnder(['beat']);
export const epochFromKey = (key: Key): bigint => decodeKey(key)[1] as bigint;

export const formatId = ({ epoch, number }: Id): string => `${epoch}-${number}`;
/** Ids that are read together mostly have the same epoch, and parsing a bigint is slow. */
let lastParsedEpoch: readonly [text: string, epoch: bigint] = ['0', 0n];
function parseEpoch(text: string): bigint {
  if (lastParsedEpoch[0] !== text) lastParsedEpoch = [text, BigInt(text)];
  return lastParsedEpoch[1];
}

export function parseId(text: string): Id {
  const dash = text.indexOf('-');
  return { epoch: parseEpoch(text.slice(0, dash)), number: BigInt(text.slice(dash + 1)) };
}
export const chunkName = (account: AccountId, { epoch, number }: ChunkId): ChunkName => ({ account, epoch, number });

/** JSON, and after a line feed the first bytes. A version that knows no tails looks for them there, and fails instead of showing zeros. */
export function encodeContent(content: Content): Buffer {
  if (content.kind === 'ranges' && content.tail) return encodeText(`${JSON.stringify(content)}\n`);
  if (content.kind === 'list' || !content.first) return encodeValue(content);
  const { born, bytes } = content.first;
  return encodeBytes(Buffer.from(`${JSON.stringify({ ...content, first: { born } })}\n`), bytes);
}

export function decodeContent(row: Row): Content {
  const value = decodeBytes(row);
  const end = value.indexOf(LINE_FEED);
  if (end < 0) return decodeValue<Content>(row);
  const content = JSON.parse(value.toString('utf8', 0, end)) as RangesContent & { first?: Omit<FirstBytes, 'bytes'> };
  return content.first
    ? { ...content, first: { born: content.first.born, bytes: value.subarray(end + 1) } }
    : (content as RangesContent);
}

const LINE_FEED = 0x0a;
export const encodeChunk = (chunk: Chunk): Buffer => encodeValue(chunk);
export const decodeChunk = (row: Row): Chunk => decodeValue<Chunk>(row);

/**
 * Limit of the chunk references of one manifest page, unless a single segment has more. A slice of the sweeper releases as many:
 * each reference is a chunk row, each may need the live bytes of another extent, and a commit changes at most 1,000 rows.
 */
export const MANIFEST_PAGE_CHUNKS_MAX = 480;
type StoredSegment = [label: string | null, length: number, chunkRefs: [chunk: string, length: number][]];

export function encodeManifestPage(segments: readonly Segment[]): Buffer {
  const stored = segments.map(
    ({ label, length, chunkRefs }): StoredSegment => [
      label ?? null,
      length,
      chunkRefs.map((ref) => [formatRef(ref), ref.length]),
    ],
  );
  return encodeValue({ pieces: stored });
}

export function decodeManifestPage(row: Row): Segment[] {
  return decodeValue<{ pieces: StoredSegment[] }>(row).pieces.map(([label, length, stored]) => ({
    label: label ?? undefined,
    length,
    chunkRefs: stored.map(([chunk, size]) => parseRef(chunk, size)),
  }));
}

/** The offset of a part stands in the chunk's name: a version that knows whole chunks only fails there, and reads no other bytes instead. */
const formatRef = ({ chunk, offset }: ChunkRef): string =>
  offset === undefined ? formatId(chunk) : `${formatId(chunk)}+${offset}`;

function parseRef(text: string, length: number): ChunkRef {
  const plus = text.indexOf('+');
  if (plus < 0) return { chunk: parseId(text), length };
  return { chunk: parseId(text.slice(0, plus)), length, offset: Number(text.slice(plus + 1)) };
}

/** Whether the references of a content's chunks are counted for this content, or still for another one. */
export type RefCounting = 'counted' | 'uncounted';
export const uncountedFlag = (counting?: RefCounting): { uncounted?: true } =>
  counting === 'uncounted' ? { uncounted: true } : {};

export const encodeContentDeletion = (deletion: ContentDeletion): Buffer => encodeValue(deletion);
/** Undefined for an entry of another kind. */
export function decodeContentDeletion(row: Row): ContentDeletion | undefined {
  const deletion = decodeValue<ContentDeletion | { readonly kind: undefined }>(row);
  return deletion.kind === 'content' ? deletion : undefined;
}
