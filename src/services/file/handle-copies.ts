/** Copies of ranges from one open file into another, or within one. */
import type { LastWriteMode } from '../../rules/file/ranges.ts';
import type { Storage } from '../common/storage.ts';
import { readRange, writeRange } from './handle-ranges.ts';
import type { Handle } from './open-rows.ts';

export interface CopyRangeInput {
  readonly from: number;
  readonly to: number;
  /** At most a few MiB: the bytes are in memory once. */
  readonly length: number;
  readonly mode: LastWriteMode;
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
  { from, to, length, mode }: CopyRangeInput,
): Promise<boolean> {
  const bytes = await readRange(source.storage, source.handle, { from, to: from + length });
  if (bytes.length < length) return false;
  await writeRange(target.storage, target.handle, { from: to, bytes, mode });
  return true;
}
