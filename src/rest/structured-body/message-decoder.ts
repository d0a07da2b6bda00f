/** Decodes a structured message chunk by chunk, and many short segments in slices. Every length is verified before the bytes that it promises. */
import type { SlicedWork } from '../../base/time-slices.ts';
import { type Crc64, createCrc64 } from '../../hashing/crc64.ts';
import { commonErrors, errorFactory, type StorageError } from '../../services/common/errors.ts';
import { checkHashes } from '../../services/common/upload.ts';
import {
  CRC64_BYTES,
  CRC64_FLAG,
  HEADER_BYTES,
  overheadBytes,
  SEGMENT_HEADER_BYTES,
  VERSION,
} from './message-format.ts';

const fail = errorFactory(commonErrors);

/** A segment takes about two microseconds besides its bytes. */
const SEGMENTS_PER_SLICE = 256;

export interface MessageLengths {
  /** Of the whole message: the Content-Length. */
  readonly message: number;
  /** Of the content in it. */
  readonly content: number;
}

export class MessageDecoder {
  readonly #lengths: MessageLengths;
  /** The bytes of a field other than content: it may begin in one chunk and end in the next. */
  readonly #field = Buffer.alloc(HEADER_BYTES);
  #fieldBytes = 0;
  #fieldEnd = HEADER_BYTES;
  #readField: () => void = () => this.#readHeader();
  #segments = 0;
  #segment = 0;
  /** Content of the current segment, and of the message, that has not arrived yet. */
  #segmentLeft = 0;
  #contentLeft: number;
  #segmentCrc64: Crc64 = createCrc64();
  #messageCrc64: string | undefined;

  constructor(lengths: MessageLengths) {
    this.#lengths = lengths;
    this.#contentLeft = lengths.content;
  }

  /** The content in the chunk, moved together in the chunk's own memory. */
  *decode(chunk: Uint8Array): SlicedWork<Uint8Array> {
    let at = 0;
    let from = 0;
    let to = 0;
    let sliceEnd = this.#segment + SEGMENTS_PER_SLICE;
    while (at < chunk.length) {
      if (this.#segment === sliceEnd) {
        sliceEnd += SEGMENTS_PER_SLICE;
        yield;
      }
      if (this.#segmentLeft > 0) {
        const end = Math.min(chunk.length, at + this.#segmentLeft);
        this.#segmentCrc64.update(chunk.subarray(at, end));
        if (from === to) from = to = at;
        else chunk.copyWithin(to, at, end);
        to += end - at;
        this.#segmentLeft -= end - at;
        this.#contentLeft -= end - at;
        at = end;
      } else at = this.#fillField(chunk, at);
    }
    return chunk.subarray(from, to);
  }

  /** The CRC64 of the content that the message states, in base64. Throws if the message is not complete. */
  end(): string {
    if (this.#messageCrc64 === undefined) throw invalid('The message ends too early.');
    return this.#messageCrc64;
  }

  #fillField(chunk: Uint8Array, at: number): number {
    if (this.#messageCrc64 !== undefined) throw invalid('Bytes follow the message.');
    const end = Math.min(chunk.length, at + this.#fieldEnd - this.#fieldBytes);
    this.#field.set(chunk.subarray(at, end), this.#fieldBytes);
    this.#fieldBytes += end - at;
    if (this.#fieldBytes === this.#fieldEnd) this.#readField();
    return end;
  }

  #expectField(bytes: number, read: () => void): void {
    this.#fieldBytes = 0;
    this.#fieldEnd = bytes;
    this.#readField = read;
  }

  #readHeader(): void {
    const { message, content } = this.#lengths;
    if (this.#field[0] !== VERSION) throw invalid(`The version is ${this.#field[0]}, not ${VERSION}.`);
    if (readLength(this.#field, 1) !== message) throw invalid('The length of the message is not the Content-Length.');
    if (this.#field.readUInt16LE(9) !== CRC64_FLAG) throw invalid('The flags do not say that the checksums are CRC64.');
    this.#segments = this.#field.readUInt16LE(11);
    if (overheadBytes(this.#segments) + content !== message) {
      throw invalid('The length of the content, with that of its segments, is not the length of the message.');
    }
    this.#expectSegment();
  }

  /** The next segment, or after the last one the CRC64 of the message. */
  #expectSegment(): void {
    if (this.#segment < this.#segments) this.#expectField(SEGMENT_HEADER_BYTES, () => this.#readSegmentHeader());
    else {
      this.#expectField(CRC64_BYTES, () => {
        this.#messageCrc64 = this.#readCrc64();
      });
    }
  }

  #readSegmentHeader(): void {
    this.#segment++;
    const number = this.#field.readUInt16LE(0);
    if (number !== this.#segment) throw invalid(`Segment ${this.#segment} has the number ${number}.`);
    const length = readLength(this.#field, 2);
    const isLast = this.#segment === this.#segments;
    if (isLast ? length !== this.#contentLeft : length > this.#contentLeft) {
      throw invalid(`The length of segment ${number} does not fit the length of the content.`);
    }
    this.#segmentLeft = length;
    this.#segmentCrc64 = createCrc64();
    this.#expectField(CRC64_BYTES, () => this.#readSegmentCrc64());
  }

  #readSegmentCrc64(): void {
    checkHashes({ crc64: this.#readCrc64() }, { crc64: this.#segmentCrc64.digest() });
    this.#expectSegment();
  }

  #readCrc64(): string {
    return this.#field.toString('base64', 0, CRC64_BYTES);
  }
}

/** Not exact above 2^53, but no length is as large. */
function readLength(field: Buffer, at: number): number {
  return Number(field.readBigUInt64LE(at));
}

function invalid(reason: string): StorageError {
  return fail('InvalidStructuredMessage', { Reason: reason });
}
