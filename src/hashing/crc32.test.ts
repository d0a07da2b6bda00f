import { randomBytes } from 'node:crypto';
import { crc32 as zlibCrc32 } from 'node:zlib';
import { expect, it } from 'vitest';
import { acquireBuffer, crc32, POOL_BUFFER_BYTES, releaseBuffer } from './crc32.ts';

const bytes = randomBytes(80 << 10);
const LENGTHS = [
  0,
  1,
  4_095,
  4 << 10,
  (4 << 10) + 1,
  8 << 10,
  12_345,
  40_000,
  65_535,
  64 << 10,
  (64 << 10) + 1,
  80 << 10,
];

it('is the CRC32 of zlib, wherever bytes lie and whatever they follow', () => {
  const lent = acquireBuffer()!;
  for (const length of LENGTHS) {
    for (const [begin, before] of [
      [0, 0],
      [3, 0x89abcdef],
      [64, 0xffffffff],
    ] as const) {
      const piece = bytes.subarray(begin, Math.min(begin + length, bytes.length));
      const expected = zlibCrc32(piece, before);
      expect(crc32(piece, before), `${length} bytes`).toBe(expected);
      lent.set(piece, begin);
      expect(crc32(lent.subarray(begin, begin + piece.length), before), `${length} lent bytes`).toBe(expected);
    }
  }
  releaseBuffer(lent);
});

it('changes no bytes that were lent, and keeps nothing of others', () => {
  const lent = acquireBuffer()!;
  lent.set(bytes);
  for (const length of [64 << 10, 20_000, 64 << 10, 9_000]) {
    expect(crc32(lent.subarray(0, length))).toBe(zlibCrc32(bytes.subarray(0, length)));
    expect(lent.subarray(0, bytes.length).equals(bytes)).toBe(true);
  }
  releaseBuffer(lent);
});

it('takes the last bytes of all that is lent', () => {
  const all = Array.from({ length: 16 }, () => acquireBuffer()!);
  for (const lent of all) {
    const last = lent.subarray(-9_001);
    bytes.copy(last);
    expect(crc32(last)).toBe(zlibCrc32(bytes.subarray(0, 9_001)));
  }
  all.forEach(releaseBuffer);
});

it('lends a buffer once, and only its own', () => {
  const all = Array.from({ length: 16 }, () => acquireBuffer()!);
  for (const [i, lent] of all.entries()) {
    expect(lent.length).toBe(POOL_BUFFER_BYTES);
    lent.fill(i);
  }
  expect(acquireBuffer()).toBeUndefined();
  for (const [i, lent] of all.entries()) expect([lent[0], lent.at(-1)]).toEqual([i, i]);
  releaseBuffer(Buffer.alloc(POOL_BUFFER_BYTES));
  expect(acquireBuffer()).toBeUndefined();
  all.forEach(releaseBuffer);
  expect(acquireBuffer()).toBeDefined();
});
