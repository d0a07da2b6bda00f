/** Encodes a content of known length as a structured message, piece by piece. */
import { type Crc64, createCrc64 } from '../../hashing/crc64.ts';
import {
  CRC64_FLAG,
  HEADER_BYTES,
  overheadBytes,
  SEGMENT_HEADER_BYTES,
  SEGMENTS_MAX,
  VERSION,
} from './message-format.ts';

/** As long as those of Microsoft's clients. */
export const SEGMENT_BYTES = 4 << 20;

/** An empty content has one segment, too. */
function segmentLayout(contentLength: number): { readonly segmentBytes: number; readonly segments: number } {
  const segmentBytes = Math.max(SEGMENT_BYTES, Math.ceil(contentLength / SEGMENTS_MAX));
  return { segmentBytes, segments: Math.max(1, Math.ceil(contentLength / segmentBytes)) };
}

export function encodedLength(contentLength: number): number {
  return contentLength + overheadBytes(segmentLayout(contentLength).segments);
}

export class MessageEncoder {
  readonly #segmentBytes: number;
  readonly #segments: number;
  #segment = 0;
  /** Content of the current segment, and of the message, that has not come yet. */
  #segmentLeft = 0;
  #contentLeft: number;
  #segmentCrc64: Crc64 = createCrc64();
  readonly #messageCrc64: Crc64 = createCrc64();

  constructor(contentLength: number) {
    const { segmentBytes, segments } = segmentLayout(contentLength);
    this.#segmentBytes = segmentBytes;
    this.#segments = segments;
    this.#contentLeft = contentLength;
  }

  /** The bytes before the content: of an empty content, all of them. */
  begin(): Buffer {
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt8(VERSION, 0);
    header.writeBigUInt64LE(BigInt(this.#contentLeft + overheadBytes(this.#segments)), 1);
    header.writeUInt16LE(CRC64_FLAG, 9);
    header.writeUInt16LE(this.#segments, 11);
    const isEmpty = this.#contentLeft === 0;
    return Buffer.concat([header, this.#beginSegment(), ...(isEmpty ? this.#endSegment() : [])]);
  }

  /** The content in parts of its own memory, each with the bytes of the message that follow it. */
  encode(content: Uint8Array): Uint8Array[] {
    const parts: Uint8Array[] = [];
    for (let at = 0; at < content.length; ) {
      const part = content.subarray(at, at + this.#segmentLeft);
      if (part.length === 0) throw new Error('the content is longer than it was said to be');
      this.#segmentCrc64.update(part);
      this.#messageCrc64.update(part);
      this.#segmentLeft -= part.length;
      this.#contentLeft -= part.length;
      at += part.length;
      parts.push(part);
      if (this.#segmentLeft === 0) parts.push(Buffer.concat(this.#endSegment()));
    }
    return parts;
  }

  #beginSegment(): Buffer {
    this.#segment++;
    this.#segmentLeft = Math.min(this.#segmentBytes, this.#contentLeft);
    this.#segmentCrc64 = createCrc64();
    const header = Buffer.alloc(SEGMENT_HEADER_BYTES);
    header.writeUInt16LE(this.#segment, 0);
    header.writeBigUInt64LE(BigInt(this.#segmentLeft), 2);
    return header;
  }

  #endSegment(): Buffer[] {
    const segmentCrc64 = crc64Bytes(this.#segmentCrc64);
    const isLast = this.#segment === this.#segments;
    return [segmentCrc64, isLast ? crc64Bytes(this.#messageCrc64) : this.#beginSegment()];
  }
}

function crc64Bytes(crc64: Crc64): Buffer {
  return Buffer.from(crc64.digest(), 'base64');
}
