/** Copies of ranges from one open file into another, or within one. */
import type { Storage } from '../common/storage.ts';
import type { ByteChangeTimes } from './change-bytes.ts';
import { readRange, writeRange } from './handle-ranges.ts';
import type { Handle } from './open-rows.ts';

export interface CopyRangeInput extends ByteChangeTimes {
  readonly from: number;
  readonly to: number;
  /** At most a few MiB: the bytes are in memory once. */
  readonly length: number;
}

/** Each with the storage of its share. */
export interface CopySide {
  readonly storage: Storage;
  readonly handle: Handle;
}

/**
 * The bytes are those of one state of the source.
 * @returns false: the source ends before, and nothing is copied
 */
export async function copyRange(
  source: CopySide,
  target: CopySide,
  { from, to, length, ...times }: CopyRangeInput,
): Promise<boolean> {
  const bytes = await readRange(source.storage, source.handle, { from, to: from + length });
  if (bytes.length < length) return false;
  await writeRange(target.storage, target.handle, { from: to, bytes, ...times });
  return true;
}
