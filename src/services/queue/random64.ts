import { randomFillSync } from 'node:crypto';

const POOL_BYTES = 4_096;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** 64 random bits, from a pool: a call of the generator costs more than the bytes. */
export function random64(): bigint {
  if (used === POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const bits = pool.readBigUInt64BE(used);
  used += 8;
  return bits;
}
