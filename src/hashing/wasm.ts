/**
 * Assembler for WebAssembly modules (core specification, chapter 5). Modules are assembled at run time, so the code that runs is the code
 * that can be read, and nothing has to be built or shipped.
 */

/** Zeroed, and shared, so that a thread can use it too. */
export interface WasmMemory {
  readonly buffer: SharedArrayBuffer;
}

/** The parts that are used here; the types of Node have none. */
declare const WebAssembly: {
  Memory: new (size: { initial: number; maximum: number; shared: true }) => WasmMemory;
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: { '': { '': WasmMemory } }) => { exports: { '': unknown } };
  validate: (bytes: Uint8Array) => boolean;
};

const PAGE_BYTES = 64 << 10;
const PAGES_MAX = 1 << 16;

export function createWasmMemory(bytes: number): WasmMemory {
  const pages = Math.ceil(bytes / PAGE_BYTES);
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
}

/**
 * @param body declarations of the locals, then instructions
 * @returns a function of this many numbers that works on the memory; undefined where the processor lacks its instructions
 */
export function compileFunction<F>(memory: WasmMemory, parameters: number, body: readonly number[]): F | undefined {
  const module = Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, parameters, ...Array<number>(parameters).fill(I32), 0]),
    ...section(2, [1, 0, 0, 2, 3, 0, ...unsignedLeb128(PAGES_MAX)]), // the shared memory, named ''
    ...section(3, [1, 0]),
    ...section(7, [1, 0, 0, 0]), // the function, named ''
    ...section(10, [1, ...lengthPrefixed(body)]),
  ]);
  if (!WebAssembly.validate(module)) return undefined;
  return new WebAssembly.Instance(new WebAssembly.Module(module), { '': { '': memory } }).exports[''] as F;
}

export const I32 = 0x7f;
export const I64 = 0x7e;
export const V128 = 0x7b;
export const END = 0x0b;
const NOTHING = 0x40;

export const block = [0x02, NOTHING];
export const loop = [0x03, NOTHING];
export const branch = (depth: number) => [0x0c, depth];
export const branchIf = (depth: number) => [0x0d, depth];
export const get = (local: number) => [0x20, local];
export const set = (local: number) => [0x21, local];
export const tee = (local: number) => [0x22, local];
export const i32 = (value: number) => [0x41, ...signedLeb128(value)];
export const i64 = (value: number) => [0x42, ...signedLeb128(value)];

// Alignments are hints; 0 makes no promise.
export const i32Load = (offset: number) => [0x28, 0, ...unsignedLeb128(offset)];
export const i32Store = (offset: number) => [0x36, 0, ...unsignedLeb128(offset)];
export const i64Load = (offset: number) => [0x29, 0, ...unsignedLeb128(offset)];
export const i64LoadByte = (offset: number) => [0x31, 0, ...unsignedLeb128(offset)];
export const i64Store = (offset: number) => [0x37, 0, ...unsignedLeb128(offset)];
export const v128Load = (offset: number) => [...v128(0), 0, ...unsignedLeb128(offset)];
export const v128Store = (offset: number) => [...v128(11), 0, ...unsignedLeb128(offset)];

export const i32Equal = 0x46;
export const i32LessUnsigned = 0x49;
export const i32Add = 0x6a;
export const i32Sub = 0x6b;
export const i32And = 0x71;
export const i32Or = 0x72;
export const i32Xor = 0x73;
export const i32RotateLeft = 0x77;
export const i64And = 0x83;
export const i64Xor = 0x85;
export const i64ShiftLeft = 0x86;
export const i64ShiftRight = 0x88;
export const i64ToI32 = 0xa7;

const v128 = (operation: number) => [0xfd, ...unsignedLeb128(operation)];
/** @param bytes indices into the bytes of both vectors, one after the other */
export const v128Shuffle = (bytes: readonly number[]) => [...v128(13), ...bytes];
export const v128Not = v128(77);
export const v128And = v128(78);
export const v128Or = v128(80);
export const v128Xor = v128(81);
export const i32x4ShiftLeft = v128(171);
export const i32x4ShiftRight = v128(173);
export const i32x4Add = v128(174);

function section(id: number, contents: readonly number[]): number[] {
  return [id, ...lengthPrefixed(contents)];
}

function lengthPrefixed(bytes: readonly number[]): number[] {
  return [...unsignedLeb128(bytes.length), ...bytes];
}

function unsignedLeb128(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsignedLeb128(value >>> 7)];
}

/** LEB128 with the sign in the highest bit of the last byte. */
function signedLeb128(value: number): number[] {
  return value >= -0x40 && value < 0x40 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signedLeb128(value >> 7)];
}
