import { setImmediate as turn } from 'node:timers/promises';
import { limitPerTick } from '../base/per-tick-limit.ts';
import type { Source } from './content.ts';

/** Batches of all sources together that are worked on in one turn of the event loop: it takes a quarter of a millisecond each. */
const batchTurn = limitPerTick(4);

/**
 * Hands on what has come, all of it at once: while that is worked on, more is gathered, and the source waits when it is too
 * much. A source that says little at a time leaves nothing behind in memory.
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
    // What comes in the same turn of the event loop goes with the first piece.
    await turn();
    try {
      while (batch.length > 0) {
        await batchTurn();
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

  /** One piece. It has a function of its own, or the last piece of a slow source would stay in memory until the next one comes. */
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
