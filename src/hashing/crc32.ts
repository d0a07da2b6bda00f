/** CRC32, three times as fast as zlib's where the bytes lie in memory that is lent here, and less than twice so elsewhere. */
import { crc32 as zlibCrc32 } from 'node:zlib';
import { compileFold, FOLD_BYTES_MAX, type Fold, foldMemoryBytes, OVERREAD_BYTES } from './crc-fold.ts';
import { alignLike, createWasmMemory } from './wasm.ts';

/** The polynomial divides x^300 + x^155 + x^117 + x^89 + 1, and so that with each exponent multiplied by 8: bytes for bits. */
const DISTANCES = [0, 89, 117, 155].map((exponent) => 300 - exponent);
/** Fewer bytes are not worth the hand-over. */
const FOLDED_BYTES_MIN = 4 << 10;

export const POOL_BUFFER_BYTES = (1 << 20) + (128 << 10);
const POOL_BUFFERS_MAX = 16;

interface Engine {
  readonly fold: Fold | undefined;
  readonly bytes: Uint8Array;
  /** Memory that nobody has. */
  readonly pool: Buffer[];
}

const INPUT_AT = foldMemoryBytes(DISTANCES);
const POOL_AT = INPUT_AT + FOLD_BYTES_MAX + OVERREAD_BYTES;
let openedEngine: Engine | undefined;

/** Made when it is first needed. What is lent takes no memory before it is used, and V8's collector does not reckon with shared memory. */
function openEngine(): Engine {
  if (openedEngine) return openedEngine;
  const memory = createWasmMemory(POOL_AT + POOL_BUFFERS_MAX * POOL_BUFFER_BYTES + OVERREAD_BYTES);
  const { buffer } = memory;
  const lent = (i: number) => Buffer.from(buffer, POOL_AT + i * POOL_BUFFER_BYTES, POOL_BUFFER_BYTES);
  openedEngine = {
    fold: compileFold(memory, 0, DISTANCES),
    bytes: new Uint8Array(buffer),
    pool: Array.from({ length: POOL_BUFFERS_MAX }, (_, i) => lent(i)),
  };
  return openedEngine;
}

/** `before` is the CRC of what these bytes follow. */
export function crc32(bytes: Uint8Array, previous = 0): number {
  const { length } = bytes;
  if (length < FOLDED_BYTES_MIN || length > FOLD_BYTES_MAX) return zlibCrc32(bytes, previous);
  const { fold, bytes: all } = openEngine();
  if (!fold) return zlibCrc32(bytes, previous);
  let at = bytes.byteOffset;
  if (bytes.buffer !== all.buffer) {
    at = alignLike(INPUT_AT, bytes);
    all.set(bytes, at);
  }
  // A CRC begins with all bits set: it joins the first bytes so, and then begins with none.
  const left = fold(at, at + length, ~previous, 0);
  return zlibCrc32(all.subarray(fold.leftAt, fold.leftAt + left), 0xffffffff);
}

/** A buffer of LENT_BYTES, to be given back when nobody uses it any more. Undefined: all are lent. */
export function acquireBuffer(): Buffer | undefined {
  return openEngine().pool.pop();
}

/** Others than those that were lent are left to the collector. */
export function releaseBuffer(buffer: Buffer): void {
  if (buffer.buffer === openedEngine?.bytes.buffer) openedEngine.pool.push(buffer);
}
