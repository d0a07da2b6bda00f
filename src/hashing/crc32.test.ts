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

it('is the CRC32 of zlib, wherever the bytes are and whatever they follow', () => {
  const pooled = acquireBuffer()!;
  for (const length of LENGTHS) {
    for (const [begin, previous] of [
      [0, 0],
      [3, 0x89abcdef],
      [64, 0xffffffff],
    ] as const) {
      const piece = bytes.subarray(begin, Math.min(begin + length, bytes.length));
      const expected = zlibCrc32(piece, previous);
      expect(crc32(piece, previous), `${length} bytes`).toBe(expected);
      pooled.set(piece, begin);
      expect(
        crc32(pooled.subarray(begin, begin + piece.length), previous),
        `${length} bytes in a buffer of the pool`,
      ).toBe(expected);
    }
  }
  releaseBuffer(pooled);
});

it('changes no bytes of a pool buffer, and keeps nothing of others', () => {
  const pooled = acquireBuffer()!;
  pooled.set(bytes);
  for (const length of [64 << 10, 20_000, 64 << 10, 9_000]) {
    expect(crc32(pooled.subarray(0, length))).toBe(zlibCrc32(bytes.subarray(0, length)));
    expect(pooled.subarray(0, bytes.length).equals(bytes)).toBe(true);
  }
  releaseBuffer(pooled);
});

it('reads the last bytes of every pool buffer', () => {
  const all = Array.from({ length: 16 }, () => acquireBuffer()!);
  for (const pooled of all) {
    const last = pooled.subarray(-9_001);
    bytes.copy(last);
    expect(crc32(last)).toBe(zlibCrc32(bytes.subarray(0, 9_001)));
  }
  all.forEach(releaseBuffer);
});

it('gives a buffer of the pool once, and takes back only its own', () => {
  const all = Array.from({ length: 16 }, () => acquireBuffer()!);
  for (const [i, pooled] of all.entries()) {
    expect(pooled.length).toBe(POOL_BUFFER_BYTES);
    pooled.fill(i);
  }
  expect(acquireBuffer()).toBeUndefined();
  for (const [i, pooled] of all.entries()) expect([pooled[0], pooled.at(-1)]).toEqual([i, i]);
  releaseBuffer(Buffer.alloc(POOL_BUFFER_BYTES));
  expect(acquireBuffer()).toBeUndefined();
  all.forEach(releaseBuffer);
  expect(acquireBuffer()).toBeDefined();
});
