import { setImmediate as turn } from 'node:timers/promises';
import { turnsOf } from '../base/per-tick-limit.ts';
import type { Source } from './content.ts';

/** Batches of all sources together that are worked on in one turn of the event loop: it takes a quarter of a millisecond each. */
const oneOfFew = turnsOf(4);

/**
 * Hands on what has come, all of it at once: while that is worked on, more is gathered, and the source waits when it is too
 * much. A source that says little at a time leaves nothing behind in memory.
 */
export async function gather(
  source: Source,
  bytesMax: number,
  work: (batch: readonly Uint8Array[], bytes: number) => Promise<void>,
): Promise<void> {
  const pieces = source[Symbol.asyncIterator]();
  let batch: Uint8Array[] = [];
  let bytes = 0;
  let working: Promise<void> | undefined;
  let failure: { readonly error: unknown } | undefined;
  let onRoom = () => {};

  async function workOff(): Promise<void> {
    // What comes in the same turn of the event loop goes with the first piece.
    await turn();
    try {
      while (batch.length > 0) {
        await oneOfFew();
        const [taken, size] = [batch, bytes];
        [batch, bytes] = [[], 0];
        onRoom();
        await work(taken, size);
        source.giveBack?.(taken);
      }
    } catch (error) {
      failure = { error };
      onRoom();
    }
    working = undefined;
  }

  /** One piece. It has a function of its own, or the last piece of a slow source would stay in memory until the next one comes. */
  async function pull(): Promise<boolean> {
    const { done, value: piece } = await pieces.next();
    if (done) return false;
    if (failure || piece.length === 0) return true;
    batch.push(piece);
    bytes += piece.length;
    working ??= workOff();
    if (bytes >= bytesMax) {
      await new Promise<void>((resolve) => {
        onRoom = resolve;
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
    await working;
  }
  if (failure) throw failure.error;
}
