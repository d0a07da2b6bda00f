import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstCorruptBlock, makeChecksumBuilder } from './checksums.ts';
import { CHECKSUM_BLOCK_BYTES, CHUNK_BYTES_MAX } from './extents.ts';
import {
  decodeExtentHeader,
  decodeSlotHeader,
  encodeExtentHeader,
  encodeSlotHeader,
  HEADER_BYTES,
  newExtentId,
  slotBytes,
} from './slots.ts';

const number64 = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });
const name = fc.record({ account: number64, epoch: number64, number: number64 });
const length = fc.integer({ min: 1, max: CHUNK_BYTES_MAX });

describe('The header of a slot', () => {
  it('decodes to the encoded slot', () => {
    fc.assert(
      fc.property(name, length, (name, length) => {
        const slot = { id: newExtentId(), name, length };
        expect(decodeSlotHeader(encodeSlotHeader(slot))).toEqual(slot);
      }),
    );
  });

  it('is invalid with any bit flipped, truncated, or of another kind', () => {
    const header = encodeSlotHeader({ id: newExtentId(), name: { account: 1n, epoch: 2n, number: 3n }, length: 4 });
    for (let bit = 0; bit < 8 * HEADER_BYTES; bit++) expect(decodeSlotHeader(flipped(header, bit))).toBeUndefined();
    expect(decodeSlotHeader(header.subarray(0, HEADER_BYTES - 1))).toBeUndefined();
    expect(decodeSlotHeader(Buffer.alloc(HEADER_BYTES))).toBeUndefined();
    expect(decodeSlotHeader(encodeExtentHeader(newExtentId()))).toBeUndefined();
    expect(decodeExtentHeader(header)).toBeUndefined();
  });
});

describe('The header of an extent', () => {
  it('decodes to its id, and is invalid with any bit flipped', () => {
    const id = newExtentId();
    const header = encodeExtentHeader(id);
    expect(decodeExtentHeader(header)).toEqual(id);
    for (let bit = 0; bit < 8 * HEADER_BYTES; bit++) expect(decodeExtentHeader(flipped(header, bit))).toBeUndefined();
  });
});

describe('A slot', () => {
  it('has room for header, data and checksums, and ends at a multiple of 64 bytes with no more than that to spare', () => {
    fc.assert(
      fc.property(length, (length) => {
        const needed = HEADER_BYTES + length + 4 * Math.ceil(length / CHECKSUM_BLOCK_BYTES);
        expect(slotBytes(length) % 64).toBe(0);
        expect(slotBytes(length) - needed).toBeGreaterThanOrEqual(0);
        expect(slotBytes(length) - needed).toBeLessThan(64);
      }),
    );
  });
});

describe('The checksums of a chunk', () => {
  const chunk = { account: 5n, epoch: 6n, number: 7n };

  it('do not depend on the pieces in which the bytes come', () => {
    const bytes = randomBytes(300_000);
    const whole = makeChecksumBuilder(chunk, bytes.length);
    whole.add(bytes);
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length)), (cuts) => {
        const pieces = makeChecksumBuilder(chunk, bytes.length);
        const edges = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        edges.slice(1).forEach((edge, i) => {
          pieces.add(bytes.subarray(edges[i], edge));
        });
        expect(pieces.table()).toEqual(whole.table());
      }),
    );
  });

  it('are never those of another block or of a chunk nearby, even if the bytes are the same', () => {
    const bytes = Buffer.alloc(100, 1);
    const seen = new Set<number>();
    for (let number = 0n; number < 500n; number++) {
      const sums = makeChecksumBuilder({ ...chunk, number }, 4 * CHECKSUM_BLOCK_BYTES);
      for (let block = 0; block < 4; block++) sums.add(Buffer.alloc(CHECKSUM_BLOCK_BYTES));
      for (let block = 0; block < 4; block++) seen.add(sums.table().readUInt32BE(4 * block));
    }
    expect(seen.size).toBe(2000);
    const sums = makeChecksumBuilder(chunk, bytes.length);
    sums.add(bytes);
    expect(firstCorruptBlock(chunk, 0, bytes, sums.table())).toBeUndefined();
    expect(firstCorruptBlock(chunk, 1, bytes, sums.table())).toBe(1);
    expect(firstCorruptBlock({ ...chunk, account: 4n }, 0, bytes, sums.table())).toBe(0);
  });
});

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[bit >> 3]! ^= 1 << (bit & 7);
  return copy;
}
