/**
 * MD5 of several bodies at a time. Each of its steps waits for the one before, so that one MD5 leaves a processor mostly idle:
 * four of them, each in a lane of a vector, take little longer than one.
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

/** Before this nothing else may lie in the memory. */
export const MD5_END = LANES_END + 2 * BLOCK_BYTES;
export const MD5_LANES = LANES;

export interface Md5State {
  readonly values: Int32Array;
  /** The bytes that do not make a block yet. */
  readonly rest: Buffer;
  length: number;
}

/** Bytes of one body that lie in the memory. */
export interface Md5Input {
  readonly md5: Md5State;
  readonly from: number;
  readonly to: number;
}

export interface Md5Engine {
  begin(): Md5State;
  /** At most MD5_LANES, of different bodies. */
  update(stretches: readonly Md5Input[]): void;
  /** Base64. It is the last call. */
  digest(md5: Md5State): string;
}

const FIRST_VALUES = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];

export function compileMd5(memory: WasmMemory): Md5Engine {
  const words = new Int32Array(memory.buffer);
  const bytes = Buffer.from(memory.buffer);
  const advanceOne = compileFunction<Advance>(memory, ADVANCE_PARAMETERS, emitOneLane())!;
  const advanceFour = compileFunction<Advance>(memory, ADVANCE_PARAMETERS, emitFourLanes());
  for (let at = 0; at < 64 * LANES; at++) words[CONSTANTS_AT / 4 + at] = stepConstant(at >> 2);

  /** Takes them through as many bytes as there are for each of them. */
  function advance(stretches: readonly Md5Input[], length: number): void {
    const wordIndex = (value: number, lane: number) => VALUES_AT / 4 + value * LANES + lane;
    for (const [lane, { md5 }] of stretches.entries()) {
      for (let i = 0; i < 4; i++) words[wordIndex(i, lane)] = md5.values[i]!;
    }
    const [one, two = one, three = one, four = one] = stretches.map(({ from }) => from);
    const run = stretches.length > 1 ? advanceFour! : advanceOne;
    run(one!, two!, three!, four!, one! + length);
    for (const [lane, { md5 }] of stretches.entries()) {
      for (let i = 0; i < 4; i++) md5.values[i] = words[wordIndex(i, lane)]!;
    }
  }

  /** Fills up a block that was begun before. Gives back what lies behind it. */
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

  /** Those that have one. What is left of the others is kept for later. */
  function wholeBlocks(stretches: readonly Md5Input[]): Md5Input[] {
    return stretches.filter(({ md5, from, to }) => {
      if (to - from >= BLOCK_BYTES) return true;
      bytes.copy(md5.rest, 0, from, to);
      return false;
    });
  }

  return {
    begin: () => ({ values: Int32Array.from(FIRST_VALUES), rest: Buffer.alloc(BLOCK_BYTES), length: 0 }),

    update(stretches) {
      let running = wholeBlocks(stretches.map(completeBlock));
      while (running.length > 0) {
        const batch = running.slice(0, advanceFour ? LANES : 1);
        const length = Math.min(...batch.map(({ from, to }) => to - from)) & -BLOCK_BYTES;
        advance(batch, length);
        const behind = batch.map(({ md5, from, to }) => ({ md5, from: from + length, to }));
        running = wholeBlocks([...behind, ...running.slice(batch.length)]);
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
      const answer = Buffer.allocUnsafe(16);
      for (let i = 0; i < 4; i++) answer.writeInt32LE(md5.values[i]!, i * 4);
      return answer.toString('base64');
    },
  };
}
