/** Conformance: order and bounds of scans. */
import { describe, expect, it } from 'vitest';
import { decodeKey, type Key, keyPrefix, keysUnder, prefixEnd, type Range, keyAfter as rightBehind } from '../keys.ts';
import type { Partition, ScanOptions } from '../partition.ts';
import { bytes, get, type Harness, key, openOne, openTwo, put, rowText, times } from './harness.ts';

const NAMES = [
  '',
  '\0',
  '\0\0',
  'a',
  'a\0',
  'a\0b',
  'a/',
  'a/b',
  'aa',
  'b',
  '\u007f',
  '\u0080',
  '\u07ff',
  '\u0800',
].concat(['\ud800', '\u{10000}', '\u{1f600}', '\udfff', '\ue000', '\uffff']);
const inOrder = NAMES.toSorted((a, b) => (a < b ? -1 : 1));

async function scan(partition: Partition, range: Range, options: ScanOptions): Promise<string[]> {
  const rows = await partition.read((at) => at.scan(range, options));
  return rows.map((row) => String(decodeKey(row.key).at(-1)));
}

async function withNames(harness: Harness): Promise<Partition> {
  const partition = await openOne(harness);
  await partition.transact(key('names'), async (tx) => {
    for (const name of NAMES) tx.put(key('names', name), bytes('0123456789'));
    for (const beside of ['name', 'namesake']) tx.put(key(beside, 'other'), bytes(1));
  });
  return partition;
}

async function withNumbers(harness: Harness, count: number): Promise<[Partition, Partition]> {
  const partitions = await openTwo(harness);
  await partitions[0].transact(key('number'), async (tx) => {
    for (let i = 0; i < count; i++) tx.put(key('number', i), bytes(i));
  });
  return partitions;
}

export function scans(harness: Harness): void {
  describe('scan', () => {
    it('returns rows in the order of UTF-16 units, both ways', async () => {
      const partition = await withNames(harness);
      expect(await scan(partition, keysUnder(['names']), { limit: 100 })).toEqual(inOrder);
      expect(await scan(partition, keysUnder(['names']), { limit: 100, reverse: true })).toEqual(inOrder.toReversed());
    });

    it('returns at most `limit` rows, from either end', async () => {
      const partition = await withNames(harness);
      for (const limit of [1, 2, NAMES.length - 1, NAMES.length, NAMES.length + 1]) {
        expect(await scan(partition, keysUnder(['names']), { limit })).toEqual(inOrder.slice(0, limit));
        expect(await scan(partition, keysUnder(['names']), { limit, reverse: true })).toEqual(
          inOrder.toReversed().slice(0, limit),
        );
      }
    });

    it('stops after the row that reaches `bytesMax`', async () => {
      const partition = await withNames(harness);
      for (const [bytesMax, rows] of [
        [1, 1],
        [10, 1],
        [11, 2],
        [30, 3],
      ] as const) {
        expect(await scan(partition, keysUnder(['names']), { limit: 100, bytesMax })).toEqual(inOrder.slice(0, rows));
        expect(await scan(partition, keysUnder(['names']), { limit: 100, bytesMax, reverse: true })).toEqual(
          inOrder.toReversed().slice(0, rows),
        );
      }
      expect(await scan(partition, keysUnder(['names']), { limit: 2, bytesMax: 30 })).toHaveLength(2);
    });

    it('includes its start and excludes its end', async () => {
      const partition = await withNames(harness);
      const range = { from: key('names', 'a'), to: key('names', 'b') };
      const inside = inOrder.filter((name) => name >= 'a' && name < 'b');
      expect(await scan(partition, range, { limit: 100 })).toEqual(inside);
      expect(await scan(partition, range, { limit: 100, reverse: true })).toEqual(inside.toReversed());
    });

    it('continues right after a key, and after every key with its prefix', async () => {
      const partition = await withNames(harness);
      const { to } = keysUnder(['names']);
      for (const name of NAMES) {
        expect(await scan(partition, { from: rightBehind(key('names', name)), to }, { limit: 100 })).toEqual(
          inOrder.filter((each) => each > name),
        );
        const prefix = keyPrefix(['names'], name);
        expect(await scan(partition, { from: prefix, to: prefixEnd(prefix) }, { limit: 100 })).toEqual(
          inOrder.filter((each) => each.startsWith(name)),
        );
        expect(await scan(partition, { from: prefixEnd(prefix), to }, { limit: 100 })).toEqual(
          inOrder.filter((each) => each > name && !each.startsWith(name)),
        );
      }
    });

    it('returns nothing from an empty range, from an empty store and from a range that ends before it starts', async () => {
      const empty = await openOne(harness);
      expect(await scan(empty, keysUnder(['names']), { limit: 10 })).toEqual([]);
      expect(await scan(empty, keysUnder(['names']), { limit: 10, reverse: true })).toEqual([]);
      const partition = await withNames(harness);
      const nothing: Range[] = [
        keysUnder(['nothing']),
        { from: key('names', 'a'), to: key('names', 'a') },
        { from: key('names', 'b'), to: key('names', 'a') },
      ];
      for (const range of nothing) {
        expect(await scan(partition, range, { limit: 10 })).toEqual([]);
        expect(await scan(partition, range, { limit: 10, reverse: true })).toEqual([]);
      }
    });

    it('pages over 2,000 rows without a gap, both ways', async () => {
      const [partition] = await withNumbers(harness, 2000);
      for (const reverse of [false, true]) {
        const found: string[] = [];
        let left: Range = keysUnder(['number']);
        for (;;) {
          const page = await partition.read((at) => at.scan(left, { limit: 70, reverse }));
          if (page.length === 0) break;
          found.push(...page.map((row) => rowText(row)!));
          const last = page.at(-1)!.key;
          left = reverse ? { from: left.from, to: last } : { from: rightBehind(last), to: left.to };
        }
        const all = times(2000, String);
        expect(found).toEqual(reverse ? all.toReversed() : all);
      }
    });

    it('keeps its limits when the transaction put and removed rows in the range', async () => {
      const [partition] = await withNumbers(harness, 10);
      const { value } = await partition.transact(key('queue key'), async (tx) => {
        for (const gone of [0, 1, 8, 9]) tx.remove(key('number', gone));
        tx.put(key('number', 3), bytes('three'));
        tx.put(key('number', 20), bytes('twenty'));
        const of = async (options: ScanOptions) => (await tx.scan(keysUnder(['number']), options)).map(rowText);
        return [
          await of({ limit: 2 }),
          await of({ limit: 3, reverse: true }),
          await of({ limit: 100 }),
          await of({ limit: 100, bytesMax: 6 }),
          await of({ limit: 100, bytesMax: 7, reverse: true }),
        ];
      });
      expect(value).toEqual([
        ['2', 'three'],
        ['twenty', '7', '6'],
        ['2', 'three', '4', '5', '6', '7', 'twenty'],
        ['2', 'three'],
        ['twenty', '7'],
      ]);
    });
  });

  describe('the range check of a scan', () => {
    const rerun: [string, Key, boolean][] = [
      ['a new row before the first', key('number', 0, 'before'), true],
      ['a new row between', key('number', 2, 'between'), true],
      ['a new version of a row', key('number', 4), true],
      ['a new row after the last one that was returned', key('number', 8, 'behind'), false],
      ['a new version after the last row that was returned', key('number', 9), false],
      ['a row outside the range', key('numbers', 1), false],
    ];
    for (const [title, changed, again] of rerun) {
      it(`${again ? 'conflicts with' : 'allows'} ${title}`, async () => {
        const [one, other] = await withNumbers(harness, 10);
        let runs = 0;
        await one.transact(key('queue key'), async (tx) => {
          await tx.scan({ from: key('number', 0), to: keysUnder(['number']).to }, { limit: 6 });
          if (++runs === 1) await put(other, changed, 'changed');
          tx.put(key('written'), bytes(1));
        });
        expect(runs).toBe(again ? 2 : 1);
        expect(await get(one, key('written'))).toBe('1');
      });
    }

    it('conflicts with a removal', async () => {
      const [one, other] = await withNumbers(harness, 10);
      const found: number[] = [];
      await one.transact(key('queue key'), async (tx) => {
        found.push((await tx.scan(keysUnder(['number']), { limit: 20 })).length);
        if (found.length === 1) await other.transact(key('number', 9), async (tx) => tx.remove(key('number', 9)));
        tx.put(key('written'), bytes(1));
      });
      expect(found).toEqual([10, 9]);
    });

    it('covers the rows that a reverse scan returned, and no more', async () => {
      const [one, other] = await withNumbers(harness, 10);
      const runs = { near: 0, far: 0 };
      await one.transact(key('queue key'), async (tx) => {
        await tx.scan(keysUnder(['number']), { limit: 3, reverse: true });
        if (++runs.near === 1) await put(other, key('number', 8, 'inside'), 1);
        tx.put(key('written'), bytes(1));
      });
      await one.transact(key('queue key'), async (tx) => {
        await tx.scan(keysUnder(['number']), { limit: 3, reverse: true });
        if (++runs.far === 1) await put(other, key('number', 6, 'outside'), 1);
        tx.put(key('written'), bytes(1));
      });
      expect(runs).toEqual({ near: 2, far: 1 });
    });

    it('is not made for scanUnchecked and getUnchecked', async () => {
      const [one, other] = await withNumbers(harness, 10);
      let runs = 0;
      const { value } = await one.transact(key('queue key'), async (tx) => {
        const rows = await tx.scanUnchecked(keysUnder(['number']), { limit: 3 });
        const got = await tx.getUnchecked([key('number', 2), key('number', 'absent')]);
        if (++runs === 1) {
          await put(other, key('number', 1), 'changed');
          await put(other, key('number', 2), 'changed');
          await put(other, key('number', 'absent'), 'there');
        }
        tx.put(key('written'), bytes(1));
        return [rows.length, ...got.map(rowText)];
      });
      expect([runs, value]).toEqual([1, [3, '2', undefined]]);
    });

    it('is replaced by addReadCheck for single rows of scanUnchecked', async () => {
      const [one, other] = await withNumbers(harness, 10);
      let runs = 0;
      const { value } = await one.transact(key('queue key'), async (tx) => {
        const rows = await tx.scanUnchecked(keysUnder(['number']), { limit: 3 });
        tx.addReadCheck(rows[1]!);
        if (++runs < 3) await put(other, rows[runs]!.key, 'changed');
        tx.put(key('written'), bytes(1));
        return rowText(rows[1]);
      });
      expect([runs, value]).toEqual([2, 'changed']);
    });
  });
}
