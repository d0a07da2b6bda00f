/** NDR, the 32-bit transfer syntax of DCE/RPC (C706 chapter 14): numbers at multiples of their size, and what pointers point to after the rest. */
import { Reader, WireError } from '../wire/reader.ts';
import { Writer } from '../wire/writer.ts';

export class NdrReader {
  readonly #reader: Reader;

  constructor(stub: Buffer) {
    this.#reader = new Reader(stub);
  }

  u32(): number {
    this.#reader.align(4);
    return this.#reader.u32();
  }

  /** A string behind a pointer that may be null. */
  optionalText(): string | undefined {
    return this.u32() === 0 ? undefined : this.text();
  }

  /** A conformant and varying string, which ends with a zero. */
  text(): string {
    this.u32();
    const offset = this.u32();
    const count = this.u32();
    if (offset !== 0) throw new WireError('a string of NDR that begins in its middle');
    const text = this.#reader.bytes(2 * count).toString('utf16le');
    return text.endsWith('\0') ? text.slice(0, -1) : text;
  }
}

export class NdrWriter {
  readonly #writer = new Writer();
  /** What the pointers of the struct being written point to. */
  #deferred: (() => void)[] = [];
  #lastReference = 0x0002_0000;

  u32(value: number): void {
    this.#writer.align(4);
    this.#writer.u32(value);
  }

  /** A pointer; what it points to follows at the next `flush`. */
  pointer(write: () => void): void {
    this.#lastReference += 4;
    this.u32(this.#lastReference);
    this.#deferred.push(write);
  }

  text(value: string): void {
    this.pointer(() => {
      const encoded = Buffer.from(`${value}\0`, 'utf16le');
      this.u32(encoded.length / 2);
      this.u32(0);
      this.u32(encoded.length / 2);
      this.#writer.bytes(encoded);
    });
  }

  /** Writes what the pointers so far point to; pointers within come after it. */
  flush(): void {
    while (this.#deferred.length > 0) {
      const due = this.#deferred;
      this.#deferred = [];
      for (const write of due) write();
    }
  }

  finish(): Buffer {
    this.#writer.align(4);
    return this.#writer.finish();
  }
}
