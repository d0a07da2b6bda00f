import { firstWrongBlock } from './checksums.ts';
import { CHECKED_BYTES, type ChunkName, Damaged, type Place, type Sums } from './extents.ts';
import type { Files } from './files.ts';
import { decodeSlotHeader, HEADER_BYTES, isSameName, sumAt } from './slots.ts';

/** Bytes between data and checksums that are rather read too than skipped by a second read. */
const GAP_BYTES_MAX = 64 << 10;

/**
 * Reads whole blocks and holds them against their checksums.
 * @param onHeader is told of a header that is wrong: the bytes are right all the same, but `walk` does not find the chunk.
 */
export async function readChecked(
  files: Pick<Files, 'read'>,
  name: ChunkName,
  place: Place,
  from: number,
  to: number,
  onHeader: (damage: Damaged) => void,
  into?: Buffer,
  sums?: Sums,
): Promise<Buffer> {
  const { extent, offset, length } = place;
  if (!(from >= 0 && from <= to && to <= length))
    throw new RangeError(`Bytes ${from} to ${to} of a chunk of ${length}.`);
  if (from === to) return Buffer.alloc(0);
  const first = Math.floor(from / CHECKED_BYTES);
  const end = Math.ceil(to / CHECKED_BYTES);
  const dataFrom = first * CHECKED_BYTES;
  const dataTo = Math.min(end * CHECKED_BYTES, length);
  const sumsFrom = sumAt(length, first);
  const sumsTo = sumAt(length, end);

  async function read(start: number, stop: number, memory?: Buffer): Promise<Buffer> {
    const bytes = await files.read(extent, offset + HEADER_BYTES + start, stop - start, memory);
    if (bytes.length === stop - start) return bytes;
    throw damage(name, place, `the extent ends at ${offset + HEADER_BYTES + start + bytes.length}, before its end`);
  }

  const start = first === 0 ? -HEADER_BYTES : dataFrom;
  const near = !sums && sumsFrom - dataTo <= GAP_BYTES_MAX;

  async function readSums(): Promise<Buffer | undefined> {
    if (near) return undefined;
    if (!sums) return read(sumsFrom, sumsTo);
    const all = Math.ceil(length / CHECKED_BYTES);
    sums.table ??= await read(sumAt(length, 0), sumAt(length, all));
    return sums.table.subarray(sumsFrom - sumAt(length, 0), sumsTo - sumAt(length, 0));
  }

  const [bytes, apart] = await Promise.all([read(start, near ? sumsTo : dataTo, into), readSums()]);
  const data = bytes.subarray(dataFrom - start, dataTo - start);
  const wrong = firstWrongBlock(name, first, data, apart ?? bytes.subarray(sumsFrom - start));
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

function damage({ account, epoch, number }: ChunkName, { extent, offset }: Place, what: string): Damaged {
  return new Damaged(
    `Damaged: chunk ${epoch}-${number} of account ${account} in extent ${extent} at ${offset}: ${what}.`,
  );
}
