/**
 * The CRC64 of Azure Storage (CRC-64/NVME) in WebAssembly, as JavaScript has no fast integers of 64 bits. Long inputs are folded first, the
 * rest is looked up in tables, sixteen bytes per step (slicing-by-16).
 */
import { compileFold, FOLD_BYTES_MAX, foldMemoryBytes, OVERREAD_BYTES } from './crc-fold.ts';
import {
  block,
  branch,
  branchIf,
  compileFunction,
  createWasmMemory,
  END,
  get,
  I64,
  i32,
  i32Add,
  i32And,
  i32Equal,
  i32LessUnsigned,
  i32Sub,
  i64,
  i64And,
  i64Load,
  i64LoadByte,
  i64ShiftLeft,
  i64ShiftRight,
  i64Store,
  i64ToI32,
  i64Xor,
  loop,
  set,
  tee,
  type WasmMemory,
} from './wasm.ts';

export interface Crc64 {
  update(bytes: Uint8Array): void;
  /** Base64 of the eight bytes, lowest first. */
  digest(): string;
}

/** CRC64 of bytes in the memory, with OVERREAD_BYTES after them. */
export interface InPlaceCrc64 {
  /** At most FOLD_BYTES_MAX bytes. */
  update(from: number, to: number): void;
  digest(): string;
}

// The polynomial, reflected: 0x9A6C9329AC4BC9B5.
const POLYNOMIAL_HIGH = 0x9a6c9329;
const POLYNOMIAL_LOW = 0xac4bc9b5;
/** It divides x^1740 + x^1460 + x^761 + x^568 + x^142 + x^133 + x^95 + 1, and so that with each exponent multiplied by 8: bytes for bits. */
const DISTANCES = [0, 95, 133, 142, 568, 761, 1460].map((exponent) => 1740 - exponent);
/** Fewer bytes are not worth folding. */
const FOLDED_BYTES_MIN = 4 << 10;

// The memory begins with a table for each byte of a step (256 entries of 8 bytes), the current CRC, and the buffers of the fold.
const STEP_BYTES = 16;
const TABLE_BYTES = 256 * 8;
const CRC_AT = STEP_BYTES * TABLE_BYTES;
const LOW = CRC_AT / 4;
const HIGH = LOW + 1;
const FOLD_AT = CRC_AT + 64;
/** The memory before this offset belongs to the CRC64. */
export const CRC64_END = FOLD_AT + foldMemoryBytes(DISTANCES);

const INPUT_BYTES = FOLD_BYTES_MAX;
let engine: { readonly begin: () => InPlaceCrc64; readonly input: Uint8Array } | undefined;

export function createCrc64(): Crc64 {
  engine ??= openEngine();
  const { begin, input } = engine;
  const crc = begin();
  return {
    update(bytes) {
      for (let at = 0; at < bytes.length; at += INPUT_BYTES) {
        const piece = bytes.length <= INPUT_BYTES ? bytes : bytes.subarray(at, at + INPUT_BYTES);
        const from = alignLike(CRC64_END, piece);
        input.set(piece, from);
        crc.update(from, from + piece.length);
      }
    },
    digest: crc.digest,
  };
}

/** Created on first use: the start of a server needs none of it. */
function openEngine() {
  const memory = createWasmMemory(CRC64_END + 8 + INPUT_BYTES + OVERREAD_BYTES);
  return { begin: compileCrc64(memory), input: new Uint8Array(memory.buffer) };
}

export function crc64Base64(bytes: Uint8Array): string {
  const crc = createCrc64();
  crc.update(bytes);
  return crc.digest();
}

/** @returns a function that begins a CRC64; several can be computed at the same time */
export function compileCrc64(memory: WasmMemory): () => InPlaceCrc64 {
  const words = new Int32Array(memory.buffer, 0, FOLD_AT / 4);
  fillTables(words);
  /** Updates the current CRC with the bytes. */
  const advance = compileFunction<(from: number, to: number) => void>(memory, 2, emitAdvance())!;
  const fold = compileFold(memory, FOLD_AT, DISTANCES);
  return () => {
    let low = -1;
    let high = -1;
    return {
      update(from, to) {
        if (fold && to - from >= FOLDED_BYTES_MIN) {
          // The fold adds the CRC to the first bytes, so the CRC of the folded bytes starts at 0.
          const left = fold(from, to, low, high);
          words[LOW] = 0;
          words[HIGH] = 0;
          advance(fold.leftAt, fold.leftAt + left);
        } else {
          words[LOW] = low;
          words[HIGH] = high;
          advance(from, to);
        }
        low = words[LOW]!;
        high = words[HIGH]!;
      },
      digest() {
        const bytes = Buffer.allocUnsafe(8);
        bytes.writeInt32LE(~low, 0);
        bytes.writeInt32LE(~high, 4);
        return bytes.toString('base64');
      },
    };
  };
}

/** Table n has the effect of a byte on the CRC when n more bytes follow it in the same step. */
function fillTables(words: Int32Array): void {
  for (let byte = 0; byte < 256; byte++) {
    let low = byte;
    let high = 0;
    for (let bit = 0; bit < 8; bit++) {
      const out = low & 1;
      low = (low >>> 1) | (high << 31);
      high >>>= 1;
      if (out) {
        low ^= POLYNOMIAL_LOW;
        high ^= POLYNOMIAL_HIGH;
      }
    }
    words[byte * 2] = low;
    words[byte * 2 + 1] = high;
  }
  for (let at = 512; at < STEP_BYTES * 512; at += 2) {
    const low = words[at - 512]!;
    const high = words[at - 511]!;
    const first = (low & 0xff) * 2;
    words[at] = ((low >>> 8) | (high << 24)) ^ words[first]!;
    words[at + 1] = (high >>> 8) ^ words[first + 1]!;
  }
}

function emitAdvance(): number[] {
  const at = 0;
  const end = 1;
  const crc = 2;
  const next = 3;
  /** Looks up one byte of a value in a table. Entries have eight bytes, so the byte is shifted up by three bits. */
  const lookUp = (table: number, value: number, byte: number) => [
    ...get(value),
    ...i64(Math.abs(byte * 8 - 3)),
    byte === 0 ? i64ShiftLeft : i64ShiftRight,
    i64ToI32,
    ...i32(0xff << 3),
    i32And,
    ...i64Load(table * TABLE_BYTES),
  ];
  const emitEntry = (i: number) => lookUp(STEP_BYTES - 1 - i, i < 8 ? crc : next, i % 8);
  /** XORs in a tree: the next step depends on the result, and a chain would have a longer latency. */
  const emitXorTree = (from: number, to: number): number[] =>
    to - from === 1
      ? emitEntry(from)
      : [...emitXorTree((from + to) >> 1, to), ...emitXorTree(from, (from + to) >> 1), i64Xor];

  return [
    ...[1, 2, I64], // locals: crc and next
    ...[...i32(0), ...i64Load(CRC_AT), ...set(crc)],
    ...block,
    ...loop,
    // Exit when less than a step is left.
    ...[...get(end), ...get(at), i32Sub, ...i32(STEP_BYTES), i32LessUnsigned, ...branchIf(1)],
    ...[...get(at), ...i64Load(0), ...get(crc), i64Xor, ...set(crc)],
    ...[...get(at), ...i64Load(8), ...set(next)],
    ...[...emitXorTree(0, STEP_BYTES), ...set(crc)],
    ...[...get(at), ...i32(STEP_BYTES), i32Add, ...set(at)],
    ...branch(0),
    END,
    END,
    ...block,
    ...loop,
    // The rest, byte by byte.
    ...[...get(end), ...get(at), i32Equal, ...branchIf(1)],
    ...[...get(at), ...i64LoadByte(0), ...get(crc), i64Xor, ...tee(next)],
    ...[...i64(0xff), i64And, ...set(next)],
    ...[...lookUp(0, next, 0), ...get(crc), ...i64(8), i64ShiftRight, i64Xor, ...set(crc)],
    ...[...get(at), ...i32(1), i32Add, ...set(at)],
    ...branch(0),
    END,
    END,
    ...[...i32(0), ...get(crc), ...i64Store(CRC_AT)],
    END,
  ];
}

/**
 * The first offset from `at` on to which these bytes can be copied fast. In shared memory, a copy between addresses that differ in their last
 * three bits goes byte by byte, seven times as slow.
 */
export const alignLike = (at: number, { byteOffset }: Uint8Array): number => at + (byteOffset & 7);
