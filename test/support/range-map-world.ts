/** Contents that change in place, each named by a blob record, in a process that can be killed before or after any of its commits. */
import { createChunkChecker } from '../../src/content/chunk-check.ts';
import { createContentStore } from '../../src/content/content-store.ts';
import { createActiveReads } from '../../src/content/gc/active-reads.ts';
import { activeEpochs, takeOverEpoch } from '../../src/content/membership/epochs.ts';
import { emptyPage, type MapPage, measure } from '../../src/content/ranges/map-page.ts';
import { decodeMapPage, encodeMapPage } from '../../src/content/ranges/map-page-codec.ts';
import { mapPageKey } from '../../src/content/ranges/map-rows.ts';
import { CannotShare } from '../../src/content/ranges/shared.ts';
import { clearRange, NO_END } from '../../src/content/ranges/writes.ts';
import { type ContentId, decodeChunk, deletionsIn, formatId, parseId } from '../../src/content/rows.ts';
import { openMemoryExtents } from '../../src/extents/memory.ts';
import { encodeKey, keysUnder, prefixEnd } from '../../src/partition/keys.ts';
import type { Engine, Partition, Transaction } from '../../src/partition/partition.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { decodeBlobRecord, encodeBlobRecord } from '../../src/services/blob/blob-record.ts';
import { type ReleasingStore, releaseContent } from '../../src/services/blob/release-content.ts';
import { blobKey, blobKeyPrefix, encodeProperties, nameKey, propertiesKey } from '../../src/services/blob/rows.ts';
import { putAccount } from '../../src/services/common/account-rows.ts';
import { decodeDeletion } from '../../src/services/common/deletions.ts';
import { encodeName } from '../../src/services/common/names.ts';
import { check } from '../../src/services/maintenance/check.ts';
import { sweepSlice } from '../../src/services/maintenance/sweep-slice.ts';
import { bytesFrom, inPieces, watchedHashers } from './content-store.ts';
import { type Kill, killable } from './killable-partition.ts';
import { bytesOfUnits, LENGTH, UNIT } from './range-map-model.ts';

export const ACCOUNT = 7n;
const CONTAINER = 40n;
const INLINE_UNITS = 1;
const DECIDES = encodeKey([ACCOUNT, 'test']);

/** Units from `from` to before `to`; seed 0: they are cleared. */
export interface ScatteredPiece {
  readonly from: number;
  readonly to: number;
  readonly seed: number;
}

export type RangeWorld = Awaited<ReturnType<typeof openRangeWorld>>;

export async function openRangeWorld(engine: Engine) {
  const real = openPartition(engine);
  let kill: Kill | undefined;
  const decided: Partition = {
    ...real,
    async transact(queueKey, fn) {
      const result = await real.transact(queueKey, fn);
      if (queueKey === DECIDES) world.hasDecided = true;
      return result;
    },
  };
  const partition = killable(decided, () => kill);
  await setUp(real);
  let epoch = await takeOverEpoch(real);
  const extents = openMemoryExtents({ epoch, extentBytesMax: 4 << 20 });
  const open = () => {
    const reads = createActiveReads();
    const content = createContentStore({ partition, extents, epoch, reads, hashers: watchedHashers(), mapPagesMax: 2 });
    return { reads, content };
  };
  let process = open();

  const act = async <T>(fn: (tx: Transaction) => Promise<T>): Promise<T> =>
    (await partition.transact(DECIDES, fn)).value;
  const ranges = () => process.content.ranges;
  const map = (id: ContentId) => partition.read((at) => ranges().read(at, ACCOUNT, id));

  const world = {
    partition,
    /** The commit of a step that others see was made. */
    hasDecided: false,
    killAt(at: Kill | undefined) {
      kill = at;
    },
    /** The process is gone with its reads, and another one takes over. */
    async restart() {
      kill = undefined;
      epoch = await takeOverEpoch(real);
      process = open();
    },
    newId: () => process.content.newId(),
    /** Rows as no process would leave them. */
    damage: (fn: (tx: Transaction) => Promise<void>) => act(fn),
    /** @param firstSeed of the first unit; undefined: nothing is written yet */
    create: (id: ContentId, firstSeed?: number) =>
      act(async (tx) => {
        if (firstSeed === undefined) ranges().create(tx, ACCOUNT, id);
        else ranges().createWithBytes(tx, ACCOUNT, id, bytesOfUnits(0, 1, firstSeed));
        putRecord(tx, id);
      }),
    async write(id: ContentId, from: number, count: number, seed: number) {
      const bytes = bytesOfUnits(from, count, seed);
      const offset = from * UNIT;
      const { content } = process;
      const put = (
        written: Parameters<ReturnType<typeof ranges>['write']>[4],
        before?: (tx: Transaction) => Promise<void>,
      ) =>
        ranges().withRoom(ACCOUNT, () =>
          act(async (tx) => {
            await before?.(tx);
            return ranges().write(tx, ACCOUNT, await ranges().read(tx, ACCOUNT, id), offset, written);
          }),
        );
      if (count <= INLINE_UNITS) {
        await put({ inline: bytes });
        return;
      }
      // As an append whose offset has changed: some chunks have bytes of two map pages.
      const mapOffset = seed % 3 === 0 ? offset + 7_777 : offset;
      const uploaded = await content.upload(ACCOUNT, inPieces(bytes, 70_000), bytes.length, { md5: false, mapOffset });
      try {
        await put({ chunkRefs: uploaded.chunkRefs }, (tx) => content.commitUpload(tx, ACCOUNT, uploaded));
      } finally {
        uploaded.release();
      }
    },
    /** Units that one transaction writes, the later ones over the earlier. */
    writeShort: (id: ContentId, units: readonly { readonly unit: number; readonly seed: number }[]) =>
      ranges().withRoom(ACCOUNT, () =>
        act(async (tx) => {
          const writes = units.map(({ unit, seed }) => ({ offset: unit * UNIT, bytes: bytesOfUnits(unit, 1, seed) }));
          return ranges().writeShort(tx, ACCOUNT, await ranges().read(tx, ACCOUNT, id), writes);
        }),
      ),
    /** Units after all that can be seen, which one transaction appends. */
    append: (id: ContentId, first: number, seeds: readonly number[]) =>
      ranges().withRoom(ACCOUNT, () =>
        act(async (tx) => {
          const writes = seeds.map((seed, i) => ({
            offset: (first + i) * UNIT,
            bytes: bytesOfUnits(first + i, 1, seed),
          }));
          return ranges().append(tx, ACCOUNT, await ranges().read(tx, ACCOUNT, id), writes);
        }),
      ),
    /** Units of each piece of a map page. */
    async piecesOf(id: ContentId, page: number): Promise<number[]> {
      const row = await partition.read((at) => at.get(mapPageKey(ACCOUNT, id, page)));
      return measure(decodeMapPage(row!).segments).pieces.map(({ length }) => length / UNIT);
    },
    /** A short write that need not begin or end with a unit. */
    writeBytes: (id: ContentId, offset: number, inline: Buffer) =>
      ranges().withRoom(ACCOUNT, () =>
        act(async (tx) => ranges().write(tx, ACCOUNT, await ranges().read(tx, ACCOUNT, id), offset, { inline })),
      ),
    /** A page as many short writes would leave it. */
    putPage: (id: ContentId, offset: number, page: Pick<MapPage, 'born' | 'nextPiece' | 'segments'>) =>
      act(async (tx) => {
        const row = encodeMapPage({ ...emptyPage(tx.timestamp, 0, 0), ...page });
        tx.put(mapPageKey(ACCOUNT, id, offset), row);
      }),
    /** Several ranges in one commit, of which one chunk may have the bytes. */
    async scatter(id: ContentId, pieces: readonly ScatteredPiece[]) {
      const { content } = process;
      const written = pieces.filter(({ seed }) => seed > 0);
      const bytes = Buffer.concat(written.map(({ from, to, seed }) => bytesOfUnits(from, to - from, seed)));
      const changed = pieces.map(({ from, to, seed }) => ({ from: from * UNIT, to: to * UNIT, isWritten: seed > 0 }));
      const uploaded = await content.upload(ACCOUNT, inPieces(bytes, 70_000), bytes.length, { md5: false });
      try {
        await ranges().withRoom(ACCOUNT, () =>
          act(async (tx) => {
            await content.commitUpload(tx, ACCOUNT, uploaded);
            const found = await ranges().read(tx, ACCOUNT, id);
            await ranges().writeRanges(tx, ACCOUNT, found, changed, uploaded.chunkRefs);
          }),
        );
      } finally {
        uploaded.release();
      }
    },
    /** @returns false: the bytes have to be copied */
    async share(
      id: ContentId,
      to: number,
      from: { id: ContentId; gen: number | undefined; unit: number },
      count: number,
    ) {
      const range = { from: from.unit * UNIT, to: (from.unit + count) * UNIT };
      try {
        await ranges().withRoom(ACCOUNT, () =>
          act(async (tx) => {
            const source = { map: await ranges().read(tx, ACCOUNT, from.id), gen: from.gen, ...range };
            await ranges().writeShared(tx, ACCOUNT, await ranges().read(tx, ACCOUNT, id), to * UNIT, source);
          }),
        );
        return true;
      } catch (error) {
        if (error instanceof CannotShare) return false;
        throw error;
      }
    },
    /** @param pagesMax of one write; a clear of more pages is a void */
    clear: (id: ContentId, from: number, to: number | undefined, pagesMax: number) =>
      act(async (tx) => {
        const found = await ranges().read(tx, ACCOUNT, id);
        await clearRange(tx, ACCOUNT, found, from * UNIT, to === undefined ? NO_END : to * UNIT, pagesMax);
      }),
    hold: (id: ContentId) =>
      act(async (tx) => {
        await process.content.increfContent(tx, ACCOUNT, id);
        const gen = await ranges().hold(tx, ACCOUNT, await ranges().read(tx, ACCOUNT, id));
        putRecord(tx, id, gen);
        return gen;
      }),
    release: (id: ContentId, gen: number) => act((tx) => removeRecord(tx, process.content, id, gen)),
    end: (id: ContentId) => act((tx) => removeRecord(tx, process.content, id)),
    drop: (id: ContentId) =>
      act(async (tx) => {
        for (const row of await tx.scan(recordsOf(id), { limit: 1_000 })) {
          tx.remove(row.key);
          await releaseContent(tx, process.content, ACCOUNT, decodeBlobRecord(row));
        }
      }),
    async fork(id: ContentId, gen: number, copy: ContentId) {
      const read = process.content.beginRead();
      try {
        const pendingKey = await ranges().fork(ACCOUNT, copy, { map: await map(id), gen, length: LENGTH });
        await act(async (tx) => {
          await ranges().finishFork(tx, ACCOUNT, copy, pendingKey);
          putRecord(tx, copy);
        });
      } finally {
        read.end();
      }
    },
    merge: (id: ContentId, page: number) => ranges().merge(ACCOUNT, { content: id, offset: page << 20 }),
    async read(id: ContentId, gen: number | undefined, from: number, to: number) {
      const read = process.content.beginRead();
      const isPlanned = await partition.read(async (at) => {
        const found = await ranges().read(at, ACCOUNT, id);
        return read.planRanges(at, ACCOUNT, found, gen, from, to);
      });
      if (!isPlanned.isComplete && gen === undefined) throw new Error('the read is too long for one lookup');
      return bytesFrom(read.stream());
    },
    /** A read of the current state that goes on whatever is written. */
    async beginLongRead(id: ContentId) {
      const { content } = process;
      const read = content.beginRead();
      try {
        const held = await act(async (tx) => {
          const found = await ranges().read(tx, ACCOUNT, id);
          const one = await ranges().holdForRead(tx, ACCOUNT, found, content.newId());
          await read.planRanges(tx, ACCOUNT, found, one.gen, 0, LENGTH);
          return one;
        });
        const release = () => content.ranges.releaseRead(ACCOUNT, held);
        return {
          gen: held.gen,
          finish: async () => ({ bytes: await bytesFrom(read.stream()), released: await release() }),
        };
      } catch (error) {
        read.end();
        throw error;
      }
    },
    async list(id: ContentId, gen: number | undefined, unit = 1) {
      return partition.read(async (at) => {
        const found = await ranges().read(at, ACCOUNT, id);
        return toArray(ranges().list(at, ACCOUNT, found, gen, { from: 0, to: LENGTH }, { unit }));
      });
    },
    async compare(id: ContentId, since: number, gen: number | undefined) {
      return partition.read(async (at) => {
        const found = await ranges().read(at, ACCOUNT, id);
        return toArray(ranges().compare(at, ACCOUNT, found, since, gen, { from: 0, to: LENGTH }));
      });
    },
    /** One slice of every entry that is ready. True: something was left to do. */
    async sweep(): Promise<boolean> {
      const [rows, living] = await partition.read((at) =>
        Promise.all([at.scan(deletionsIn(ACCOUNT), { limit: 1_000 }), activeEpochs(at)]),
      );
      const isRead = process.reads.oldest() < Infinity;
      let isBusy = false;
      for (const row of rows) {
        const deletion = decodeDeletion(row);
        const isPending = 'pending' in deletion && deletion.pending === true;
        const owner = deletion.kind === 'generation' ? deletion.read : deletion.kind === 'content' && deletion.content;
        if (isRead && (deletion.kind === 'content' || deletion.kind === 'generation')) continue;
        if (isPending && living.has(parseId(owner || '0-0').epoch)) continue;
        isBusy = true;
        await sweepSlice({ partition, content: process.content }, ACCOUNT, row);
      }
      return isBusy;
    },
    /** One slice of every entry of these kinds, all at once. */
    async sweepAtOnce(kinds: readonly string[]): Promise<void> {
      const rows = await partition.read((at) => at.scan(deletionsIn(ACCOUNT), { limit: 1_000 }));
      const chosen = rows.filter((row) => kinds.includes(decodeDeletion(row).kind));
      await Promise.all(chosen.map((row) => sweepSlice({ partition, content: process.content }, ACCOUNT, row)));
    },
    /** The first merge in the deletion queue. @param between its work and the removal of its entry */
    async sweepMerge(between: () => Promise<void>): Promise<void> {
      const rows = await partition.read((at) => at.scan(deletionsIn(ACCOUNT), { limit: 1_000 }));
      const entry = rows.find((row) => decodeDeletion(row).kind === 'merge')!;
      const { content } = process;
      const merge: typeof content.ranges.merge = async (...words) => {
        const merged = await content.ranges.merge(...words);
        await between();
        return merged;
      };
      const ranges = { ...content.ranges, merge };
      await sweepSlice({ partition, content: { ...content, ranges } }, ACCOUNT, entry);
    },
    /** A read that has looked up its first bytes. */
    async openRead(id: ContentId, gen: number) {
      const read = process.content.beginRead();
      await partition.read(async (at) => {
        const found = await ranges().read(at, ACCOUNT, id);
        return read.planRanges(at, ACCOUNT, found, gen, 0, LENGTH);
      });
      return () => bytesFrom(read.stream());
    },
    /** Bytes of all chunks that have a row. */
    async chunkBytes() {
      const rows = await real.read((at) => at.scan(keysUnder([ACCOUNT, 'k']), { limit: 1_000 }));
      return rows.reduce((sum, row) => sum + decodeChunk(row).place.length, 0);
    },
    async findings() {
      return (await check(real, createChunkChecker(real, extents))).findings;
    },
    /** Rows of contents, by their kind. */
    async leftRows() {
      const kinds = ['c', 'M', 'I', 'o', 'N', 'k', 'l', 'x', 'm'];
      const counts: Record<string, number> = {};
      for (const kind of kinds) {
        const rows = await real.read((at) => at.scan(keysUnder([ACCOUNT, kind]), { limit: 1_000 }));
        if (rows.length > 0) counts[kind] = rows.length;
      }
      return counts;
    },
    close: () => real.close(),
  };
  return world;
}

async function setUp(partition: Partition): Promise<void> {
  await partition.transact(encodeKey(['account']), async (tx) => {
    putAccount(tx, { id: ACCOUNT, name: 'seven', keys: ['a2V5'], from: 'command' });
    tx.put(nameKey(ACCOUNT, 'container'), encodeName(CONTAINER));
    tx.put(propertiesKey(ACCOUNT, CONTAINER), encodeProperties({ metadata: {}, policies: [] }));
  });
}

/** Of the current state, or of a snapshot. */
const recordKey = (id: ContentId, gen?: number) => blobKey(ACCOUNT, CONTAINER, `${formatId(id)} ${gen ?? ''}`);
const recordsOf = (id: ContentId) => {
  const from = blobKeyPrefix(ACCOUNT, CONTAINER, `${formatId(id)} `);
  return { from, to: prefixEnd(from) };
};

function putRecord(tx: Transaction, id: ContentId, generation?: number): void {
  const described = { contentId: formatId(id), content: {}, metadata: {}, created: 1n };
  const record = { length: LENGTH, ...described, page: { sequenceNumber: 0n }, generation };
  tx.put(recordKey(id, generation), encodeBlobRecord(record));
}

async function removeRecord(tx: Transaction, content: ReleasingStore, id: ContentId, gen?: number): Promise<void> {
  const row = await tx.get(recordKey(id, gen));
  tx.remove(recordKey(id, gen));
  await releaseContent(tx, content, ACCOUNT, decodeBlobRecord(row!));
}

async function toArray<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
