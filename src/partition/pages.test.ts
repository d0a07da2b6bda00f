import { describe, expect, it } from 'vitest';
import { encodeKey, type Key, prefixEnd, type Range } from './keys.ts';
import { readPage } from './pages.ts';
import type { Page, Row } from './partition.ts';

const LONG_BYTES = 8 << 10;
const PAGE_BYTES = 256 << 10;

describe('A page of long rows', () => {
  it('ends early, after a bounded number of bytes, and the next one starts there', () => {
    const all: Row[] = Array.from({ length: 200 }, (_, i) => ({
      key: encodeKey(['rows', String(i).padStart(3, '0')]),
      value: Buffer.alloc(LONG_BYTES),
      version: 1n,
    }));
    const rowsIn = ({ from, to }: Range) => all.filter(({ key }) => key >= from && key < to);
    const seen: Row[] = [];
    const range = { from: encodeKey(['rows']), to: prefixEnd(encodeKey(['rows'])) };
    for (let from: Key | undefined = range.from; from !== undefined; ) {
      const { rows, next }: Page = readPage(rowsIn, { from, to: range.to }, { limit: 5_000 });
      expect(rows.length).toBeGreaterThan(0);
      expect(rows.length * LONG_BYTES).toBeLessThanOrEqual(PAGE_BYTES);
      seen.push(...rows);
      from = next;
    }
    expect(seen).toEqual(all);
  });
});
