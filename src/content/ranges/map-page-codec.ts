/**
 * The stored form of a map page: numbers of variable length, then the bytes of its short writes. A page is written with every short write,
 * so that its size is what such a write costs in the log.
 */
import type { Row } from '../../partition/partition.ts';
import { decodeBytes, encodeBytes } from '../../partition/values.ts';
import {
  type ChunkSource,
  type InlineSource,
  isInline,
  type MapPage,
  type MapSegment,
  type SegmentSource,
  sourceKey,
  visibleBytes,
} from './map-page.ts';

const QUEUED = 1;
const ZEROS = 0;

/** Sources that no segment names any more are left out. */
export function encodeMapPage({ made, born, seen, isQueued, nextPiece, segments }: MapPage): Buffer {
  const chunks: ChunkSource[] = [];
  const pieces: InlineSource[] = [];
  const indexes = new Map<string, number>();
  const sources = visibleBytes(segments);
  for (const [key, { source }] of sources) {
    if (isInline(source)) continue;
    chunks.push(source);
    indexes.set(key, chunks.length);
  }
  for (const [key, { source }] of sources) {
    if (!isInline(source)) continue;
    pieces.push(source);
    indexes.set(key, chunks.length + pieces.length);
  }
  const out = new NumberWriter();
  out.bigint(made);
  for (const number of [born, seen, isQueued ? QUEUED : 0, nextPiece, chunks.length, pieces.length, segments.length])
    out.number(number);
  for (const { chunk, length } of chunks) {
    out.bigint(chunk.epoch);
    out.bigint(chunk.number);
    out.number(length);
  }
  for (const { piece, bytes } of pieces) {
    out.number(piece);
    out.number(bytes.length);
  }
  let end = 0;
  for (const { from, to, born: since, source, at } of segments) {
    out.number(from - end);
    out.number(to - from);
    out.number(born - since);
    out.number(source ? indexes.get(sourceKey(source))! : ZEROS);
    if (source) out.number(at);
    end = to;
  }
  return encodeBytes(out.bytes(), Buffer.concat(pieces.map(({ bytes }) => bytes)));
}

export function decodeMapPage(row: Pick<Row, 'value'>): MapPage {
  const value = decodeBytes(row);
  const input = new NumberReader(value);
  const made = input.bigint();
  const [born, seen, flags, nextPiece] = [input.number(), input.number(), input.number(), input.number()];
  const [chunks, pieces, count] = [input.number(), input.number(), input.number()];
  const sources: SegmentSource[] = [];
  for (let i = 0; i < chunks; i++)
    sources.push({ chunk: { epoch: input.bigint(), number: input.bigint() }, length: input.number() });
  const lengths: { piece: number; length: number }[] = [];
  for (let i = 0; i < pieces; i++) lengths.push({ piece: input.number(), length: input.number() });
  const places: { from: number; to: number; born: number; index: number; at: number }[] = [];
  let end = 0;
  for (let i = 0; i < count; i++) {
    const from = end + input.number();
    end = from + input.number();
    const since = born - input.number();
    const index = input.number();
    places.push({ from, to: end, born: since, index, at: index === ZEROS ? 0 : input.number() });
  }
  let begin = input.position;
  for (const { piece, length } of lengths) {
    sources.push({ piece, bytes: value.subarray(begin, begin + length) });
    begin += length;
  }
  if (begin !== value.length) throw new Error(`a map page of ${value.length} bytes, not ${begin}`);
  const segments = places.map(({ index, ...place }): MapSegment => ({ ...place, source: sources[index - 1] }));
  return { made, born, seen, isQueued: (flags & QUEUED) !== 0, nextPiece, segments };
}

/** Seven bits a byte, the lowest first; the highest bit says that more follow. */
class NumberWriter {
  #bytes = Buffer.allocUnsafe(1024);
  #end = 0;

  number(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`not a number of a map page: ${value}`);
    this.#reserve();
    let left = value;
    for (; left >= 0x80; left = Math.floor(left / 0x80)) this.#bytes[this.#end++] = (left % 0x80) | 0x80;
    this.#bytes[this.#end++] = left;
  }

  bigint(value: bigint): void {
    this.#reserve();
    this.#end = this.#bytes.writeBigUInt64BE(value, this.#end);
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#end);
  }

  #reserve(): void {
    if (this.#end + 10 <= this.#bytes.length) return;
    this.#bytes = Buffer.concat([this.#bytes, Buffer.allocUnsafe(this.#bytes.length)]);
  }
}

class NumberReader {
  position = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  number(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      const byte = this.#bytes[this.position++];
      if (byte === undefined) throw new Error('a map page without its end');
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  }

  bigint(): bigint {
    const value = this.#bytes.readBigUInt64BE(this.position);
    this.position += 8;
    return value;
  }
}
