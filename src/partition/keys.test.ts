import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeKey,
  encodeKey,
  isVolatile,
  keyAfter,
  keyPrefix,
  keysUnder,
  type Part,
  prefixEnd,
  splitAtVolatile,
  volatileKey,
  volatileKeysUnder,
} from './keys.ts';

/** Any UTF-16 units at all: lone surrogates and zeros are names too. */
const aUnit = fc.oneof(
  fc.constantFrom(0, 1, 0x2f, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff),
  fc.integer({ min: 0, max: 0xffff }),
);
const aText = fc.array(aUnit, { maxLength: 8 }).map((units) => String.fromCharCode(...units));
const aNumber = fc.oneof(
  fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
  fc.constantFrom(0n, 1n, 0xffn, 0x100n, (1n << 32n) - 1n, 1n << 32n, (1n << 63n) - 1n, 1n << 63n, (1n << 64n) - 1n),
);
const someBytes = fc.oneof(
  fc.uint8Array({ maxLength: 6 }),
  fc.array(fc.constantFrom(0, 1, 0xfe, 0xff), { maxLength: 4 }).map((bytes) => Uint8Array.from(bytes)),
);
const aPart: fc.Arbitrary<string | bigint | Uint8Array> = fc.oneof(aText, aNumber, someBytes);
const aTuple = fc.array(aPart, { maxLength: 4 });

const rank = (part: Part): number => (part instanceof Uint8Array ? 0 : typeof part === 'string' ? 1 : 2);

/** The order that the tuples themselves have: part by part, the shorter first. */
function compareTuples(one: readonly Part[], other: readonly Part[]): number {
  for (let i = 0; i < Math.min(one.length, other.length); i++) {
    const order = compareParts(one[i]!, other[i]!);
    if (order !== 0) return order;
  }
  return one.length - other.length;
}

function compareParts(one: Part, other: Part): number {
  if (rank(one) !== rank(other)) return rank(one) - rank(other);
  if (one instanceof Uint8Array) return Buffer.compare(one, other as Uint8Array);
  return one < other ? -1 : one > other ? 1 : 0;
}

const sign = (order: number): number => Math.sign(order) + 0;
const compareKeys = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

describe('Keys', () => {
  it('decode to the tuple that was encoded', () => {
    fc.assert(
      fc.property(aTuple, (tuple) => {
        expect(decodeKey(encodeKey(tuple))).toEqual(tuple);
      }),
    );
  });

  it('of a range are split where the volatile ones begin', () => {
    const [logged, held, first] = [encodeKey(['z']), volatileKey(['a']), volatileKey([])];
    expect(splitAtVolatile({ from: logged, to: held })).toEqual([
      { from: logged, to: first },
      { from: first, to: held },
    ]);
    for (const range of [keysUnder(['a']), volatileKeysUnder(['a']), { from: logged, to: first }])
      expect(splitAtVolatile(range)).toEqual([range]);
    expect(splitAtVolatile({ from: held, to: logged })).toEqual([]);
  });

  it('of volatile rows are after all others, and decode to their tuples', () => {
    fc.assert(
      fc.property(aTuple, aTuple, (tuple, other) => {
        const key = volatileKey(tuple);
        expect(decodeKey(key)).toEqual(tuple);
        expect([isVolatile(key), isVolatile(encodeKey(other))]).toEqual([true, false]);
        expect(key > prefixEnd(encodeKey(other))).toBe(other.length > 0);
        const { from, to } = volatileKeysUnder(tuple);
        const below = volatileKey([...tuple, ...other]);
        expect(from <= below && below < to).toBe(true);
      }),
    );
  });

  it('have one byte per character', () => {
    fc.assert(
      fc.property(aTuple, (tuple) => {
        const key = encodeKey(tuple);
        expect(Buffer.from(key, 'latin1').toString('latin1')).toBe(key);
      }),
    );
  });

  it('have the order of their tuples', () => {
    const aPair = fc.oneof(
      fc.tuple(aTuple, aTuple),
      // Tuples with a common prefix are where an encoding goes wrong.
      fc.tuple(aTuple, aTuple, aTuple).map(
        ([common, a, b]) =>
          [
            [...common, ...a],
            [...common, ...b],
          ] as const,
      ),
      fc.tuple(aText, aText, aText).map(
        ([common, a, b]) =>
          [
            [common + a, 'x'],
            [common + b, 'x'],
          ] as const,
      ),
    );
    fc.assert(
      fc.property(aPair, ([one, other]) => {
        const bytes = Buffer.compare(Buffer.from(encodeKey(one), 'latin1'), Buffer.from(encodeKey(other), 'latin1'));
        expect(sign(bytes)).toBe(sign(compareTuples(one, other)));
        expect(compareKeys(encodeKey(one), encodeKey(other))).toBe(sign(compareTuples(one, other)));
      }),
      { numRuns: 2000 },
    );
  });

  it('take numbers as number or bigint', () => {
    expect(encodeKey([7, 2 ** 40])).toBe(encodeKey([7n, 1n << 40n]));
  });

  it('refuse numbers that are negative, broken or over 64 bits', () => {
    for (const wrong of [-1, -1n, 1n << 64n, 0.5, Number.NaN]) expect(() => encodeKey([wrong])).toThrow(RangeError);
  });

  it('refuse to decode truncated bytes', () => {
    expect(() => decodeKey(encodeKey(['name']).slice(0, -1) as ReturnType<typeof encodeKey>)).toThrow(RangeError);
  });

  it('of the longest legal names fit into 4,026 bytes with their prefix', () => {
    const id = (1n << 64n) - 1n;
    const name = '\uffff'.repeat(1024);
    const half = '\uffff'.repeat(512);
    const longest = [
      [id, 'b', id, id, name],
      [id, 'v', id, id, name, id],
      [id, 'e', id, half, half],
      ['devstoreaccount1'.padEnd(24, '1'), 'v', id, id, name, id],
    ];
    for (const tuple of longest) expect(prefixEnd(keyAfter(encodeKey(tuple))).length).toBeLessThanOrEqual(4026);
  });

  it('under a tuple are exactly those that start with it', () => {
    fc.assert(
      fc.property(aTuple, aTuple, (tuple, other) => {
        const { from, to } = keysUnder(tuple);
        const inside = (key: string) => key >= from && key < to;
        expect(inside(encodeKey([...tuple, ...other]))).toBe(true);
        const begins = tuple.every((part, i) => i < other.length && compareParts(part, other[i]!) === 0);
        expect(inside(encodeKey(other))).toBe(begins);
      }),
    );
  });

  it('with a prefix of a name are exactly those whose name starts with it', () => {
    const aName = fc.oneof(aText, fc.constantFrom('a', 'a\0', 'a\0\0', 'aa', 'a/', 'b'));
    fc.assert(
      fc.property(aTuple, aName, aName, fc.boolean(), (tuple, prefix, rest, related) => {
        const name = related ? prefix + rest : rest;
        const from = keyPrefix(tuple, prefix);
        for (const key of [encodeKey([...tuple, name]), encodeKey([...tuple, name, 1n])]) {
          expect(key >= from && key < prefixEnd(from)).toBe(name.startsWith(prefix));
          if (!name.startsWith(prefix)) expect(key >= prefixEnd(from)).toBe(name > prefix);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('have nothing between them and keyAfter', () => {
    fc.assert(
      fc.property(aTuple, aTuple, (one, other) => {
        const after = keyAfter(encodeKey(one));
        expect(after > encodeKey(one)).toBe(true);
        expect(encodeKey(other) >= after).toBe(compareTuples(other, one) > 0);
      }),
    );
  });
});
