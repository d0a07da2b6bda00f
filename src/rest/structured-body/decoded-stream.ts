/** The content of a structured body, as its chunks arrive. */
import { nextSlice, type SlicedWork } from '../../base/time-slices.ts';
import { MessageDecoder, type MessageLengths } from './message-decoder.ts';

interface Recyclable extends AsyncIterable<Uint8Array> {
  /** Called with pieces that are used: their memory may be used again. */
  recycle?(pieces: readonly Uint8Array[]): void;
}

export class DecodedStream implements AsyncIterableIterator<Uint8Array> {
  readonly #body: Recyclable;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #decoder: MessageDecoder;
  readonly #onEnd: (crc64: string) => void;
  /** The chunk in whose memory a piece of content is. */
  readonly #chunkOf = new Map<Uint8Array, Uint8Array>();

  /** @param onEnd called with the CRC64 that the message states for its content */
  constructor(body: Recyclable, lengths: MessageLengths, onEnd: (crc64: string) => void) {
    this.#body = body;
    this.#chunks = body[Symbol.asyncIterator]();
    this.#decoder = new MessageDecoder(lengths);
    this.#onEnd = onEnd;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    for (;;) {
      const { done, value: chunk } = await this.#chunks.next();
      if (done) {
        this.#onEnd(this.#decoder.end());
        return { done: true, value: undefined };
      }
      const content = await decodeSliced(this.#decoder.decode(chunk));
      if (content.length > 0) {
        this.#chunkOf.set(content, chunk);
        return { done: false, value: content };
      }
      this.#body.recycle?.([chunk]);
    }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.#chunks.return?.();
    return { done: true, value: undefined };
  }

  recycle(pieces: readonly Uint8Array[]): void {
    const chunks = pieces.map((piece) => {
      const chunk = this.#chunkOf.get(piece)!;
      this.#chunkOf.delete(piece);
      return chunk;
    });
    this.#body.recycle?.(chunks);
  }

  /** All of the content, of at most `length` bytes. */
  async readWhole(length: number): Promise<Buffer> {
    const whole = Buffer.allocUnsafe(length);
    let at = 0;
    for await (const piece of this) {
      whole.set(piece, at);
      at += piece.length;
      this.recycle([piece]);
    }
    return whole;
  }
}

/** Throws unless the body is one whole message. */
export async function decodeWhole(body: Buffer, lengths: MessageLengths): Promise<{ content: Buffer; crc64: string }> {
  const decoder = new MessageDecoder(lengths);
  const { buffer, byteOffset, length } = await decodeSliced(decoder.decode(body));
  return { content: Buffer.from(buffer, byteOffset, length), crc64: decoder.end() };
}

/** Unlike `runSliced`, no first slice waits for those of others: nearly all chunks have one slice, which takes few microseconds. */
async function decodeSliced(work: SlicedWork<Uint8Array>): Promise<Uint8Array> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value;
    await nextSlice();
  }
}
