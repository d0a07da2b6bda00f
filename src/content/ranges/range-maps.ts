/** Contents that change in place, as the services see them. docs/adr/0031-content-that-changes-in-place.md */
import { encodeKey, type Key } from '../../partition/keys.ts';
import { type Partition, type Snapshot, type Transaction, Unavailable } from '../../partition/partition.ts';
import { abandonPending, beginPending, endPending } from '../manifest.ts';
import { type AccountId, type ChunkRef, type ContentId, contentKey, encodeContent, type Id, parseId } from '../rows.ts';
import { type ForkSource, forkPages } from './fork.ts';
import * as generations from './generations.ts';
import type { GroupPlace } from './groups.ts';
import { findRanges, NEW_MAP, type RangeMap, type RangesDeletion, readRangeMap, updateRanges } from './map-rows.ts';
import { finishMerge, type MergeContext, type Merged, type MergeTarget, mergePage } from './merge.ts';
import { MapPageFull } from './pages.ts';
import { type ByteRange, type ChangedRange, compareGenerations, compareSectors, listRanges } from './reads.ts';
import type { SharedSource } from './shared.ts';
import { sweepVoid } from './voids.ts';
import {
  appendShort,
  clearRange,
  type MapWritten,
  type ShortWrite,
  type WrittenBytes,
  writeRange,
  writeRanges,
  writeShared,
  writeShort,
} from './writes.ts';

/** A generation that a long read holds. */
export interface HeldRead {
  readonly id: ContentId;
  readonly gen: number;
  readonly read: Id;
  /** In the deletion queue. */
  readonly entry: Key;
}

/** The functions that take a transaction only read and write rows, so they may run again. */
export interface RangeMaps {
  /** Adds an empty content with one reference. */
  create(tx: Transaction, account: AccountId, id: ContentId, place?: GroupPlace): void;
  /** Before a write of a content in a group: the content's row has the generation of its last write, for the sweeper. */
  advance(tx: Transaction, account: AccountId, id: ContentId, place: GroupPlace): Promise<void>;
  /** Adds a content of one short write, from byte 0 on. */
  createWithBytes(tx: Transaction, account: AccountId, id: ContentId, bytes: Buffer, place?: GroupPlace): void;
  /** The map with the generations of the content's own row. */
  read(at: Snapshot, account: AccountId, id: ContentId): Promise<RangeMap>;
  /** @throws MapPageFull, which `withRoom` handles */
  write(tx: Transaction, account: AccountId, map: RangeMap, offset: number, bytes: WrittenBytes): Promise<MapWritten>;
  /** Several short writes, the later ones over the earlier. @throws MapPageFull */
  writeShort(tx: Transaction, account: AccountId, map: RangeMap, writes: readonly ShortWrite[]): Promise<MapWritten>;
  /** Short writes, each where the one before it ends, at the end of the content: from there on nothing can be seen. @throws MapPageFull */
  append(tx: Transaction, account: AccountId, map: RangeMap, writes: readonly ShortWrite[]): Promise<MapWritten>;
  /**
   * Writes and clears several ranges of a few pages.
   * @param chunkRefs the bytes of all that are written, one after another
   */
  writeRanges(
    tx: Transaction,
    account: AccountId,
    map: RangeMap,
    ranges: readonly ChangedRange[],
    chunkRefs: readonly ChunkRef[],
  ): Promise<MapWritten>;
  /**
   * Writes at `offset` what the source shows, by naming its chunks again.
   * @throws CannotShare if its bytes have to be copied, or MapPageFull
   */
  writeShared(
    tx: Transaction,
    account: AccountId,
    map: RangeMap,
    offset: number,
    source: SharedSource,
  ): Promise<MapWritten>;
  /** Zeros from `from` to before `to`; a truncation clears up to NO_END. */
  clear(tx: Transaction, account: AccountId, map: RangeMap, from: number, to: number): Promise<MapWritten>;
  /** Runs `fn` again after a merge if a page is full. */
  withRoom<T>(account: AccountId, fn: () => Promise<T>): Promise<T>;

  /** Takes a snapshot. @returns its generation, which is held until it is released */
  hold(tx: Transaction, account: AccountId, map: RangeMap): Promise<number>;
  release(tx: Transaction, account: AccountId, id: ContentId, gen: number): void;
  /** No record names the current state any more, and nothing can be written; if the content still exists, held generations are left. */
  endCurrent(tx: Transaction, account: AccountId, id: ContentId, place?: GroupPlace): Promise<void>;
  /** Holds the current generation for a read that needs more than one lookup. */
  holdForRead(tx: Transaction, account: AccountId, map: RangeMap, read: Id): Promise<HeldRead>;
  releaseRead(account: AccountId, held: HeldRead): Promise<void>;

  /**
   * @param gen of all functions: undefined is the current state
   * @param unit ranges begin and end at multiples of it, as `within` does
   * @param bytesMax from which on a range is not joined with its neighbour
   */
  list(
    at: Snapshot,
    account: AccountId,
    map: RangeMap,
    gen: number | undefined,
    within: ByteRange,
    options?: { unit?: number; bytesMax?: number },
  ): AsyncIterable<ChangedRange>;
  /** What was written or cleared after generation `since`. */
  compare(
    at: Snapshot,
    account: AccountId,
    map: RangeMap,
    since: number,
    gen: number | undefined,
    within: ByteRange,
    bytesMax?: number,
  ): AsyncIterable<ChangedRange>;

  /** In whole sectors of 512 bytes. */
  compareSectors(
    at: Snapshot,
    account: AccountId,
    map: RangeMap,
    since: number,
    gen: number | undefined,
    within: ByteRange,
  ): AsyncIterable<ChangedRange>;

  /** Makes a writable copy, which is pending until `finishFork` or `abandonFork`. @returns its entry in the deletion queue */
  fork(account: AccountId, copy: ContentId, source: ForkSource): Promise<Key>;
  /** The copy becomes a content with one reference. */
  finishFork(tx: Transaction, account: AccountId, copy: ContentId, pendingKey: Key, place?: GroupPlace): Promise<void>;

  /** The sweeper removes the copy. */
  abandonFork(copy: ContentId, pendingKey: Key): Promise<void>;

  /** Merges a map page and its older pages. */
  merge(account: AccountId, target: MergeTarget): Promise<Merged>;
  /** One slice of an entry of the deletion queue; true once only the entry is left. */
  sweepEntry(
    tx: Transaction,
    account: AccountId,
    key: Key,
    deletion: RangesDeletion,
    merged?: Merged,
  ): Promise<boolean>;
  /** One slice of a content in the deletion queue. */
  sweepContent(tx: Transaction, account: AccountId, id: ContentId): Promise<boolean>;
}

export interface RangeMapsOptions extends MergeContext {
  readonly partition: Pick<Partition, 'read' | 'transact'>;
  beginRead(): { end(): void };
  /** Fails if this process was evicted. */
  checkEpoch(tx: Transaction): Promise<void>;
}

/** Merges that one write waits for. */
const ATTEMPTS_MAX = 20;

export function createRangeMaps(options: RangeMapsOptions): RangeMaps {
  const { partition, checkEpoch } = options;
  const merging = new Map<string, Promise<Merged>>();
  /** Reads whose generation could not be released yet. */
  const unreleased = new Set<{ readonly account: AccountId; readonly held: HeldRead }>();

  /** One at a time for each page: two would move the same bytes. */
  async function merge(account: AccountId, target: MergeTarget): Promise<Merged> {
    const name = mergeName(account, target);
    for (let before = merging.get(name); before; before = merging.get(name)) await before.catch(() => undefined);
    const running = mergeNow(account, target).finally(() => merging.delete(name));
    merging.set(name, running);
    return running;
  }

  async function mergeNow(account: AccountId, target: MergeTarget): Promise<Merged> {
    const read = options.beginRead();
    try {
      return await mergePage(options, account, target);
    } finally {
      read.end();
    }
  }

  /** Writers that find the same page full wait for one merge. */
  const mergeOnce = (account: AccountId, { content, offset }: MapPageFull): Promise<Merged> =>
    merging.get(mergeName(account, { content, offset })) ?? merge(account, { content, offset });

  async function abandonFork(copy: ContentId, pendingKey: Key): Promise<void> {
    await partition.transact(pendingKey, async (tx) => abandonPending(tx, copy, pendingKey, 'counted', 'ranges'));
  }

  return {
    create: (tx, account, id, place) => createRanges(tx, account, id, place),
    async advance(tx, account, id, { group, gen }) {
      const found = await findRanges(tx, account, id);
      if (found && found.gen < gen) await updateRanges(tx, account, id, { gen, group });
    },
    createWithBytes: (tx, account, id, bytes, place) => createRanges(tx, account, id, place, bytes),
    read: readRangeMap,
    write: writeRange,
    writeShort,
    append: appendShort,
    writeRanges,
    writeShared,
    clear: clearRange,
    async withRoom(account, fn) {
      for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        try {
          return await fn();
        } catch (error) {
          if (!(error instanceof MapPageFull)) throw error;
          await mergeOnce(account, error);
        }
      }
      throw new Unavailable('Too many others write here at the same time.');
    },
    hold: generations.holdGeneration,
    release: generations.releaseGeneration,
    endCurrent: generations.endCurrent,
    async holdForRead(tx, account, map, read) {
      await checkEpoch(tx);
      return { id: map.id, read, ...(await generations.holdForRead(tx, account, map, read)) };
    },
    async releaseRead(account, held) {
      unreleased.add({ account, held });
      for (const each of unreleased) {
        const { id, gen, read, entry } = each.held;
        unreleased.delete(each);
        try {
          await partition.transact(entry, async (tx) => generations.releaseRead(tx, id, gen, read, entry));
        } catch (error) {
          unreleased.add(each);
          throw error;
        }
      }
    },
    list: listRanges,
    compare: compareGenerations,
    compareSectors,
    async fork(account, copy, source) {
      const queueKey = encodeKey([account, 'map', copy.epoch, copy.number]);
      const { value: pendingKey } = await partition.transact(queueKey, async (tx) => {
        await checkEpoch(tx);
        return beginPending(tx, account, copy, 'counted', 'ranges');
      });
      try {
        await forkPages(partition, account, copy, source, checkEpoch);
      } catch (error) {
        await abandonFork(copy, pendingKey);
        throw error;
      }
      return pendingKey;
    },
    abandonFork,
    async finishFork(tx, account, copy, pendingKey, place) {
      await checkEpoch(tx);
      await endPending(tx, copy, pendingKey);
      createRanges(tx, account, copy, place);
    },
    merge,
    async sweepEntry(tx, account, key, deletion, merged) {
      if (deletion.kind === 'generation') return generations.sweepGeneration(tx, account, key, deletion);
      if (deletion.kind === 'void') return sweepVoid(tx, account, key, deletion);
      const { content, offset } = deletion;
      return finishMerge(tx, account, { content: parseId(content), offset }, merged?.born);
    },
    sweepContent: generations.sweepRanges,
  };
}

const mergeName = (account: AccountId, { content, offset }: MergeTarget): string =>
  `${account} ${content.epoch} ${content.number} ${offset}`;

function createRanges(
  tx: Transaction,
  account: AccountId,
  id: ContentId,
  place: GroupPlace | undefined,
  bytes?: Buffer,
): void {
  const grouped = place && { gen: place.gen, group: place.group, since: place.gen };
  const first = bytes && { born: place?.gen ?? NEW_MAP.gen, bytes };
  tx.put(contentKey(account, id), encodeContent({ kind: 'ranges', refs: 1, ...NEW_MAP, ...grouped, first }));
}

export { NEW_MAP } from './map-rows.ts';
export { CannotShare, type SharedSource } from './shared.ts';
export { INLINE_WRITE_BYTES_MAX, NO_END } from './writes.ts';
export type { ByteRange, ChangedRange, ForkSource, RangeMap, ShortWrite, WrittenBytes };
