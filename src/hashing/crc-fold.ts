/**
 * CRC folding: shortens bytes without a change of their CRC. Where the polynomial of the CRC divides one of few terms, leading bytes can be
 * removed by XORing them, unchanged, into the bytes at a few fixed distances after them. Vectors XOR sixteen bytes at a time.
 */
import {
  branchIf,
  compileFunction,
  END,
  get,
  i32,
  i32Add,
  i32LessUnsigned,
  loop,
  set,
  tee,
  v128Load,
  v128Store,
  v128Xor,
  type WasmMemory,
} from './wasm.ts';

/** Limit of the bytes that can be folded at once. */
export const FOLD_BYTES_MAX = 64 << 10;
const STEP_BYTES = 64;
/** Bytes after the input that are read, too, without an effect. */
export const OVERREAD_BYTES = STEP_BYTES;
const VECTOR_BYTES = 16;

export interface Fold {
  /** Offset of the bytes that are left. */
  readonly leftAt: number;
  /** `low` and `high`: the CRC of the bytes before, which is XORed into the first bytes. Returns the number of bytes that are left. */
  (from: number, to: number, low: number, high: number): number;
}

/** The zeroed memory that a fold needs from `at` on, in whole steps. */
export const foldMemoryBytes = (distances: readonly number[]): number =>
  FOLD_BYTES_MAX + 3 * Math.ceil(maxDistance(distances) / STEP_BYTES + 1) * STEP_BYTES;
const maxDistance = (distances: readonly number[]): number => Math.max(...distances);

/**
 * @param distances in bytes, at which removed bytes are XORed in again; none is shorter than a step
 * @returns undefined where the processor has no vectors
 */
export function compileFold(memory: WasmMemory, at: number, distances: readonly number[]): Fold | undefined {
  const window = maxDistance(distances);
  const run = compileFunction<(from: number, to: number, before: number, into: number) => void>(
    memory,
    4,
    emitFold(distances),
  );
  if (!run) return undefined;
  const value = new Int32Array(memory.buffer, at, 2);
  const foldedAt = at + window;
  const leftAt = foldedAt + FOLD_BYTES_MAX + window + STEP_BYTES;
  const bytes = new Uint8Array(memory.buffer);

  const fold = (from: number, to: number, low: number, high: number): number => {
    const count = (to - from - window) & -STEP_BYTES;
    // Only the first bytes are XORed with the CRC.
    value[0] = low;
    value[1] = high;
    if (count > 0) run(from, from + count, at, foldedAt);
    // The bytes that are left are not removed, so they must not be XORed into those after them.
    bytes.fill(0, foldedAt + count, foldedAt + count + window);
    run(from + count, to, at + count, leftAt);
    return to - from - count;
  };
  return Object.assign(fold, { leftAt });
}

/** XORs each vector with the folded vectors at the given distances before it. `before` points `window` bytes before the result. */
function emitFold(distances: readonly number[]): number[] {
  const [from, to, before, into] = [0, 1, 2, 3];
  const window = maxDistance(distances);
  const vector = (offset: number) => [
    ...get(into),
    ...[...get(from), ...v128Load(offset)],
    ...distances.flatMap((distance) => [...get(before), ...v128Load(window - distance + offset), ...v128Xor]),
    ...v128Store(offset),
  ];
  const vectors = Array.from({ length: STEP_BYTES / VECTOR_BYTES }, (_, i) => vector(i * VECTOR_BYTES));
  const onward = (pointer: number) => [...get(pointer), ...i32(STEP_BYTES), i32Add];
  return [
    0, // no locals
    ...loop,
    ...vectors.flat(),
    ...[...onward(before), ...set(before)],
    ...[...onward(into), ...set(into)],
    ...[...onward(from), ...tee(from), ...get(to), i32LessUnsigned, ...branchIf(0)],
    END,
    END,
  ];
}
