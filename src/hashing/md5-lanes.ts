/** WebAssembly code of the MD5 compression function over blocks of 64 bytes, for one body or for four at a time. */
import { CRC64_END } from './crc64.ts';
import {
  block,
  branch,
  branchIf,
  END,
  get,
  I32,
  i32,
  i32Add,
  i32And,
  i32Equal,
  i32Load,
  i32Or,
  i32RotateLeft,
  i32Store,
  i32Xor,
  i32x4Add,
  i32x4ShiftLeft,
  i32x4ShiftRight,
  loop,
  set,
  tee,
  V128,
  v128And,
  v128Load,
  v128Not,
  v128Or,
  v128Shuffle,
  v128Store,
  v128Xor,
} from './wasm.ts';

export const LANES = 4;
export const BLOCK_BYTES = 64;
const VECTOR_BYTES = 16;
const STEPS = 64;
const WORDS = 16;

// Layout of the memory, each entry a vector of four lanes: the constants of the steps, the state, the words of a block.
export const CONSTANTS_AT = CRC64_END;
export const VALUES_AT = CONSTANTS_AT + STEPS * VECTOR_BYTES;
const WORDS_AT = VALUES_AT + 4 * VECTOR_BYTES;
export const LANES_END = WORDS_AT + WORDS * VECTOR_BYTES;

/** RFC 1321, 3.4. */
export const stepConstant = (step: number): number => Math.floor(Math.abs(Math.sin(step + 1)) * 2 ** 32) | 0;
const ROTATIONS = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
] as const;
const stepWord = (step: number): number => [step, 5 * step + 1, 3 * step + 5, 7 * step][step >> 4]! % WORDS;

/** Offsets of the blocks of each lane, and the end of those of the first lane: all lanes have as many. */
export type Advance = (one: number, two: number, three: number, four: number, end: number) => void;
export const ADVANCE_PARAMETERS = LANES + 1;
const END_PARAMETER = LANES;

/** The operations of a step, on numbers or on vectors of them. */
interface Lanes {
  readonly type: number;
  readonly load: (offset: number) => readonly number[];
  readonly store: (offset: number) => readonly number[];
  readonly add: readonly number[];
  readonly and: readonly number[];
  readonly or: readonly number[];
  readonly xor: readonly number[];
  readonly not: readonly number[];
  readonly rotate: (bits: number) => readonly number[];
  /** Runs before the steps of a block. */
  readonly prepare: readonly number[];
  readonly word: (number: number) => readonly number[];
}

const value = (number: number) => ADVANCE_PARAMETERS + (number & 3);
const spare = (number: number) => ADVANCE_PARAMETERS + 4 + number;
const SPARES = 8;

const numbers: Lanes = {
  type: I32,
  load: i32Load,
  store: i32Store,
  add: [i32Add],
  and: [i32And],
  or: [i32Or],
  xor: [i32Xor],
  not: [...i32(-1), i32Xor],
  rotate: (bits) => [...i32(bits), i32RotateLeft],
  prepare: [],
  word: (number) => [...get(0), ...i32Load(number * 4)],
};

const vectors: Lanes = {
  type: V128,
  load: v128Load,
  store: v128Store,
  add: i32x4Add,
  and: v128And,
  or: v128Or,
  xor: v128Xor,
  not: v128Not,
  rotate: (bits) => [
    ...[...tee(spare(0)), ...i32(bits), ...i32x4ShiftLeft],
    ...[...get(spare(0)), ...i32(32 - bits), ...i32x4ShiftRight, ...v128Or],
  ],
  prepare: [0, 4, 8, 12].flatMap(emitTranspose),
  word: (number) => [...i32(0), ...v128Load(WORDS_AT + number * VECTOR_BYTES)],
};

/** Transposes four words of each lane into four vectors. */
function emitTranspose(first: number): number[] {
  const shuffled = (one: number, two: number, size: number, from: readonly number[]) => [
    ...[...get(spare(one)), ...get(spare(two))],
    ...v128Shuffle(from.flatMap((which) => Array.from({ length: size }, (_, byte) => which * size + byte))),
  ];
  const pairs = [
    [0, 1, [0, 4, 1, 5]],
    [2, 3, [0, 4, 1, 5]],
    [0, 1, [2, 6, 3, 7]],
    [2, 3, [2, 6, 3, 7]],
  ] as const;
  const halves = [
    [4, 5, [0, 2]],
    [4, 5, [1, 3]],
    [6, 7, [0, 2]],
    [6, 7, [1, 3]],
  ] as const;
  const storeAt = (number: number) => v128Store(WORDS_AT + (first + number) * VECTOR_BYTES);
  return [
    ...[0, 1, 2, 3].flatMap((lane) => [...get(lane), ...v128Load(first * 4), ...set(spare(lane))]),
    ...pairs.flatMap(([one, two, from], number) => [...shuffled(one, two, 4, from), ...set(spare(4 + number))]),
    ...halves.flatMap(([one, two, from], number) => [...i32(0), ...shuffled(one, two, 8, from), ...storeAt(number)]),
  ];
}

/** Adds the round's function of b, c and d to the value on the stack. */
function emitMix({ add, and, or, xor, not }: Lanes, round: number, b: number, c: number, d: number): number[] {
  if (round === 0) return [...get(c), ...get(d), ...xor, ...get(b), ...and, ...get(d), ...xor, ...add];
  // The two halves have no bit in common, so they can be added, and the first need not wait for b, the newest value.
  if (round === 1) return [...get(d), ...not, ...get(c), ...and, ...add, ...get(b), ...get(d), ...and, ...add];
  if (round === 2) return [...get(c), ...get(d), ...xor, ...get(b), ...xor, ...add];
  return [...get(d), ...not, ...get(b), ...or, ...get(c), ...xor, ...add];
}

function emitStep(lanes: Lanes, step: number): number[] {
  const { load, add, rotate, word } = lanes;
  const round = step >> 4;
  const [a, b, c, d] = [0, 1, 2, 3].map((number) => value(number - step)) as [number, number, number, number];
  return [
    ...[...get(a), ...word(stepWord(step)), ...i32(0), ...load(CONSTANTS_AT + step * VECTOR_BYTES), ...add, ...add],
    ...[...emitMix(lanes, round, b, c, d), ...rotate(ROTATIONS[round]![step & 3]!), ...get(b), ...add, ...set(a)],
  ];
}

function emitAdvance(lanes: Lanes): number[] {
  const { type, load, store, add, prepare } = lanes;
  const all = [0, 1, 2, 3];
  const valueAt = (number: number) => VALUES_AT + number * VECTOR_BYTES;
  return [
    ...[1, 4 + SPARES, type],
    ...all.flatMap((number) => [...i32(0), ...load(valueAt(number)), ...set(value(number))]),
    ...block,
    ...loop,
    ...[...get(0), ...get(END_PARAMETER), i32Equal, ...branchIf(1)],
    ...prepare,
    ...Array.from({ length: STEPS }, (_, step) => emitStep(lanes, step)).flat(),
    ...all.flatMap((number) => [
      ...[...i32(0), ...i32(0), ...load(valueAt(number)), ...get(value(number)), ...add],
      ...[...tee(value(number)), ...store(valueAt(number))],
    ]),
    ...all.flatMap((lane) => [...get(lane), ...i32(BLOCK_BYTES), i32Add, ...set(lane)]),
    ...branch(0),
    END,
    END,
    END,
  ];
}

export const emitOneLane = (): number[] => emitAdvance(numbers);
export const emitFourLanes = (): number[] => emitAdvance(vectors);
