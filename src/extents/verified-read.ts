import { firstWrongBlock } from './checksums.ts';
import type { Files } from './extent-files.ts';
import { CHECKED_BYTES, type ChunkName, Damaged, type Place, type Sums } from './extents.ts';
import { decodeSlotHeader, HEADER_BYTES, isSameName, sumAt } from './slots.ts';

/** Bytes between two that are wanted which are rather read too than skipped by a second read. */
export const GAP_BYTES_MAX = 64 << 10;

/** Told of a header that is wrong: the bytes are right all the same, but `walk` does not find the chunk. */
type OnHeader = (damage: Damaged) => void;

/** Reads whole blocks and holds them against their checksums. */
export async function readChecked(
  files: Pick<Files, 'read'>,
  name: ChunkName,
  place: Place,
  from: number,
  to: number,
  onHeader: OnHeader,
  into?: Buffer,
  sums?: Sums,
): Promise<Buffer> {
  const { extent, offset, length } = place;
  const { start, dataTo, sumsFrom, sumsTo } = blocksAround(place, from, to);
  if (from === to) return Buffer.alloc(0);

  async function read(begin: number, end: number, memory?: Buffer): Promise<Buffer> {
    const bytes = await files.read(extent, offset + HEADER_BYTES + begin, end - begin, memory);
    assertWhole(name, place, bytes, begin, end);
    return bytes;
  }

  const near = !sums && sumsFrom - dataTo <= GAP_BYTES_MAX;

  async function readSums(): Promise<Buffer | undefined> {
    if (near) return undefined;
    if (!sums) return read(sumsFrom, sumsTo);
    const all = Math.ceil(length / CHECKED_BYTES);
    sums.table ??= await read(sumAt(length, 0), sumAt(length, all));
    return sums.table.subarray(sumsFrom - sumAt(length, 0), sumsTo - sumAt(length, 0));
  }

  const [bytes, apart] = await Promise.all([read(start, near ? sumsTo : dataTo, into), readSums()]);
  return checked(name, place, from, to, onHeader, bytes, apart ?? bytes.subarray(sumsFrom - start));
}

/** The same of bytes that were read already, from the beginning of the chunk's slot on. */
export function checkedIn(
  slot: Buffer,
  name: ChunkName,
  place: Place,
  from: number,
  to: number,
  onHeader: OnHeader,
): Buffer {
  const { start, sumsFrom, sumsTo } = blocksAround(place, from, to);
  const bytes = slot.subarray(HEADER_BYTES + start, HEADER_BYTES + sumsTo);
  assertWhole(name, place, bytes, start, sumsTo);
  return checked(name, place, from, to, onHeader, bytes, bytes.subarray(sumsFrom - start));
}

/** What belongs to these bytes, counted from the first one of the chunk. */
function blocksAround({ length }: Place, from: number, to: number) {
  if (!(from >= 0 && from <= to && to <= length))
    throw new RangeError(`Bytes ${from} to ${to} of a chunk of ${length}.`);
  const first = Math.floor(from / CHECKED_BYTES);
  const end = Math.ceil(to / CHECKED_BYTES);
  const dataFrom = first * CHECKED_BYTES;
  return {
    first,
    dataFrom,
    dataTo: Math.min(end * CHECKED_BYTES, length),
    sumsFrom: sumAt(length, first),
    sumsTo: sumAt(length, end),
    /** With the header, if it is next to them. */
    start: first === 0 ? -HEADER_BYTES : dataFrom,
  };
}

/** @param bytes begin at the `start` of the blocks around these, `table` with their checksums. */
function checked(
  name: ChunkName,
  place: Place,
  from: number,
  to: number,
  onHeader: OnHeader,
  bytes: Buffer,
  table: Buffer,
): Buffer {
  const { length } = place;
  const { first, dataFrom, dataTo, start } = blocksAround(place, from, to);
  const data = bytes.subarray(dataFrom - start, dataTo - start);
  const wrong = firstWrongBlock(name, first, data, table);
  if (wrong !== undefined) {
    const wrongFrom = wrong * CHECKED_BYTES;
    const wrongTo = Math.min(wrongFrom + CHECKED_BYTES, length);
    throw damage(name, place, `its bytes ${wrongFrom} to ${wrongTo} are not what was written`);
  }
  if (first === 0) {
    const header = decodeSlotHeader(bytes);
    if (!header || header.length !== length || !isSameName(header.name, name)) {
      onHeader(damage(name, place, 'its header is not what was written, its bytes are'));
    }
  }
  return data.subarray(from - dataFrom, to - dataFrom);
}

function assertWhole(name: ChunkName, place: Place, bytes: Buffer, begin: number, end: number): void {
  if (bytes.length === end - begin) return;
  throw damage(name, place, `the extent ends at ${place.offset + HEADER_BYTES + begin + bytes.length}, before its end`);
}

function damage({ account, epoch, number }: ChunkName, { extent, offset }: Place, what: string): Damaged {
  return new Damaged(
    `Damaged: chunk ${epoch}-${number} of account ${account} in extent ${extent} at ${offset}: ${what}.`,
  );
}
