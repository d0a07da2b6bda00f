/** Bytes of any length as rows; docs/adr/0002-rows.md has the schema. */
import type { ChunkLocation, ChunkName } from '../extents/extents.ts';
import { decodeKey, encodeKey, type Key, keysUnder, type Range } from '../partition/keys.ts';
import type { Row, Timestamp } from '../partition/partition.ts';
import { decodeValue, encodeValue } from '../partition/values.ts';

export type AccountId = bigint;

/** Names a content or a chunk: the process that made it, and a number that it gives once. */
export interface Id {
  readonly epoch: bigint;
  readonly number: bigint;
}
export type ContentId = Id;
export type ChunkId = Id;

/** A stretch of a content that was put at once, by the label under which it was: a block by its id. */
export interface Segment {
  readonly label?: string | undefined;
  readonly length: number;
  readonly chunkRefs: readonly ChunkRef[];
}

/** All bytes of one chunk. */
export interface ChunkRef {
  readonly chunk: ChunkId;
  readonly length: number;
}

/** It is there as long as heads name it. What the sweeper has still to let go of has cells, and no row of its own. */
export interface Content {
  /** An immutable list of pieces. Contents that change in place will be another kind. */
  readonly kind: 'list';
  readonly length: number;
  /** How many heads name it. */
  readonly refs: number;
}

export interface Chunk {
  readonly place: ChunkLocation;
  /** How many pieces and blocks name it. */
  readonly refs: number;
}

/**
 * Something that nobody can reach any more, to be swept. A pending content is born with one, which its use removes.
 * What is `uncounted` names chunks whose references are those of another: only its rows go.
 */
export type Deletion =
  | { readonly kind: 'container'; readonly container: string }
  | { readonly kind: 'content'; readonly content: string; readonly pending?: true; readonly uncounted?: true }
  | { readonly kind: 'stage'; readonly stage: string; readonly uncounted?: true }
  /** Rows that name no others: all whose keys begin so, in base64. */
  | { readonly kind: 'rows'; readonly under: readonly string[] };

export const contentKey = (account: AccountId, { epoch, number }: ContentId): Key =>
  encodeKey([account, 'c', epoch, number]);
/** The cell of the map whose first byte is this one of the content. */
export const manifestPageKey = (account: AccountId, { epoch, number }: ContentId, offset: number): Key =>
  encodeKey([account, 'm', epoch, number, offset]);
export const manifestPageOffset = (key: Key): number => Number(decodeKey(key).at(-1));
export const manifestPagesIn = (account: AccountId, { epoch, number }: ContentId): Range =>
  keysUnder([account, 'm', epoch, number]);
export const chunkKey = (account: AccountId, { epoch, number }: ChunkId): Key =>
  encodeKey([account, 'k', epoch, number]);
/** A counter: the bytes in this extent that chunks of this account still need. */
export const liveBytesKey = (account: AccountId, extent: string): Key => encodeKey([account, 'l', extent]);
export const liveBytesIn = (account: AccountId): Range => keysUnder([account, 'l']);
/** `id` is there only to tell apart what is trashed under one stamp. */
export const deletionKey = (account: AccountId, timestamp: Timestamp, id: string): Key =>
  encodeKey([account, 'x', timestamp, id]);
export const deletionsIn = (account: AccountId): Range => keysUnder([account, 'x']);
/** One a process life, of the whole store. Whoever names new bytes checks it: bytes of a dead process are not named any more. */
export const epochKey = (epoch: bigint): Key => encodeKey(['epoch', epoch]);
export const epochsIn = (): Range => keysUnder(['epoch']);
/** Written with every epoch that is added, where several processes share a store: so no two are equal. */
export const LAST_EPOCH_KEY = encodeKey(['last epoch']);
/** The life sign of a process that shares the store, by its epoch. */
export const heartbeatKey = (epoch: bigint): Key => encodeKey(['beat', epoch]);
export const heartbeatsIn = (): Range => keysUnder(['beat']);
export const epochFromKey = (key: Key): bigint => decodeKey(key)[1] as bigint;

export const formatId = ({ epoch, number }: Id): string => `${epoch}-${number}`;
/** Ids that are read together were mostly given by one process. */
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

export const encodeContent = (content: Content): Buffer => encodeValue(content);
export const decodeContent = (row: Row): Content => decodeValue<Content>(row);
export const encodeChunk = (chunk: Chunk): Buffer => encodeValue(chunk);
export const decodeChunk = (row: Row): Chunk => decodeValue<Chunk>(row);

/**
 * Parts, and so pieces, of one cell of a map, unless a single piece has more. It is also what a slice of the sweeper lets go
 * of: each part is a row, and so may be the live bytes of its extent, and a commit leaves at most 1,000.
 */
export const MANIFEST_PAGE_CHUNKS_MAX = 480;
type StoredSegment = [label: string | null, length: number, parts: [chunk: string, length: number][]];

export function encodeManifestPage(segments: readonly Segment[]): Buffer {
  const stored = segments.map(
    ({ label, length, chunkRefs }): StoredSegment => [
      label ?? null,
      length,
      chunkRefs.map((part) => [formatId(part.chunk), part.length]),
    ],
  );
  return encodeValue({ pieces: stored });
}

export function decodeManifestPage(row: Row): Segment[] {
  return decodeValue<{ pieces: StoredSegment[] }>(row).pieces.map(([label, length, stored]) => ({
    label: label ?? undefined,
    length,
    chunkRefs: stored.map(([chunk, size]) => ({ chunk: parseId(chunk), length: size })),
  }));
}

export const deletionOfRows = (...prefixes: readonly Key[]): Deletion => ({
  kind: 'rows',
  under: prefixes.map((key) => Buffer.from(key, 'latin1').toString('base64')),
});
export const keyPrefixesIn = ({ under: all }: Deletion & { kind: 'rows' }): Key[] =>
  all.map((key) => Buffer.from(key, 'base64').toString('latin1') as Key);

/** Whether its pieces are counted among the users of their chunks. */
export type RefCounting = 'counted' | 'uncounted';
export const uncountedFlag = (counting?: RefCounting): { uncounted?: true } =>
  counting === 'uncounted' ? { uncounted: true } : {};

export const encodeDeletion = (deletion: Deletion): Buffer => encodeValue(deletion);
export const decodeDeletion = (row: Row): Deletion => decodeValue<Deletion>(row);
