/**
 * Bytes made few without a change of their CRC. Where the polynomial divides one of few terms, what is taken away in front comes
 * back, unchanged, at a few places behind it: to compute that takes XORs alone, and vectors do sixteen bytes with one of them.
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

/** How many bytes can be folded at once. */
export const FOLD_BYTES_MAX = 64 << 10;
const STEP_BYTES = 64;
/** So much behind the bytes is read, too, and counts for nothing. */
export const OVERREAD_BYTES = STEP_BYTES;
const VECTOR_BYTES = 16;

export interface Fold {
  /** Where those that are left lie. */
  readonly leftAt: number;
  /** `low` and `high` are the CRC of what came before, as it goes into the first bytes. Returns how many are left. */
  (from: number, to: number, low: number, high: number): number;
}

/** What the memory has to have from `at` on, all of it zero: whole steps. */
export const foldMemoryBytes = (distances: readonly number[]): number =>
  FOLD_BYTES_MAX + 3 * Math.ceil(maxDistance(distances) / STEP_BYTES + 1) * STEP_BYTES;
const maxDistance = (distances: readonly number[]): number => Math.max(...distances);

/**
 * @param distances in bytes, of the places where what is taken away comes back; none is shorter than a step.
 * Undefined where the processor has no vectors.
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
    // Only what is taken away first finds it there.
    value[0] = low;
    value[1] = high;
    if (count > 0) run(from, from + count, at, foldedAt);
    // From those that are left nothing is taken away.
    bytes.fill(0, foldedAt + count, foldedAt + count + window);
    run(from + count, to, at + count, leftAt);
    return to - from - count;
  };
  return Object.assign(fold, { leftAt });
}

/** Each vector, joined with what comes back to it of those before, of which the first is `window` bytes behind `before`. */
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
