import { describe, expect, it } from 'vitest';
import { mergeAdds } from './counters.ts';
import { encodeKey, type Key } from './keys.ts';
import type { Write } from './partition.ts';

const key: Key = encodeKey(['counter']);
const other: Key = encodeKey(['other']);
const add = (n: bigint, at = key): Write => ({ kind: 'add', key: at, n });
const put: Write = { kind: 'put', key, value: Buffer.alloc(8) };
const remove: Write = { kind: 'remove', key };
const inTurn = (...bodies: Write[][]) => mergeAdds(bodies.map((writes, i) => ({ timestamp: BigInt(i), writes })));
const writesOf = (...bodies: Write[][]) => inTurn(...bodies).map(({ writes }) => writes);

describe('What bodies of one commit add', () => {
  it('to one row is added once, with the last of them', () => {
    expect(inTurn([add(1n)], [add(2n), add(1n, other)], [add(-5n)])).toEqual([
      { timestamp: 0n, writes: [] },
      { timestamp: 1n, writes: [add(1n, other)] },
      { timestamp: 2n, writes: [add(-2n)] },
    ]);
  });

  it('stays on its side of a put or a removal', () => {
    expect(writesOf([add(1n)], [add(2n)], [put], [add(3n)], [add(4n)])).toEqual([[], [add(3n)], [put], [], [add(7n)]]);
    expect(writesOf([add(1n)], [remove], [add(2n)])).toEqual([[add(1n)], [remove], [add(2n)]]);
  });

  it('wraps as the sum in the row does', () => {
    const most = (1n << 63n) - 1n;
    expect(writesOf([add(most)], [add(1n)])).toEqual([[], [add(-most - 1n)]]);
  });
});
