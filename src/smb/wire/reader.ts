/** Bounds-checked reads of little-endian bytes: the one place that compares a length or an offset of a client with what arrived. */

/** The bytes are not what their lengths, offsets or sizes say. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

/** Reads one message from its first byte on; offsets on the wire count from that byte. */
export class Reader {
  readonly #bytes: Buffer;
  #position: number;

  constructor(bytes: Buffer, position = 0) {
    this.#bytes = bytes;
    this.#position = position;
  }

  get position(): number {
    return this.#position;
  }

  get remaining(): number {
    return this.#bytes.length - this.#position;
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#advance(1));
  }

  u16(): number {
    return this.#bytes.readUInt16LE(this.#advance(2));
  }

  u32(): number {
    return this.#bytes.readUInt32LE(this.#advance(4));
  }

  u64(): bigint {
    return this.#bytes.readBigUInt64LE(this.#advance(8));
  }

  /** A view, not a copy. */
  bytes(length: number): Buffer {
    const start = this.#advance(length);
    return this.#bytes.subarray(start, start + length);
  }

  rest(): Buffer {
    return this.bytes(this.remaining);
  }

  skip(length: number): void {
    this.#advance(length);
  }

  /** Goes to the next multiple; padding after the last byte may be missing. */
  align(multiple: number): void {
    this.skip(Math.min(-this.#position & (multiple - 1), this.remaining));
  }

  /** A view of the message, without moving. */
  view(offset: number, length: number): Buffer {
    if (offset < 0 || length < 0 || offset + length > this.#bytes.length) {
      throw new WireError(`${length} bytes at ${offset} exceed a message of ${this.#bytes.length} bytes`);
    }
    return this.#bytes.subarray(offset, offset + length);
  }

  #advance(length: number): number {
    const start = this.#position;
    if (!(length >= 0 && length <= this.remaining)) {
      throw new WireError(`${length} bytes at ${start} exceed a message of ${this.#bytes.length} bytes`);
    }
    this.#position = start + length;
    return start;
  }
}
