import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { randomOf } from '../../../test/support/random.mjs';
import { key, put, rowText, times } from '../conformance/harness.ts';
import { keysUnder } from '../keys.ts';
import type { PagedSnapshot, Row } from '../partition.ts';
import { openPartition } from '../transact.ts';
import { type LmdbOptions, openLmdb } from './engine.ts';
import { EmptyRanges } from './overlay.ts';
import { segmentFile } from './wal.ts';

async function open(
  options: Omit<LmdbOptions, 'location'>,
  location = mkdtempSync(join(tmpdir(), 'holdfast-overlay-')),
) {
  const engine = await openLmdb({ location, ...options });
  onTestFinished(async () => {
    await engine.close();
    rmSync(location, { recursive: true, force: true });
  });
  return { location, engine, partition: openPartition(engine) };
}

const all = keysUnder(['row']);
const shown = (rows: readonly Row[]): string[] => rows.map((row) => `${row.key} ${rowText(row)} ${row.version}`);

describe('A snapshot', () => {
  it('shows to its end what it showed at first, whatever is committed and checkpointed meanwhile', async () => {
    const seed = Date.now();
    const random = randomOf(seed);
    const { engine, partition } = await open({ checkpointBytes: 3_000 });
    const held: { at: PagedSnapshot & { end(): void }; rows: string[] }[] = [];
    const check = async ({ at, rows }: (typeof held)[number]): Promise<void> => {
      const found = await at.scan(all, { limit: 1_000 });
      expect(shown(found), `seed ${seed}`).toEqual(rows);
      expect(shown((await at.scan(all, { limit: 1_000, reverse: true })).reverse())).toEqual(rows);
      const each = await at.getMany(times(60, (i) => key('row', i)));
      expect(shown(each.flatMap((row) => row ?? []))).toEqual(rows);
    };
    for (let step = 0; step < 1_500; step++) {
      await partition.transact(key('anchor'), async (tx) => {
        for (let writes = 1 + random.below(4); writes > 0; writes--) {
          // Two of three writes remove a row, so that long empty ranges come to be.
          const row = key('row', random.below(60));
          if (random.below(3) > 0) tx.remove(row);
          else tx.put(row, Buffer.from(`${step}`));
        }
      });
      if (step % 7 === 0) {
        const at = engine.snapshot();
        held.push({ at, rows: shown(await at.scan(all, { limit: 1_000 })) });
      }
      if (held.length > 6) {
        const [ended] = held.splice(random.below(held.length), 1);
        await check(ended!);
        ended!.at.end();
      }
    }
    for (const each of held) {
      await check(each);
      each.at.end();
    }
  });
});

describe('Many keys that are read at once', () => {
  it('are found if the checkpoint alone has a row between them', async () => {
    const location = mkdtempSync(join(tmpdir(), 'holdfast-overlay-'));
    const before = openPartition(await openLmdb({ location }));
    await put(before, key('row', 7), 'there');
    await before.close();
    const { partition } = await open({}, location);
    const rows = await partition.read((at) => at.getMany(times(20, (i) => key('row', i))));
    expect(rows.map(rowText)).toEqual(times(20, (i) => (i === 7 ? 'there' : undefined)));
  });
});

describe('A range without rows', () => {
  it('is remembered as wide as it is, and hides no row beside it, above it or after the next checkpoint', async () => {
    const seed = Date.now();
    const random = randomOf(seed);
    const location = mkdtempSync(join(tmpdir(), 'holdfast-overlay-'));
    onTestFinished(() => rmSync(location, { recursive: true, force: true }));
    const before = openPartition(await openLmdb({ location }));
    const keys = times(60, (i) => key('row', i));
    const rows = new Set(keys.filter(() => random.below(6) === 0));
    for (const each of rows) await put(before, each, 'there');
    await before.close();
    for (let round = 0; round < 3; round++) {
      const partition = openPartition(await openLmdb({ location }));
      for (let step = 0; step < 300; step++) {
        const [from, to] = [random.below(60), random.below(61)].sort((a, b) => a - b) as [number, number];
        const range = { from: keys[from]!, to: keys[to] ?? all.to };
        const reverse = random.below(3) === 0;
        const found = await partition.read((at) => at.scan(range, { limit: 100, reverse }));
        const expected = keys.slice(from, to).filter((each) => rows.has(each));
        expect(found.map((row) => row.key).sort(), `seed ${seed}`).toEqual(expected);
        if (random.below(30) > 0) continue;
        const added = keys[random.below(60)]!;
        rows.add(added);
        await put(partition, added, 'new');
      }
      await partition.close();
    }
  });
});

describe('Rows at the head of a range that are removed again and again', () => {
  it('are skipped, and a row that is put there is found by snapshots that may show it', async () => {
    const { engine, partition } = await open({ checkpointBytes: 60_000 });
    const count = 500;
    for (let i = 0; i < count; i += 50) {
      await partition.transact(key('anchor'), async (tx) => {
        for (const each of times(50, (at) => key('row', i + at))) tx.put(each, Buffer.alloc(100, 1));
      });
    }
    const first = async (): Promise<Row | undefined> => {
      return (await partition.read((at) => at.scan(all, { limit: 1 })))[0];
    };
    for (let i = 0; i < count; i++) {
      expect((await first())?.key).toBe(key('row', i));
      await partition.transact(key('anchor'), async (tx) => tx.remove(key('row', i)));
      if (i % 90 !== 80) continue;
      const before = engine.snapshot();
      await put(partition, key('row', i - 40), 'again');
      expect(await before.scan({ from: all.from, to: key('row', i) }, { limit: 1 })).toEqual([]);
      expect((await first())?.key).toBe(key('row', i - 40));
      await partition.transact(key('anchor'), async (tx) => tx.remove(key('row', i - 40)));
      before.end();
    }
    expect(await first()).toBeUndefined();
    await put(partition, key('row', 3), 'last');
    expect((await first())?.key).toBe(key('row', 3));
  });
});

describe('A checkpoint that falls behind', () => {
  it('makes writers wait, so that neither the log nor memory grows', async () => {
    const { location, partition } = await open({ checkpointBytes: 50_000, checkpointDelayMilliseconds: 100 });
    await Promise.all(
      times(8, async (client) => {
        for (let i = 0; i < 150; i++) await put(partition, key('row', client, i), 'x'.repeat(3_000));
      }),
    );
    const sizes = [0, 1].map((slot) => statSync(segmentFile(location, slot)).size);
    // Of 3.6 MB; a file grows by half a megabyte at once.
    expect(Math.max(...sizes)).toBeLessThan(4 * 50_000 + (1 << 20) + 200_000);
    expect(await partition.read((at) => at.scan(all, { limit: 2_000 }))).toHaveLength(1_200);
  });
});

describe('A value of megabytes', () => {
  it('is read from the overlay and from a checkpoint as it was put', async () => {
    const { engine, partition } = await open({ checkpointBytes: 4 << 20 });
    const values = times(6, (i) => Buffer.alloc(1_500_000 + i, `${i} `));
    for (const [i, value] of values.entries()) {
      await partition.transact(key('anchor'), async (tx) => {
        tx.put(key('row', i), value);
        tx.put(key('small', i), Buffer.from(`${i}`));
      });
      for (const [j, expected] of values.slice(0, i + 1).entries()) {
        const row = await partition.read((at) => at.get(key('row', j)));
        expect(row?.value.equals(expected)).toBe(true);
      }
    }
    expect(engine.isBroken?.()).toBe(false);
  });
});

describe('EmptyRanges', () => {
  const { from: first, to: last } = all;

  it('are few, however many rows are put into them, and hide none of these', () => {
    const ranges = new EmptyRanges();
    ranges.add(first, last, 1);
    const keys = Array.from({ length: 1_000 }, (_, at) => key('row', (at * 7_919) % 1_000));
    for (const key of keys) ranges.excludeKey(key);
    const scanned = [...ranges.outside(all, 1)];
    expect(scanned.length).toBeLessThan(40);
    for (const key of keys) expect(scanned.some(({ from, to }) => from <= key && key < to)).toBe(true);
  });

  it('keep what is before the rows that are put one after another', () => {
    const ranges = new EmptyRanges();
    ranges.add(first, last, 1);
    for (let at = 500; at < 1_000; at++) ranges.excludeKey(key('row', at));
    const [scanned] = ranges.outside(all, 1);
    expect(scanned!.from).toBe(key('row', 500));
  });
});
