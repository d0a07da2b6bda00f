/** Batched writes with back-pressure: while one batch is written, the next one is collected. */
import { setImmediate as eventLoopTick } from 'node:timers/promises';
import { limitPerTick } from '../base/time-slices.ts';
import type { Source } from './content.ts';

/** Batches of all sources that start in one tick of the event loop: each takes a quarter of a millisecond. */
const batchStart = limitPerTick(4);

/**
 * Writes all pieces that have arrived as one batch. The source is not read while `bytesMax` bytes wait for the batch before. A slow
 * source leaves nothing in memory.
 */
export async function batchWrites(
  source: Source,
  bytesMax: number,
  write: (batch: readonly Uint8Array[], bytes: number) => Promise<void>,
): Promise<void> {
  const pieces = source[Symbol.asyncIterator]();
  let batch: Uint8Array[] = [];
  let bytes = 0;
  let flushing: Promise<void> | undefined;
  let failure: { readonly error: unknown } | undefined;
  let onDrained = () => {};

  async function flush(): Promise<void> {
    // Pieces that arrive in the same tick of the event loop go into the same batch.
    await eventLoopTick();
    try {
      while (batch.length > 0) {
        await batchStart();
        const [written, size] = [batch, bytes];
        [batch, bytes] = [[], 0];
        onDrained();
        await write(written, size);
        source.recycle?.(written);
      }
    } catch (error) {
      failure = { error };
      onDrained();
    }
    flushing = undefined;
  }

  /** Takes one piece. In a loop, the last piece of a slow source would stay in memory until the next one arrives. */
  async function pull(): Promise<boolean> {
    const { done, value: piece } = await pieces.next();
    if (done) return false;
    if (failure || piece.length === 0) return true;
    batch.push(piece);
    bytes += piece.length;
    flushing ??= flush();
    if (bytes >= bytesMax) {
      await new Promise<void>((resolve) => {
        onDrained = resolve;
      });
    }
    return true;
  }

  try {
    while (await pull()) {
      if (failure) {
        await pieces.return?.();
        break;
      }
    }
  } finally {
    await flushing;
  }
  if (failure) throw failure.error;
}
