/**
 * Multi-buffer MD5: hashes up to four bodies at a time, each in a lane of a vector. Each step of MD5 depends on the one before, so a single
 * MD5 leaves a processor mostly idle, and four take little longer than one. bench/against-one-lane.mjs measures what that is worth.
 */
import {
  ADVANCE_PARAMETERS,
  type Advance,
  BLOCK_BYTES,
  CONSTANTS_AT,
  emitFourLanes,
  emitOneLane,
  LANES,
  LANES_END,
  stepConstant,
  VALUES_AT,
} from './md5-lanes.ts';
import { compileFunction, type WasmMemory } from './wasm.ts';

/** The memory before this offset belongs to the hash functions. */
export const MD5_END = LANES_END + 2 * BLOCK_BYTES;
export const MD5_LANES = LANES;

export interface Md5State {
  readonly values: Int32Array;
  /** Bytes that do not fill a block yet. */
  readonly rest: Buffer;
  length: number;
}

/** Bytes of one body in the memory. */
export interface Md5Input {
  readonly md5: Md5State;
  readonly from: number;
  readonly to: number;
}

export interface Md5Engine {
  begin(): Md5State;
  /** At most MD5_LANES inputs, of different bodies. */
  update(inputs: readonly Md5Input[]): void;
  /** Base64; the last call. */
  digest(md5: Md5State): string;
}

const FIRST_VALUES = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];

export function compileMd5(memory: WasmMemory): Md5Engine {
  const words = new Int32Array(memory.buffer);
  const bytes = Buffer.from(memory.buffer);
  const advanceOne = compileFunction<Advance>(memory, ADVANCE_PARAMETERS, emitOneLane())!;
  const advanceFour = compileFunction<Advance>(memory, ADVANCE_PARAMETERS, emitFourLanes());
  for (let at = 0; at < 64 * LANES; at++) words[CONSTANTS_AT / 4 + at] = stepConstant(at >> 2);

  /** Hashes the first `length` bytes of each input. */
  function advance(inputs: readonly Md5Input[], length: number): void {
    const wordIndex = (value: number, lane: number) => VALUES_AT / 4 + value * LANES + lane;
    for (const [lane, { md5 }] of inputs.entries()) {
      for (let i = 0; i < 4; i++) words[wordIndex(i, lane)] = md5.values[i]!;
    }
    const [one, two = one, three = one, four = one] = inputs.map(({ from }) => from);
    const run = inputs.length > 1 ? advanceFour! : advanceOne;
    run(one!, two!, three!, four!, one! + length);
    for (const [lane, { md5 }] of inputs.entries()) {
      for (let i = 0; i < 4; i++) md5.values[i] = words[wordIndex(i, lane)]!;
    }
  }

  /** Completes the block that was begun before. Returns the input after it. */
  function completeBlock({ md5, from, to }: Md5Input): Md5Input {
    const begun = md5.length % BLOCK_BYTES;
    md5.length += to - from;
    if (begun === 0) return { md5, from, to };
    const end = Math.min(from + BLOCK_BYTES - begun, to);
    bytes.copy(md5.rest, begun, from, end);
    if (begun + end - from === BLOCK_BYTES) {
      md5.rest.copy(bytes, LANES_END);
      advance([{ md5, from: LANES_END, to: LANES_END + BLOCK_BYTES }], BLOCK_BYTES);
    }
    return { md5, from: end, to };
  }

  /** Inputs with at least one whole block. The bytes of the others are kept for later. */
  function wholeBlocks(inputs: readonly Md5Input[]): Md5Input[] {
    return inputs.filter(({ md5, from, to }) => {
      if (to - from >= BLOCK_BYTES) return true;
      bytes.copy(md5.rest, 0, from, to);
      return false;
    });
  }

  return {
    begin: () => ({ values: Int32Array.from(FIRST_VALUES), rest: Buffer.alloc(BLOCK_BYTES), length: 0 }),

    update(inputs) {
      let running = wholeBlocks(inputs.map(completeBlock));
      while (running.length > 0) {
        const batch = running.slice(0, advanceFour ? LANES : 1);
        const length = Math.min(...batch.map(({ from, to }) => to - from)) & -BLOCK_BYTES;
        advance(batch, length);
        const advanced = batch.map(({ md5, from, to }) => ({ md5, from: from + length, to }));
        running = wholeBlocks([...advanced, ...running.slice(batch.length)]);
      }
    },

    digest(md5) {
      const left = md5.length % BLOCK_BYTES;
      const end = LANES_END + (left < BLOCK_BYTES - 8 ? 1 : 2) * BLOCK_BYTES;
      bytes.fill(0, LANES_END, end);
      md5.rest.copy(bytes, LANES_END, 0, left);
      bytes[LANES_END + left] = 0x80;
      bytes.writeBigUInt64LE(BigInt(md5.length) * 8n, end - 8);
      advance([{ md5, from: LANES_END, to: end }], end - LANES_END);
      const digest = Buffer.allocUnsafe(16);
      for (let i = 0; i < 4; i++) digest.writeInt32LE(md5.values[i]!, i * 4);
      return digest.toString('base64');
    },
  };
}
