/** CRC32, three times as fast as zlib's where the bytes lie in memory that is lent here, and less than twice so elsewhere. */
import { crc32 as zlibCrc32 } from 'node:zlib';
import { FOLD_BYTES_MAX, type Fold, foldRoom, foldWithin, READ_BEHIND_BYTES } from './crc-fold.ts';
import { alikeFrom, newWasmMemory } from './wasm.ts';

/** The polynomial divides x^300 + x^155 + x^117 + x^89 + 1, and so that with each exponent multiplied by 8: bytes for bits. */
const DISTANCES = [0, 89, 117, 155].map((exponent) => 300 - exponent);
/** Fewer bytes are not worth the hand-over. */
const FOLDED_BYTES_MIN = 4 << 10;

export const LENT_BYTES = (1 << 20) + (128 << 10);
const LENT_MAX = 16;

interface Workshop {
  readonly fold: Fold | undefined;
  readonly bytes: Uint8Array;
  /** Memory that nobody has. */
  readonly lendable: Buffer[];
}

const INPUT_AT = foldRoom(DISTANCES);
const LENT_AT = INPUT_AT + FOLD_BYTES_MAX + READ_BEHIND_BYTES;
let known: Workshop | undefined;

/** Made when it is first needed. What is lent takes no memory before it is used, and V8's collector does not reckon with shared memory. */
function workshop(): Workshop {
  if (known) return known;
  const memory = newWasmMemory(LENT_AT + LENT_MAX * LENT_BYTES + READ_BEHIND_BYTES);
  const { buffer } = memory;
  const lent = (i: number) => Buffer.from(buffer, LENT_AT + i * LENT_BYTES, LENT_BYTES);
  known = {
    fold: foldWithin(memory, 0, DISTANCES),
    bytes: new Uint8Array(buffer),
    lendable: Array.from({ length: LENT_MAX }, (_, i) => lent(i)),
  };
  return known;
}

/** `before` is the CRC of what these bytes follow. */
export function crc32(bytes: Uint8Array, before = 0): number {
  const { length } = bytes;
  if (length < FOLDED_BYTES_MIN || length > FOLD_BYTES_MAX) return zlibCrc32(bytes, before);
  const { fold, bytes: all } = workshop();
  if (!fold) return zlibCrc32(bytes, before);
  let at = bytes.byteOffset;
  if (bytes.buffer !== all.buffer) {
    at = alikeFrom(INPUT_AT, bytes);
    all.set(bytes, at);
  }
  // A CRC begins with all bits set: it joins the first bytes so, and then begins with none.
  const left = fold(at, at + length, ~before, 0);
  return zlibCrc32(all.subarray(fold.leftAt, fold.leftAt + left), 0xffffffff);
}

/** A buffer of LENT_BYTES, to be given back when nobody uses it any more. Undefined: all are lent. */
export function borrowBuffer(): Buffer | undefined {
  return workshop().lendable.pop();
}

/** Others than those that were lent are left to the collector. */
export function giveBackBuffer(buffer: Buffer): void {
  if (buffer.buffer === known?.bytes.buffer) known.lendable.push(buffer);
}
