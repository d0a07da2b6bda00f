/** Conformance: pages of rows, with and without grouping. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeKeyText, type Key, type KeyGrouping, keyPrefix, keysUnder, prefixEnd, type Range } from '../keys.ts';
import type { Page, PagedSnapshot, PageOptions, Partition, Row } from '../partition.ts';
import { bytes, type Harness, key, openOne, openTwo, put, rowNumber, rowText, times } from './harness.ts';

/** Bytes that matter to the encoding: ends of parts, escaped zeros, first and later bytes of characters, and the greatest byte. */
const aByte = fc.constantFrom('\x00', '\x01', '/', 'a', 'b', '\x7f', '\x80', '\xc3', '\xe2', '\xfe', '\xff');
const someBytes = (minLength: number, maxLength: number) =>
  fc.array(aByte, { minLength, maxLength }).map((all) => all.join(''));
const aMark = fc.oneof(someBytes(1, 3), fc.constantFrom('/', '\x00', '\x00\xff', '\xff', '\xff\xff', 'ab'));
const aUnit = fc.constantFrom('\0', 'a', 'b', '/', 'é', '\u07ff', '\u0800', '\ud83d', '\ude00', '\ue000', '\uffff');
const aText = (minLength: number, maxLength: number) =>
  fc.array(aUnit, { minLength, maxLength }).map((units) => units.join(''));

/** All pages one after another. */
async function walk(at: PagedSnapshot, range: Range, options: PageOptions): Promise<Row[]> {
  const found: Row[] = [];
  for (let from: Key | undefined = range.from; from !== undefined; ) {
    const { rows, next }: Page = await at.page({ from, to: range.to }, options);
    expect(rows.length).toBeLessThanOrEqual(options.limit);
    found.push(...rows);
    if (next !== undefined) {
      expect(rows).not.toHaveLength(0);
      expect(next > rows.at(-1)!.key && next < range.to).toBe(true);
    }
    from = next;
  }
  return found;
}

const walkAll = (partition: Partition, range: Range, options: PageOptions): Promise<Row[]> =>
  partition.read((at) => walk(at, range, options));

/** By reading every row. */
function firstOfGroups(keys: readonly string[], { from, delimiter }: KeyGrouping): string[] {
  const found: string[] = [];
  let group: string | undefined;
  for (const each of keys.toSorted((a, b) => (a < b ? -1 : 1))) {
    if (group !== undefined && each.startsWith(group)) continue;
    found.push(each);
    group = undefined;
    for (let place = from; place + delimiter.length <= each.length && group === undefined; place++) {
      if (each.slice(place, place + delimiter.length) === delimiter) group = each.slice(0, place + delimiter.length);
    }
  }
  return found;
}

async function putAll(partition: Partition, keys: readonly Key[], value: (i: number) => Uint8Array = bytes) {
  for (let from = 0; from < keys.length; from += 1_000) {
    await partition.transact(key('pages'), async (tx) => {
      for (const [i, each] of keys.slice(from, from + 1_000).entries()) tx.put(each, value(from + i));
    });
  }
}

export function pages(harness: Harness): void {
  describe('page', () => {
    it('after page returns every row of a range, in order', async () => {
      const partition = await openOne(harness);
      await putAll(
        partition,
        times(1_200, (i) => key('number', i)),
      );
      await put(partition, key('numbers', 1), 'beside');
      for (const limit of [1, 7, 250, 1_199, 1_200, 1_201, 5_000]) {
        for (const grouping of [undefined, { from: 0, delimiter: 'in no key' }]) {
          const found = await walkAll(partition, keysUnder(['number']), { limit, grouping });
          expect(found.map(rowNumber)).toEqual(times(1_200, (i) => i));
        }
      }
    });

    it('has the first rows, and a next key only if rows may follow', async () => {
      const partition = await openOne(harness);
      await putAll(
        partition,
        times(10, (i) => key('number', i)),
      );
      await partition.read(async (at) => {
        const all = await at.page(keysUnder(['number']), { limit: 11 });
        expect([all.rows.map(rowNumber), all.next]).toEqual([times(10, (i) => i), undefined]);
        const some = await at.page(keysUnder(['number']), { limit: 3 });
        expect(some.rows.map(rowNumber)).toEqual([0, 1, 2]);
        expect(some.next! > key('number', 2) && some.next! <= key('number', 3)).toBe(true);
        for (const range of [keysUnder(['nothing']), { from: key('number', 2), to: key('number', 1) }]) {
          const grouping = { from: 0, delimiter: 'n' };
          expect(await at.page(range, { limit: 3 })).toEqual({ rows: [], next: undefined });
          expect(await at.page(range, { limit: 3, grouping })).toEqual({ rows: [], next: undefined });
        }
      });
    });

    it('returns the first row of each group, whatever the bytes are', async () => {
      const partition = await openOne(harness);
      let stores = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(someBytes(1, 6), { minLength: 1, maxLength: 40 }),
          aMark,
          fc.record({ skip: fc.integer({ min: 0, max: 2 }), limit: fc.integer({ min: 1, max: 9 }) }),
          fc.tuple(someBytes(0, 3), someBytes(0, 3)),
          async (endings, delimiter, { skip, limit }, bounds) => {
            const start = key('bytes', ++stores);
            const keys = endings.map((ending) => (start + ending) as Key);
            await putAll(partition, keys);
            const grouping = { from: start.length + skip, delimiter };
            const [low, high] = bounds.toSorted((a, b) => (a < b ? -1 : 1)) as [string, string];
            const part = { from: (start + low) as Key, to: (start + high) as Key };
            for (const range of [keysUnder(['bytes', stores]), part]) {
              const inside = keys.filter((each) => each >= range.from && each < range.to);
              const found = await walkAll(partition, range, { limit, grouping });
              expect(found.map((row) => row.key)).toEqual(firstOfGroups(inside, grouping));
              for (const row of found) expect(rowNumber(row)).toBe(keys.indexOf(row.key));
            }
          },
        ),
        { numRuns: 80 },
      );
    });

    it('keeps groups together whose keys continue with the greatest byte', async () => {
      const partition = await openOne(harness);
      const start = key('last');
      for (const [i, mark] of ['/', '\x00', '\xff', '/\xff\xff'].entries()) {
        const groups = ['a', 'b', 'b\xfe', 'c'].map((each) => start + i + each + mark);
        const endings = [
          ...times(50, (n) => `\x10${String.fromCharCode(n)}`),
          '\xff',
          '\xff\x01',
          '\xff\xff',
          '\xff\xff\xff',
          ...times(50, (n) => `\xff\x10${String.fromCharCode(n)}`),
        ];
        const keys = groups.flatMap((group) => endings.map((ending) => (group + ending) as Key));
        await putAll(partition, keys);
        const grouping = { from: start.length, delimiter: mark };
        const range = { from: `${start}${i}` as Key, to: `${start}${i + 1}` as Key };
        for (const limit of [1, 2, 100]) {
          const found = await walkAll(partition, range, { limit, grouping });
          expect(found.map((row) => row.key)).toEqual(firstOfGroups(keys, grouping));
        }
      }
    });

    it('groups texts at a delimiter of any units, in the order of the texts', async () => {
      const partition = await openOne(harness);
      let stores = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(aText(0, 6), { minLength: 1, maxLength: 40 }),
          aText(0, 2),
          aText(1, 3),
          aText(0, 4),
          fc.integer({ min: 1, max: 9 }),
          async (names, prefix, delimiter, begin, limit) => {
            const parts = ['texts', ++stores];
            await putAll(
              partition,
              names.map((name) => key(...parts, name)),
            );
            const from = keyPrefix(parts, prefix);
            const grouping = { from: from.length, delimiter: encodeKeyText(delimiter) };
            // It may begin in the middle of a group.
            const first = key(...parts, prefix + begin);
            const found = await walkAll(partition, { from: first, to: prefixEnd(from) }, { limit, grouping });
            const inside = names.filter((name) => name.startsWith(prefix) && name >= prefix + begin);
            const expected = firstOfGroups(inside, { from: prefix.length, delimiter });
            expect(found.map((row) => names[rowNumber(row)])).toEqual(expected);
          },
        ),
        { numRuns: 80 },
      );
    });

    it('returns small and large groups, also with single rows between them', async () => {
      const partition = await openOne(harness);
      const sizes = [1, 2, 3, 4, 5, 23, 24, 25, 26, 1, 1, 199, 200, 201, 249, 250, 251, 1_100, 1];
      const names = sizes.flatMap((size, i) => {
        const folder = String(i).padStart(2, '0');
        return [`${folder}!`, ...times(size, (n) => `${folder}/${String(n).padStart(4, '0')}`), `${folder}~`];
      });
      await putAll(
        partition,
        names.map((name) => key('folder', name)),
      );
      const from = keyPrefix(['folder'], '');
      const grouping = { from: from.length, delimiter: '/' };
      const expected = names.filter((name) => !name.includes('/') || name.endsWith('/0000'));
      for (const limit of [1, 2, 3, 500]) {
        const found = await walkAll(partition, { from, to: prefixEnd(from) }, { limit, grouping });
        expect(found.map((row) => names[rowNumber(row)])).toEqual(expected);
      }
      const within = keyPrefix(['folder'], '17/');
      const found = await walkAll(partition, { from: within, to: prefixEnd(within) }, { limit: 2_000, grouping });
      expect(found).toHaveLength(1);
    });

    it('groups rows whose common prefix is longer than an index entry', async () => {
      const partition = await openOne(harness);
      const long = '\u4e2d'.repeat(900);
      const names = ['a', 'b', 'c'].flatMap((letter) => [
        `${long}${letter}`,
        `${long}${letter}/1`,
        ...times(40, (i) => `${long}${letter}/${10 + i}`),
      ]);
      await putAll(
        partition,
        names.map((name) => key('long', name)),
      );
      const from = keyPrefix(['long'], '');
      const grouping = { from: from.length, delimiter: '/' };
      for (const limit of [1, 2, 50]) {
        const found = await walkAll(partition, { from, to: prefixEnd(from) }, { limit, grouping });
        expect(found.map((row) => names[rowNumber(row)]!.slice(long.length))).toEqual([
          'a',
          'a/1',
          'b',
          'b/1',
          'c',
          'c/1',
        ]);
      }
    });

    it('is bounded in size, and skips nothing', async () => {
      const partition = await openOne(harness);
      const value = Buffer.alloc(150_000, 'x');
      const keys = times(60, (i) => key('large', `${i >> 1}`.padStart(3, '0'), i));
      for (let from = 0; from < keys.length; from += 20)
        await putAll(partition, keys.slice(from, from + 20), () => value);
      const grouping = { from: key('large').length, delimiter: '\x00' };
      for (const [options, count] of [
        [{ limit: 1_000 }, 60],
        [{ limit: 1_000, grouping }, 30],
      ] as const) {
        const found = await walkAll(partition, keysUnder(['large']), options);
        expect(found).toHaveLength(count);
        for (const row of found) expect(row.value.equals(value)).toBe(true);
      }
    });

    it('after page shows one snapshot, whatever is written meanwhile', async () => {
      const [one, other] = await openTwo(harness);
      const names = ['a/1', 'a/2', 'b', 'c/1', 'd', 'e/1', 'f'];
      await putAll(
        one,
        names.map((name) => key('name', name)),
      );
      const from = keyPrefix(['name'], '');
      const options = { limit: 1, grouping: { from: from.length, delimiter: '/' } };
      const found = await one.read(async (at) => {
        const first = await at.page({ from, to: prefixEnd(from) }, options);
        await other.transact(key('name'), async (tx) => {
          for (const name of ['b', 'c/1', 'f']) tx.remove(key('name', name));
          for (const name of ['a/0', 'bb', 'c/0', 'd/1']) tx.put(key('name', name), bytes('new'));
          tx.put(key('name', 'd'), bytes('new'));
        });
        return [...first.rows, ...(await walk(at, { from: first.next!, to: prefixEnd(from) }, options))];
      });
      expect(found.map(rowText)).toEqual(['0', '2', '3', '4', '5', '6']);
    });
  });
}
