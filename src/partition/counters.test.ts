import { describe, expect, it } from 'vitest';
import { encodeKey, type Key } from './keys.ts';
import type { Write } from './partition.ts';
import { mergeCommutativeSets } from './values.ts';

const key: Key = encodeKey(['counter']);
const other: Key = encodeKey(['other']);
const add = (n: bigint, at = key): Write => ({ kind: 'add', key: at, n });
const put: Write = { kind: 'put', key, value: Buffer.alloc(8) };
const remove: Write = { kind: 'remove', key };
const inTurn = (...writeSets: Write[][]) =>
  mergeCommutativeSets(writeSets.map((writes, i) => ({ timestamp: BigInt(i), writes })));
const writesOf = (...writeSets: Write[][]) => inTurn(...writeSets).map(({ writes }) => writes);

describe('Adds of transactions that share a commit', () => {
  it('to one row become one add in the last of them', () => {
    expect(inTurn([add(1n)], [add(2n), add(1n, other)], [add(-5n)])).toEqual([
      { timestamp: 0n, writes: [] },
      { timestamp: 1n, writes: [add(1n, other)] },
      { timestamp: 2n, writes: [add(-2n)] },
    ]);
  });

  it('are not merged across a put or a removal', () => {
    expect(writesOf([add(1n)], [add(2n)], [put], [add(3n)], [add(4n)])).toEqual([[], [add(3n)], [put], [], [add(7n)]]);
    expect(writesOf([add(1n)], [remove], [add(2n)])).toEqual([[add(1n)], [remove], [add(2n)]]);
  });

  it('wrap as the sum in the row does', () => {
    const most = (1n << 63n) - 1n;
    expect(writesOf([add(most)], [add(1n)])).toEqual([[], [add(-most - 1n)]]);
  });
});

describe('Writes of kind max of transactions that share a commit', () => {
  const max = (n: bigint): Write => ({ kind: 'max', key, n });

  it('to one row become the first of the greatest', () => {
    expect(writesOf([max(3n)], [max(5n)], [max(5n)], [max(4n)])).toEqual([[], [max(5n)], [], []]);
    expect(writesOf([max(3n)], [remove], [max(1n)], [max(2n)])).toEqual([[max(3n)], [remove], [], [max(2n)]]);
  });
});
