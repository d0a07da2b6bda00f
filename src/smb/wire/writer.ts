/** Writes one message of little-endian bytes; offsets on the wire count from its first byte. */

const INITIAL_BYTES = 256;

export class Writer {
  #bytes: Buffer;
  #length = 0;

  /** @param expectedBytes saves copies if the message is not longer */
  constructor(expectedBytes = INITIAL_BYTES) {
    this.#bytes = Buffer.allocUnsafe(expectedBytes);
  }

  get length(): number {
    return this.#length;
  }

  u8(value: number): void {
    const start = this.#extend(1);
    this.#bytes.writeUInt8(value, start);
  }

  u16(value: number): void {
    const start = this.#extend(2);
    this.#bytes.writeUInt16LE(value, start);
  }

  u32(value: number): void {
    const start = this.#extend(4);
    this.#bytes.writeUInt32LE(value, start);
  }

  u64(value: bigint): void {
    const start = this.#extend(8);
    this.#bytes.writeBigUInt64LE(value, start);
  }

  bytes(bytes: Uint8Array): void {
    const start = this.#extend(bytes.length);
    this.#bytes.set(bytes, start);
  }

  zeros(count: number): void {
    const start = this.#extend(count);
    this.#bytes.fill(0, start, start + count);
  }

  align(multiple: number): void {
    this.zeros(-this.#length & (multiple - 1));
  }

  /** Overwrites a field that was written before its value was known. */
  patch(position: number, size: number, value: number): void {
    this.#bytes.writeUIntLE(value, position, size);
  }

  /** A view: the writer is not used after it. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Returns where the added bytes begin. */
  #extend(count: number): number {
    const start = this.#length;
    this.#length += count;
    if (this.#length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, start);
      this.#bytes = larger;
    }
    return start;
  }
}
