/** Copies of ranges from one open file into another, or within one. */
import { CannotShare, INLINE_WRITE_BYTES_MAX } from '../../content/ranges/range-maps.ts';
import type { Storage } from '../common/storage.ts';
import type { ByteChangeTimes } from './change-bytes.ts';
import { readSeenContent, shareBytes } from './file-content.ts';
import {
  changeHeldBytes,
  checkAppends,
  growTo,
  READS,
  readRange,
  requireFile,
  WRITES,
  writeRange,
} from './handle-ranges.ts';
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
 * The bytes are those of one state of the source. Chunks of more than a few KiB are shared, and not written again.
 * @returns false: the source ends before, and nothing is copied
 */
export async function copyRange(source: CopySide, target: CopySide, input: CopyRangeInput): Promise<boolean> {
  if (input.length <= INLINE_WRITE_BYTES_MAX) return copyBytes(source, target, input);
  try {
    return await shareRange(source, target, input);
  } catch (error) {
    if (error instanceof CannotShare) return copyBytes(source, target, input);
    throw error;
  }
}

async function shareRange(
  source: CopySide,
  target: CopySide,
  { from, to, length, ...times }: CopyRangeInput,
): Promise<boolean> {
  let isCopied = false;
  await changeHeldBytes(target.storage, target.handle, times, WRITES, async (tx, found, newId) => {
    const opened = await requireFile(tx, source.storage, source.handle, READS);
    isCopied = from + length <= opened.node.length;
    if (!isCopied) return undefined;
    checkAppends(found, to);
    const { map, gen, isCurrent } = await readSeenContent(tx, source.storage, opened);
    const shared = { map, gen: isCurrent ? undefined : gen, from, to: from + length };
    const grown = await growTo(tx, found, to + length);
    const { share, node } = found;
    const written = { from: to, source: shared, newId };
    const { record, needsSweep } = await shareBytes(tx, target.storage, share, node, written);
    return { record: { ...record, length: grown }, needsSweep };
  });
  return isCopied;
}

async function copyBytes(
  source: CopySide,
  target: CopySide,
  { from, to, length, ...times }: CopyRangeInput,
): Promise<boolean> {
  const bytes = await readRange(source.storage, source.handle, { from, to: from + length });
  if (bytes.length < length) return false;
  await writeRange(target.storage, target.handle, { from: to, bytes, ...times });
  return true;
}
