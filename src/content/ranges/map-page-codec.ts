/**
 * The stored form of a map page: numbers of variable length, and in an older page the bytes of its short writes. A page is written with every
 * write, so that its size is a part of what a write costs in the log.
 */
import { firstSlice, isSmall } from '../../base/time-slices.ts';
import type { Row } from '../../partition/partition.ts';
import { decodeBytes, encodeBytes } from '../../partition/values.ts';
import {
  type ChunkSource,
  isPiece,
  type MapPage,
  type MapSegment,
  measure,
  type PageUse,
  type PieceSource,
} from './map-page.ts';

const QUEUED = 1;
/** The pieces are in rows of their own. */
const PIECE_ROWS = 2;
/** The number of kept bytes is above the flags: versions that do not know it read the flags alone. */
const KEPT = 4;
const ZEROS = 0;

/** A page as its row has it. */
export interface StoredPage extends MapPage {
  readonly use: PageUse;
}

/** Pages that were written last: transactions of one batch read the page that the one before them has written. */
const RECENT_PAGES = 8;
const recent: { value: Buffer; page: StoredPage }[] = [];
let nextRecent = 0;

/**
 * Sources that no segment names any more are left out.
 * @param use of the segments
 */
export function encodeMapPage(page: MapPage, use: PageUse = measure(page.segments)): Buffer {
  const { made, born, seen, isQueued, nextPiece, kept, segments } = page;
  const { chunks, pieces } = use;
  const inRow = bytesInRow(pieces);
  out.begin();
  out.bigint(made);
  out.number(born);
  out.number(seen);
  out.number((isQueued ? QUEUED : 0) + (inRow ? 0 : PIECE_ROWS) + KEPT * kept);
  out.number(nextPiece);
  out.number(chunks.length);
  out.number(pieces.length);
  out.number(segments.length);
  for (const { chunk, length } of chunks) {
    out.bigint(chunk.epoch);
    out.bigint(chunk.number);
    out.number(length);
  }
  for (const { piece, length } of pieces) {
    out.number(piece);
    out.number(length);
  }
  let end = 0;
  let lastPiece = 0;
  let lastChunk = 0;
  for (const { from, to, born: since, source, at } of segments) {
    out.number(from - end);
    out.number(to - from);
    out.number(born - since);
    end = to;
    if (!source) {
      out.number(ZEROS);
      continue;
    }
    if (isPiece(source)) lastPiece = indexNear(pieces, source, lastPiece);
    else lastChunk = indexNear(chunks, source, lastChunk);
    out.number(1 + (isPiece(source) ? chunks.length + lastPiece : lastChunk));
    out.number(at);
  }
  const value = encodeBytes(out.written(), inRow && Buffer.concat(inRow));
  if (!inRow) {
    const stored = { made, born, seen, isQueued, nextPiece, kept, segments, use };
    recent[nextRecent++ % RECENT_PAGES] = { value, page: stored };
  }
  return value;
}

/** The sources are in the order of the segments, mostly: the one that is looked for is the last one that was found, or the next. */
function indexNear<Source>(sources: readonly Source[], source: Source, last: number): number {
  if (sources[last] === source) return last;
  const index = sources[last + 1] === source ? last + 1 : sources.indexOf(source);
  if (index < 0) throw new Error('a source of a map page that its use does not have');
  return index;
}

/** Undefined: none of them is to be in the page's row. */
function bytesInRow(pieces: readonly PieceSource[]): Buffer[] | undefined {
  if (!pieces[0]?.bytes) return undefined;
  return pieces.map(({ bytes }) => {
    if (!bytes) throw new Error('a map page with some of its pieces');
    return bytes;
  });
}

export function decodeMapPage(row: Pick<Row, 'value'>): StoredPage {
  for (const { value, page } of recent) if (value === row.value) return page;
  return readMapPage(row);
}

/** The first generation that sees the page. */
export function decodeBorn(row: Pick<Row, 'value'>): number {
  const input = new NumberReader(decodeBytes(row));
  input.bigint();
  return input.number();
}

/** Awaited before a page is decoded or changed for maintenance. One with many segments, or short writes, has a tick of the event loop of its own. */
export const turnForPage = ({ value }: Pick<Row, 'value'>): Promise<void> | undefined =>
  isSmall(value.length) ? undefined : firstSlice();

function readMapPage(row: Pick<Row, 'value'>): StoredPage {
  const value = decodeBytes(row);
  const input = new NumberReader(value);
  const made = input.bigint();
  const [born, seen, flags, nextPiece] = [input.number(), input.number(), input.number(), input.number()];
  const [chunkCount, pieceCount, count] = [input.number(), input.number(), input.number()];
  const chunks: ChunkSource[] = [];
  let chunkBytes = 0;
  for (let i = 0; i < chunkCount; i++) {
    const source = { chunk: { epoch: input.bigint(), number: input.bigint() }, length: input.number() };
    chunks.push(source);
    chunkBytes += source.length;
  }
  const numbers: { piece: number; length: number }[] = [];
  let pieceBytes = 0;
  for (let i = 0; i < pieceCount; i++) {
    numbers.push({ piece: input.number(), length: input.number() });
    pieceBytes += numbers[i]!.length;
  }
  const hasBytes = (flags & PIECE_ROWS) === 0;
  const end = hasBytes ? value.length - pieceBytes : value.length;
  const pieces: readonly PieceSource[] = hasBytes ? withBytesFrom(value, end, numbers) : numbers;
  const segments: MapSegment[] = [];
  let visibleChunkBytes = 0;
  for (let i = 0, last = 0; i < count; i++) {
    const from = last + input.number();
    last = from + input.number();
    const since = born - input.number();
    const index = input.number();
    const at = index === ZEROS ? 0 : input.number();
    if (index > 0 && index <= chunkCount) visibleChunkBytes += last - from;
    const source = index <= chunkCount ? chunks[index - 1] : pieces[index - chunkCount - 1];
    segments.push({ from, to: last, born: since, source, at });
  }
  if (input.position !== end) throw new Error(`the segments of a map page end at ${input.position}, not ${end}`);
  const use = { segments: count, pieces, pieceBytes, chunks, chunkBytes, visibleChunkBytes };
  const isQueued = (flags & QUEUED) !== 0;
  return { made, born, seen, isQueued, nextPiece, kept: Math.floor(flags / KEPT), segments, use };
}

function withBytesFrom(value: Buffer, from: number, pieces: readonly PieceSource[]): PieceSource[] {
  let end = from;
  return pieces.map(({ piece, length }) => {
    const begin = end;
    end += length;
    return { piece, length, bytes: value.subarray(begin, end) };
  });
}

// Fields of the classes below are not #private: Node 20 takes longer to make such fields than to write a number.

/** Seven bits a byte, the lowest first; the highest bit says that more follow. */
class NumberWriter {
  private bytes = Buffer.allocUnsafeSlow(4 << 10);
  private numbers = viewOf(this.bytes);
  private end = 0;

  begin(): void {
    this.end = 0;
  }

  number(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`not a number of a map page: ${value}`);
    this.reserve();
    let left = value;
    for (; left >= 0x80; left = Math.floor(left / 0x80)) this.bytes[this.end++] = (left % 0x80) | 0x80;
    this.bytes[this.end++] = left;
  }

  bigint(value: bigint): void {
    this.reserve();
    this.numbers.setBigUint64(this.end, value);
    this.end += 8;
  }

  /** Valid until the next page is begun. */
  written(): Buffer {
    return this.bytes.subarray(0, this.end);
  }

  private reserve(): void {
    if (this.end + 10 <= this.bytes.length) return;
    const longer = Buffer.allocUnsafeSlow(2 * this.bytes.length);
    longer.set(this.bytes);
    this.bytes = longer;
    this.numbers = viewOf(longer);
  }
}

/** One for all pages: nothing else runs while one is written. */
const out = new NumberWriter();

class NumberReader {
  position = 0;
  private readonly bytes: Buffer;
  private readonly numbers: DataView;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.numbers = viewOf(bytes);
  }

  number(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      const byte = this.bytes[this.position++];
      if (byte === undefined) throw new Error('a map page without its end');
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  }

  bigint(): bigint {
    const value = this.numbers.getBigUint64(this.position);
    this.position += 8;
    return value;
  }
}

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
