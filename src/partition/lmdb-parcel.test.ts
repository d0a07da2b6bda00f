import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Key } from './keys.ts';
import { type Judged, pack, unpack } from './lmdb-parcel.ts';
import type { Check, Write } from './partition.ts';

const key = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('latin1') as Key);
const stamp = fc.bigInt({ min: 1n, max: (1n << 64n) - 1n });
const check: fc.Arbitrary<Check> = fc.oneof(fc.record({ key }), fc.record({ key, version: stamp }));
const write: fc.Arbitrary<Write> = fc.oneof(
  fc.record({ kind: fc.constant('remove' as const), key }),
  fc.record({ kind: fc.constant('put' as const), key, value: fc.uint8Array({ maxLength: 100 }) }),
  fc.record({ kind: fc.constant('add' as const), key, n: fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n }) }),
);
const judged: fc.Arbitrary<Judged> = fc
  .tuple(
    fc.record({
      checks: fc.array(check, { maxLength: 4 }),
      ranges: fc.array(
        fc.record({
          range: fc.record({ from: key, to: key }),
          rows: fc.array(fc.record({ key, version: stamp }), { maxLength: 4 }),
        }),
        { maxLength: 3 },
      ),
      bodies: fc.array(fc.record({ stamp, writes: fc.array(write, { maxLength: 4 }) }), { maxLength: 3 }),
    }),
    fc.option(stamp, { nil: undefined }),
  )
  .map(([rest, before]) => (before === undefined ? rest : { ...rest, before }));

describe('A parcel of commits', () => {
  it('holds just what was packed, in shared memory', () => {
    fc.assert(
      fc.property(fc.array(judged, { maxLength: 5 }), (commits) => {
        const shared = new SharedArrayBuffer(64 << 10);
        const bytes = pack(commits, (length) => new Uint8Array(shared, 8, length));
        expect(unpack(bytes)).toEqual(commits);
      }),
    );
  });
});
