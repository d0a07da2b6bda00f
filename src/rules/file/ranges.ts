/** Ranges of files: writes begin and end anywhere, but what was written is known by sectors of 512 bytes. */
import { type ByteRange, parseRange } from '../byte-ranges.ts';

export const SECTOR_BYTES = 512;
/** 4 TiB. */
export const FILE_BYTES_MAX = 2 ** 42;
export const PUT_RANGE_BYTES_MAX = 4 << 20;

/** From `from` to before `to`. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export const isFileLength = (length: number): boolean =>
  Number.isSafeInteger(length) && length >= 0 && length <= FILE_BYTES_MAX;

/** The range of a write has both ends. */
export function parseWriteRange(text: string): Span | undefined {
  const range = parseRange(text);
  return range?.to === undefined ? undefined : { from: range.from, to: range.to + 1 };
}

/** What a clear does: whole sectors are released, and in the others zeros are written. */
export function divideClear({ from, to }: Span): {
  readonly cleared: Span | undefined;
  readonly zeros: readonly Span[];
} {
  const first = Math.ceil(from / SECTOR_BYTES) * SECTOR_BYTES;
  const last = to - (to % SECTOR_BYTES);
  if (first > last) return { cleared: undefined, zeros: [{ from, to }] };
  const edges = [
    { from, to: first },
    { from: last, to },
  ];
  return {
    cleared: first < last ? { from: first, to: last } : undefined,
    zeros: edges.filter((edge) => edge.from < edge.to),
  };
}

/** The sectors that a list of ranges looks at. */
export function sectorsAround({ from, to }: ByteRange): Span {
  return { from: from - (from % SECTOR_BYTES), to: Math.ceil((to + 1) / SECTOR_BYTES) * SECTOR_BYTES };
}

/** The header x-ms-file-last-write-time of Put Range. */
export type LastWriteMode = 'now' | 'preserve';

export function parseLastWriteMode(text: string | undefined): LastWriteMode | undefined {
  const mode = (text ?? 'now').toLowerCase();
  return mode === 'now' || mode === 'preserve' ? mode : undefined;
}
