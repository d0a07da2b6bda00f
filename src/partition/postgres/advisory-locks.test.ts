import { describe, expect, it } from 'vitest';
import { bytes, key, makeCommit, times } from '../conformance/harness.ts';
import {
  type Key,
  keyAfter,
  keyPrefix,
  keysUnder,
  prefixEnd,
  type Range,
  volatileKey,
  volatileKeysUnder,
} from '../keys.ts';
import type { Commit } from '../partition.ts';
import { LOCKS_MAX, locksFor } from './advisory-locks.ts';

const putting = (...keys: Key[]): Commit =>
  makeCommit({
    writeSets: [{ timestamp: 1n, writes: keys.map((each) => ({ kind: 'put', key: each, value: bytes(1) })) }],
  });
const checking = (...keys: Key[]): Commit => makeCommit({ checks: keys.map((each) => ({ key: each })) });
const scanning = (range: Range): Commit => makeCommit({ ranges: [{ range, rows: [] }] });

/** Whether one commit waits for the other. */
function conflict(one: Commit, other: Commit, stores: [string, string] = ['s', 's']): boolean {
  const theirs = new Map(locksFor(stores[1], other).map(({ number, exclusive }) => [number, exclusive]));
  return locksFor(stores[0], one).some(
    ({ number, exclusive }) => theirs.has(number) && (exclusive || theirs.get(number)),
  );
}

const CELL = key(7, 'm', 1, 2, 0);
const NAME = key(7, 'n', 'blob', 'photos');

describe('The locks of a commit', () => {
  it('exclude writers of a row from each other and from commits that check it', () => {
    expect(conflict(putting(CELL), putting(CELL))).toBe(true);
    expect(conflict(putting(CELL), checking(CELL))).toBe(true);
    expect(conflict(checking(CELL), checking(CELL))).toBe(false);
    expect(conflict(putting(CELL), putting(key(7, 'm', 1, 2, 1)))).toBe(false);
    expect(conflict(putting(CELL), putting(CELL), ['s', 'another store'])).toBe(false);
  });

  const ranges: [string, Range, boolean][] = [
    ['its content', keysUnder([7, 'm', 1, 2]), true],
    ['the beginning of its content', { from: keysUnder([7, 'm', 1, 2]).from, to: keyAfter(CELL) }, true],
    ['its kind', keysUnder([7, 'm']), true],
    ['its account', keysUnder([7]), true],
    ['everything', { from: '' as Key, to: '\xff' as Key }, true],
    ['keys from its kind to another one', { from: key(7, 'm'), to: key(7, 'x') }, true],
    ['another content', keysUnder([7, 'm', 1, 3]), false],
    ['another kind', keysUnder([7, 'n']), false],
    ['another account', keysUnder([8]), false],
  ];
  for (const [title, range, isHeld] of ranges) {
    it(`${isHeld ? 'exclude writers of a row' : 'allow writers of a row'} while ${title} is scanned`, () => {
      expect(conflict(putting(CELL), scanning(range))).toBe(isHeld);
      expect(conflict(scanning(range), putting(CELL))).toBe(isHeld);
    });
  }

  it('cover a range of names with a common prefix, whatever is in the names', () => {
    const names = ['', 'a', 'a\0', 'a\0b', 'b', 'ÿ', '\uffff', 'photos'];
    for (const name of names) {
      for (const prefix of names) {
        const from = keyPrefix([7, 'n', 'blob'], prefix);
        const range = { from, to: prefixEnd(from) };
        const row = key(7, 'n', 'blob', name);
        const isIn = row >= range.from && row < range.to;
        if (isIn) expect(conflict(putting(row), scanning(range)), JSON.stringify([name, prefix])).toBe(true);
      }
    }
  });

  it('cover every key of a range, whatever the range', () => {
    const parts = [7, 'n', 'a', 'a\0', 'a\0\xff', Buffer.of(0, 255)];
    const keys = parts.flatMap((one) => parts.flatMap((two) => parts.map((three) => key(one, two, three))));
    const ends = [...keys, ...keys.map(prefixEnd), ...keys.map(keyAfter)].filter((_, i) => i % 7 === 0);
    for (const from of ends) {
      for (const to of ends) {
        const inside = keys.find((each) => each >= from && each < to);
        if (inside) expect(conflict(putting(inside), scanning({ from, to }))).toBe(true);
      }
    }
  });

  it('cover every volatile key of a range, and no logged one', () => {
    const parts = [0, 255, 1 << 16, 'n', 'a\0\xff', Buffer.of(0, 255)];
    const keys = parts.flatMap((one) => parts.flatMap((two) => parts.map((three) => volatileKey([one, two, three]))));
    const ends = [volatileKey([]), ...keys, ...keys.map(prefixEnd), '\xff' as Key].filter((_, i) => i % 5 === 0);
    for (const from of ends) {
      for (const to of [...ends, '\xff' as Key]) {
        const inside = keys.find((each) => each >= from && each < to);
        if (inside) expect(conflict(putting(inside), scanning({ from, to }))).toBe(true);
        expect(conflict(putting(CELL), scanning({ from, to }))).toBe(false);
      }
    }
    expect(conflict(putting(volatileKey([7, 'O', 1])), scanning(volatileKeysUnder([7, 'L'])))).toBe(false);
  });

  it('are few, whatever is written, and still exclude others', () => {
    const many = times(1_000, (i) => key(7, 'k', 1, i));
    const wide = times(1_000, (i) => key(i, 'k', 1));
    for (const keys of [many, wide]) {
      expect(locksFor('s', putting(...keys)).length).toBeLessThanOrEqual(LOCKS_MAX);
      for (const each of [keys[0]!, keys[999]!]) {
        expect(conflict(putting(...keys), putting(each))).toBe(true);
        expect(conflict(putting(...keys), checking(each))).toBe(true);
        expect(conflict(checking(...keys), putting(each))).toBe(true);
      }
    }
    expect(conflict(putting(...many), putting(NAME))).toBe(false);
  });

  it('are taken in one order by all commits', () => {
    const numbers = locksFor('s', putting(CELL, NAME)).map(({ number }) => number);
    expect(numbers).toEqual(numbers.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(new Set(numbers).size).toBe(numbers.length);
  });
});
