/**
 * The CRC64 of Azure Storage, sixteen bytes a step, in WebAssembly: JavaScript has no fast integers of 64 bits.
 * The module is assembled here, so that what runs is what can be read and nothing has to be built.
 */

export interface Crc64 {
  update(bytes: Uint8Array): void;
  /** Base64 of the eight bytes, lowest first. */
  digest(): string;
}

// The polynomial, reflected: 0x9A6C9329AC4BC9B5.
const POLYNOMIAL_HIGH = 0x9a6c9329;
const POLYNOMIAL_LOW = 0xac4bc9b5;

// The module's memory: a table for each byte of a step (256 entries of 8 bytes), the value so far, the bytes to go through.
const STEP_BYTES = 16;
const TABLE_BYTES = 256 * 8;
const CRC_AT = STEP_BYTES * TABLE_BYTES;
const INPUT_AT = CRC_AT + 64;
const MEMORY_BYTES = 128 << 10;
const INPUT_BYTES = 64 << 10;

/** What this file uses of it; the types of Node do not have it. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: unknown };
};

const { advance, memory } = new WebAssembly.Instance(new WebAssembly.Module(assemble())).exports as {
  /** Takes the value so far through the input's first bytes. */
  advance(length: number): void;
  memory: { buffer: ArrayBuffer };
};
const words = new Int32Array(memory.buffer);
const input = new Uint8Array(memory.buffer, INPUT_AT, INPUT_BYTES);
const LOW = CRC_AT / 4;
const HIGH = LOW + 1;

fillTables();

export function crc64(): Crc64 {
  let low = -1;
  let high = -1;
  return {
    update(bytes) {
      words[LOW] = low;
      words[HIGH] = high;
      if (bytes.length <= INPUT_BYTES) {
        input.set(bytes);
        advance(bytes.length);
      } else {
        for (let at = 0; at < bytes.length; at += INPUT_BYTES) {
          const piece = bytes.subarray(at, at + INPUT_BYTES);
          input.set(piece);
          advance(piece.length);
        }
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
}

export function crc64Base64(bytes: Uint8Array): string {
  const crc = crc64();
  crc.update(bytes);
  return crc.digest();
}

/** Table n says what a byte does to the value when n more bytes follow it in the same step. */
function fillTables(): void {
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

/** The module in the binary format of the WebAssembly core specification, chapter 5. */
function assemble(): Uint8Array {
  const I32 = 0x7f;
  const I64 = 0x7e;
  const NOTHING = 0x40;
  const END = 0x0b;
  const block = [0x02, NOTHING];
  const loop = [0x03, NOTHING];
  const branch = (depth: number) => [0x0c, depth];
  const branchIf = (depth: number) => [0x0d, depth];
  const get = (local: number) => [0x20, local];
  const set = (local: number) => [0x21, local];
  const tee = (local: number) => [0x22, local];
  const i32 = (value: number) => [0x41, ...signed(value)];
  const i64 = (value: number) => [0x42, ...signed(value)];
  // Alignments are hints; 0 promises nothing.
  const loadI64 = (offset: number) => [0x29, 0, ...unsigned(offset)];
  const loadByte = (offset: number) => [0x31, 0, ...unsigned(offset)];
  const storeI64 = (offset: number) => [0x37, 0, ...unsigned(offset)];
  const i32LessUnsigned = 0x49;
  const i32Equal = 0x46;
  const i32Add = 0x6a;
  const i32Sub = 0x6b;
  const i32And = 0x71;
  const i64And = 0x83;
  const i64Xor = 0x85;
  const i64ShiftLeft = 0x86;
  const i64ShiftRight = 0x88;
  const toI32 = 0xa7;

  const length = 0;
  const at = 1;
  const crc = 2;
  const next = 3;
  /** The entry of a table for one byte of a value. Entries have eight bytes, so the byte is left three bits up. */
  const lookUp = (table: number, value: number, byte: number) => [
    ...get(value),
    ...i64(Math.abs(byte * 8 - 3)),
    byte === 0 ? i64ShiftLeft : i64ShiftRight,
    toI32,
    ...i32(0xff << 3),
    i32And,
    ...loadI64(table * TABLE_BYTES),
  ];
  const entryOf = (i: number) => lookUp(STEP_BYTES - 1 - i, i < 8 ? crc : next, i % 8);
  /** Joined as a tree: the next step waits for the value, and a chain would make it wait longer. */
  const joined = (from: number, to: number): number[] =>
    to - from === 1 ? entryOf(from) : [...joined((from + to) >> 1, to), ...joined(from, (from + to) >> 1), i64Xor];
  const step = joined(0, STEP_BYTES);

  const body = [
    ...[2, 1, I32, 2, I64], // locals: at; crc and next
    ...[...i32(0), ...loadI64(CRC_AT), ...set(crc)],
    ...block,
    ...loop,
    // Leave when less than a step is left.
    ...[...get(length), ...get(at), i32Sub, ...i32(STEP_BYTES), i32LessUnsigned, ...branchIf(1)],
    ...[...get(at), ...loadI64(INPUT_AT), ...get(crc), i64Xor, ...set(crc)],
    ...[...get(at), ...loadI64(INPUT_AT + 8), ...set(next)],
    ...[...step, ...set(crc)],
    ...[...get(at), ...i32(STEP_BYTES), i32Add, ...set(at)],
    ...branch(0),
    END,
    END,
    ...block,
    ...loop,
    // The rest, byte by byte.
    ...[...get(length), ...get(at), i32Equal, ...branchIf(1)],
    ...[...get(at), ...loadByte(INPUT_AT), ...get(crc), i64Xor, ...tee(next)],
    ...[...i64(0xff), i64And, ...set(next)],
    ...[...lookUp(0, next, 0), ...get(crc), ...i64(8), i64ShiftRight, i64Xor, ...set(crc)],
    ...[...get(at), ...i32(1), i32Add, ...set(at)],
    ...branch(0),
    END,
    END,
    ...[...i32(0), ...get(crc), ...storeI64(CRC_AT)],
    END,
  ];

  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 1, I32, 0]), // one type: (i32) -> ()
    ...section(3, [1, 0]), // one function of that type
    ...section(5, [1, 0, ...unsigned(MEMORY_BYTES >> 16)]), // one memory, counted in pages of 64 KiB
    ...section(7, [2, ...text('advance'), 0, 0, ...text('memory'), 2, 0]),
    ...section(10, [1, ...sized(body)]),
  ]);
}

function section(id: number, contents: number[]): number[] {
  return [id, ...sized(contents)];
}

function sized(bytes: number[]): number[] {
  return [...unsigned(bytes.length), ...bytes];
}

function text(value: string): number[] {
  return sized([...Buffer.from(value)]);
}

/** LEB128. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** LEB128 of a number that is not negative: the highest bit of its last byte is the sign, and stays clear. */
function signed(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...signed(value >>> 7)];
}
