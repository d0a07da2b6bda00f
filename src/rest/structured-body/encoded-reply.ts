/** A content that is sent as a structured message. */
import type { StreamedDocument } from '../http/streamed.ts';
import type { Request } from '../operation.ts';
import type { Reply } from '../reply.ts';
import { structuredType } from './headers.ts';
import { encodedLength, MessageEncoder } from './message-encoder.ts';

/** A shorter piece may still be in use when the next one is pulled, so it is copied: the memory of its source is used again. */
const COPIED_BYTES_MAX = 64 << 10;

/** The reply to a request for a structured body. */
export function structuredReply(
  { status, headers }: Reply,
  content: Uint8Array | StreamedDocument,
  length: number,
  request: Request,
): Reply {
  return {
    status,
    headers: {
      ...headers,
      'Content-Length': encodedLength(length),
      'x-ms-structured-body': structuredType(request),
      'x-ms-structured-content-length': length,
    },
    body: encodeContent(content, length),
  };
}

export function encodeContent(content: Uint8Array | StreamedDocument, length: number): StreamedDocument {
  if (!(content instanceof Uint8Array) && Symbol.asyncIterator in content) return new EncodedStream(content, length);
  const encoder = new MessageEncoder(length);
  const pieces = content instanceof Uint8Array ? [content] : content;
  return [encoder.begin(), ...pieces.flatMap((piece) => encoder.encode(piece))];
}

/** A class, as a generator that never ran would not release its source. */
class EncodedStream implements AsyncIterableIterator<Uint8Array> {
  readonly #content: AsyncIterator<Uint8Array>;
  readonly #encoder: MessageEncoder;
  /** Not pulled yet. */
  #parts: Uint8Array[];

  constructor(content: AsyncIterable<Uint8Array>, length: number) {
    this.#content = content[Symbol.asyncIterator]();
    this.#encoder = new MessageEncoder(length);
    this.#parts = [this.#encoder.begin()];
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    for (;;) {
      const part = this.#parts.shift();
      if (part) return { done: false, value: part.length < COPIED_BYTES_MAX ? Buffer.from(part) : part };
      const { done, value: piece } = await this.#content.next();
      if (done) return { done: true, value: undefined };
      this.#parts = this.#encoder.encode(piece);
    }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.#content.return?.();
    return { done: true, value: undefined };
  }
}
