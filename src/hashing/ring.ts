/**
 * Single-producer, single-consumer ring buffer in shared memory between a hashing thread and its owner: records, and the bytes that they
 * refer to. The owner adds records, the thread processes them, the owner releases them in order.
 */
import { OVERREAD_BYTES } from './crc-fold.ts';
import { MD5_END } from './md5.ts';
import { createWasmMemory, type WasmMemory } from './wasm.ts';

export const RECORDS_MAX = 256;
export const RECORD_BYTES_MAX = 64 << 10;
export const DATA_BYTES = 4 << 20;

/** Opcodes of records. The first record of a job begins it. */
export const UPDATE = 0;
/** The result is written to where the record's bytes are. */
export const DIGEST = 1;
export const ABANDON = 2;
/** A flag in each opcode. */
export const WITH_MD5 = 4;

export const CRC64_TEXT = 12;
export const MD5_TEXT = 24;

// The words of `control`. Counts of records wrap around at 32 bits, so they are compared for equality only.
/** Count of all records. Written by the owner only. */
export const SENT = 0;
/** Count of the processed records. Written by the thread only. */
export const DONE = 1;
/** 1 while the thread sleeps, and only a message wakes it. Set by the thread only; reset by an exchange on either side. */
export const IDLE = 2;
/** 1 while the owner waits for room. Written by the owner only. */
export const WAITING = 3;
/** 1 from a message to the owner until the owner has received it. */
export const SIGNALLED = 4;

export interface Ring {
  readonly control: Int32Array;
  /** Four words each: opcode, number of the job, offset and length of the bytes. */
  readonly records: Int32Array;
  readonly data: Buffer;
}

// After the memory of the hash functions, which work on the bytes in place.
const CONTROL_AT = MD5_END;
const RECORDS_AT = CONTROL_AT + 64;
export const DATA_AT = RECORDS_AT + RECORDS_MAX * 16;

export function createRingMemory(): WasmMemory {
  return createWasmMemory(DATA_AT + DATA_BYTES + OVERREAD_BYTES);
}

export function openRing({ buffer }: WasmMemory): Ring {
  return {
    control: new Int32Array(buffer, CONTROL_AT, (RECORDS_AT - CONTROL_AT) / 4),
    records: new Int32Array(buffer, RECORDS_AT, (DATA_AT - RECORDS_AT) / 4),
    data: Buffer.from(buffer, DATA_AT, DATA_BYTES),
  };
}

/** Offset of the first word of a record, by its number. */
export function recordOffset(number: number): number {
  return (number & (RECORDS_MAX - 1)) * 4;
}

export interface RingAllocator {
  /**
   * Offset of `length` consecutive free bytes, or undefined. It agrees with `like`, the offset of the source, in its last three bits: see
   * `alignLike`.
   */
  allocate(length: number, like: number): number | undefined;
  /** Releases the oldest allocation, which ends here. */
  release(end: number): void;
  /** Releases everything. */
  reset(): void;
}

/** Allocations are released in the order in which they were made. */
export function createRingAllocator(): RingAllocator {
  let first = 0;
  let next = 0;
  return {
    allocate(length, like) {
      const phase = like & 7;
      let at = ((next + 7) & ~7) + phase;
      if (next < first) {
        if (at + length >= first) return undefined;
      } else if (at + length > DATA_BYTES) {
        at = phase;
        if (at + length >= first) return undefined;
      }
      next = at + length;
      return at;
    },
    release(end) {
      first = end;
    },
    reset() {
      // Starts at the beginning again: memory that is used often stays in the processor's cache.
      first = 0;
      next = 0;
    },
  };
}
