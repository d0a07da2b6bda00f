/**
 * The memory that a hashing thread shares with its owner: a queue of records, and the bytes that they speak of.
 * The owner adds records, the thread works through them in order, the owner takes them back in order.
 */
import { OVERREAD_BYTES } from './crc-fold.ts';
import { MD5_END } from './md5.ts';
import { createWasmMemory, type WasmMemory } from './wasm.ts';

export const RECORDS_MAX = 256;
export const RECORD_BYTES_MAX = 64 << 10;
export const DATA_BYTES = 4 << 20;

/** What a record asks for. The first record of a hashing begins it. */
export const UPDATE = 0;
/** The answer takes the place of the record's bytes. */
export const DIGEST = 1;
export const ABANDON = 2;
/** Added to each of these. */
export const WITH_MD5 = 4;

export const CRC64_TEXT = 12;
export const MD5_TEXT = 24;

// The words of `control`. Counts of records go round at 32 bits, so they are only held against each other for equality.
/** How many records there were. */
export const SENT = 0;
/** How many of them the thread has worked through. */
export const DONE = 1;
/** 1 while the thread sleeps: only a message wakes it. */
export const IDLE = 2;
/** 1 while the owner has something that waits for room. */
export const WAITING = 3;
/** 1 from a message to the owner until it has looked. */
export const SIGNALLED = 4;

export interface Ring {
  readonly control: Int32Array;
  /** Four words each: what, the number of the hashing, where its bytes are, how many. */
  readonly records: Int32Array;
  readonly data: Buffer;
}

// Behind what the hashes keep there. The thread computes them where the bytes lie.
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

/** Where the words of a record begin, by its number. */
export function recordOffset(number: number): number {
  return (number & (RECORDS_MAX - 1)) * 4;
}

export interface RingAllocator {
  /**
   * Where so many bytes fit in one stretch, or undefined. `like` is where they come from: both places agree in their last three bits,
   * see `alikeFrom`.
   */
  allocate(length: number, like: number): number | undefined;
  /** What was claimed first and is not yet released ends here. */
  release(end: number): void;
  /** Nothing is claimed any more. */
  reset(): void;
}

/** Claims are released in the order in which they were made. */
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
      // From the beginning again: bytes that are used often stay in the processor's cache.
      first = 0;
      next = 0;
    },
  };
}
