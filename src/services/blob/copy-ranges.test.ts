/** Running copies of append and page blobs, stopped at every slice: what the next process finds, and what the copy has in the end. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { base, OTHER, openCopies, stopAfterUploads } from '../../../test/support/running-copies.ts';
import { decodeChunk } from '../../content/rows.ts';
import { keysUnder } from '../../partition/keys.ts';
import type { RemoteSources } from '../common/remote-sources.ts';
import { appendBlock, appendBlockFromUrl, createAppendBlob } from './append-blobs.ts';
import { copyIncrementally } from './incremental-copies.ts';
import { clearPages, createPageBlob, putPage, setPageProperties } from './page-blobs.ts';
import { abortCopy } from './pending-copies.ts';
import { snapshotBlob } from './snapshots.ts';

const PAGE = 512;
const MIB = 1 << 20;
const SOURCE = base('theirs', 'from');
const whole = (bytes: Buffer) => ({
  ...{ length: bytes.length, expected: {}, ...(bytes.length <= 16_384 && { whole: bytes }) },
  async *bytes() {
    yield bytes;
  },
});

type Copies = Awaited<ReturnType<typeof openCopies>>;

const create = ({ other }: Copies, pages: number) =>
  createPageBlob(other, { ...SOURCE, content: {}, metadata: [], length: pages * PAGE, sequenceNumber: undefined });
const put = ({ other }: Copies, page: number, bytes: Buffer) =>
  putPage(other, {
    ...SOURCE,
    ...{ range: `bytes=${page * PAGE}-${page * PAGE + bytes.length - 1}`, sequence: {}, wantsMd5: false },
    body: whole(bytes),
  });
const clear = ({ other }: Copies, page: number, count: number) =>
  clearPages(other, { ...SOURCE, range: `bytes=${page * PAGE}-${(page + count) * PAGE - 1}`, sequence: {} });
const resize = ({ other }: Copies, pages: number) =>
  setPageProperties(other, { ...SOURCE, content: undefined, length: pages * PAGE, sequence: undefined });
const takeSnapshot = async ({ other }: Copies) => (await snapshotBlob(other, { ...SOURCE, metadata: [] })).snapshot;
const startIncremental = ({ storage }: Copies, snapshot: bigint) =>
  copyIncrementally(storage, {
    ...base('box', 'to'),
    source: { url: 'http://here/', service: 'blob', container: 'theirs', item: 'from', snapshot },
  });

/** Runs the copy, stopped before each of its uploads. Returns how often it was. */
async function runStopped(copies: Copies): Promise<number> {
  const { lastKey, run, state, findings, context } = copies;
  for (let stops = 0; ; stops++) {
    const { signal, content } = stopAfterUploads(context, 1);
    await run(lastKey(), signal, { content });
    expect(await findings()).toEqual([]);
    if ((await state()).copy?.status === undefined) return stops;
    expect((await state()).copy?.status).toBe('pending');
  }
}

describe('A running copy of a page blob', () => {
  it('goes on where it was stopped, and shows nothing before the end', async () => {
    const copies = await openCopies();
    const { start, state, bytes } = copies;
    await create(copies, 40_000);
    const expected = Buffer.alloc(40_000 * PAGE);
    for (const [page, length] of [
      [0, 4 * MIB],
      [8_192, 4 * MIB],
      [16_384, 4 * MIB],
      [30_000, PAGE],
      [39_999, PAGE],
    ] as const) {
      const written = Buffer.alloc(length, `bytes of page ${page} `);
      await put(copies, page, written);
      written.copy(expected, page * PAGE);
    }
    await start();
    expect((await state()).length).toBe(0);
    expect(await runStopped(copies)).toBeGreaterThan(1);
    expect((await state()).page).toEqual({ sequenceNumber: 0n, tier: undefined, incremental: undefined });
    expect((await bytes()).equals(expected)).toBe(true);
  });

  it('leaves no byte when it is aborted, however far it is', async () => {
    const copies = await openCopies();
    const { start, run, state, findings, context, storage, world } = copies;
    await create(copies, 80_000);
    for (const page of [0, 20_000, 40_000, 60_000]) await put(copies, page, Buffer.alloc(2 * MIB, 'x'));
    for (const uploads of [0, 1, 2, 3]) {
      const key = await start();
      const { signal, content } = stopAfterUploads(context, uploads);
      await run(key, signal, { content });
      const { copy } = await state();
      await abortCopy(storage, { ...base('box', 'to'), copyId: copy!.id });
      expect(await state()).toMatchObject({ length: 0, copy: { status: 'aborted' } });
      expect(await findings()).toEqual([]);
      await world.sweep();
      expect(await findings()).toEqual([]);
    }
  });
});

describe('A running copy of an append blob', () => {
  it('has the count of blocks and the bytes of the source in the end', async () => {
    const copies = await openCopies();
    const { other, start, state, bytes } = copies;
    await createAppendBlob(other, { ...SOURCE, content: {}, metadata: [] });
    const parts = [7 * MIB, 3, 20 * MIB, 100].map((length, i) => Buffer.alloc(length, `part ${i} `));
    for (const part of parts) await appendBlock(other, { ...SOURCE, append: {}, wantsMd5: false, body: whole(part) });
    await start();
    expect((await state()).append).toEqual({ blocks: 0 });
    expect(await runStopped(copies)).toBeGreaterThan(1);
    expect((await state()).append).toEqual({ blocks: 4 });
    expect((await bytes()).equals(Buffer.concat(parts))).toBe(true);
  });
});

describe('Append Block From URL of another server', () => {
  it.each([5_000, 3 * MIB + 5])('makes chunks that end with their map pages: %i bytes', async (length) => {
    const bytes = Buffer.alloc(length, 'remote ');
    const head = { length, etag: 'x', modified: undefined, content: {}, metadata: [] };
    const remote: RemoteSources = {
      open: async () => ({
        head,
        async *bytes() {
          yield bytes;
        },
        close() {},
      }),
      listPages: () => Promise.reject(new Error('not a page blob')),
    };
    const { other, partition, findings } = await openCopies(remote);
    await createAppendBlob(other, { ...SOURCE, content: {}, metadata: [] });
    await appendBlock(other, { ...SOURCE, append: {}, wantsMd5: false, body: whole(Buffer.from('abc')) });
    const url = 'http://elsewhere/x';
    await appendBlockFromUrl(other, {
      ...{ ...SOURCE, append: {}, wantsMd5: false, source: { url, remote: { url } } },
      ...{ sourceConditions: {}, sourceHashes: {}, sourceBytesMax: 100 * MIB },
    });
    const rows = await partition.read((at) => at.scan(keysUnder([OTHER, 'k']), { limit: 100 }));
    const lengths = rows.map((row) => decodeChunk(row).place.length);
    expect(lengths).toEqual(length === 5_000 ? [length] : [MIB - 3, MIB, MIB, 8]);
    expect(await findings()).toEqual([]);
  });
});

/** Written pages are so far from each other that a copy of them takes several slices. */
const STRIDE = 700;
const UNITS = 56;
const aChange = fc.oneof(
  fc.record({ kind: fc.constant('put' as const), unit: fc.nat(UNITS - 1), count: fc.integer({ min: 1, max: 20 }) }),
  fc.record({ kind: fc.constant('clear' as const), unit: fc.nat(UNITS - 1), count: fc.integer({ min: 1, max: 20 }) }),
  fc.record({ kind: fc.constant('resize' as const), units: fc.integer({ min: 1, max: UNITS }) }),
);
const aRound = fc.record({
  changes: fc.array(aChange, { maxLength: 8 }),
  /** What happens to the copy of the round's snapshot. */
  fate: fc.constantFrom('runs', 'stopped', 'aborted', 'not copied'),
});

describe('Incremental copies', () => {
  it('are what the snapshots of the source were, whatever happens between and to them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(aRound, { minLength: 1, maxLength: 6 }), async (rounds) => {
        const copies = await openCopies();
        const { run, state, bytes, findings, lastKey, storage, context, world } = copies;
        await create(copies, UNITS * STRIDE);
        let pages: Buffer = Buffer.alloc(UNITS * STRIDE * PAGE);
        const taken: { at: bigint; bytes: Buffer }[] = [];
        for (const [round, { changes, fate }] of rounds.entries()) {
          for (const change of changes) pages = await apply(copies, pages, change, round);
          const snapshot = await takeSnapshot(copies);
          if (fate === 'not copied') continue;
          await startIncremental(copies, snapshot);
          if (fate === 'aborted') {
            const { signal, content } = stopAfterUploads(context, round % 2);
            await run(lastKey(), signal, { content });
            const { copy } = await state();
            if (copy?.status === 'pending') {
              await abortCopy(storage, { ...base('box', 'to'), copyId: copy.id });
              continue;
            }
          } else if (fate === 'stopped') await runStopped(copies);
          else await run(lastKey());
          const found = await state();
          expect(found).toMatchObject({ length: pages.length, page: { incremental: { copied: snapshot } } });
          taken.push({ at: found.page!.incremental!.taken!, bytes: Buffer.from(pages) });
        }
        await world.sweep();
        for (const each of taken) expect((await bytes(each.at)).equals(each.bytes)).toBe(true);
        expect(await findings()).toEqual([]);
      }),
      { numRuns: 12 },
    );
  });
});

async function apply(
  copies: Copies,
  pages: Buffer,
  change: typeof aChange extends fc.Arbitrary<infer T> ? T : never,
  round: number,
): Promise<Buffer> {
  if (change.kind === 'resize') {
    await resize(copies, change.units * STRIDE);
    const resized = Buffer.alloc(change.units * STRIDE * PAGE);
    pages.copy(resized);
    return resized;
  }
  const { unit } = change;
  const count = Math.min(change.count, pages.length / PAGE / STRIDE - unit);
  if (count <= 0) return pages;
  if (change.kind === 'clear') {
    await clear(copies, unit * STRIDE, count * STRIDE);
    pages.fill(0, unit * STRIDE * PAGE, (unit + count) * STRIDE * PAGE);
    return pages;
  }
  for (let page = unit * STRIDE; page < (unit + count) * STRIDE; page += STRIDE) {
    const written = Buffer.alloc(PAGE, `round ${round} page ${page} `);
    await put(copies, page, written);
    written.copy(pages, page * PAGE);
  }
  return pages;
}
