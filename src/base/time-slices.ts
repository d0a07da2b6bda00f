/** Cooperative scheduling: long work runs in slices that yield to the event loop. */

function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Work that yields between its slices. */
export type SlicedWork<Value> = Generator<void, Value, void>;

/** Work on at most this many bytes is done at once, without a limit per tick. */
const SMALL_BYTES = 8 << 10;

export const isSmall = (inputBytes: number): boolean => inputBytes <= SMALL_BYTES;

/** Runs all of the work: at once if the input is small, otherwise each slice, also the first, in a tick of its own. */
export function runSliced<Value>(steps: SlicedWork<Value>, inputBytes: number): Value | Promise<Value> {
  if (!isSmall(inputBytes)) return continueSliced(steps, firstSlice());
  const first = steps.next();
  return first.done ? first.value : continueSliced(steps, nextSlice());
}

/** One slice per tick of the event loop, of all large inputs together: ten at the same time must not make a tick ten times as long. */
export const firstSlice = limitPerTick(1);

export async function nextSlice(): Promise<void> {
  await yieldToEventLoop();
  await firstSlice();
}

async function continueSliced<Value>(steps: SlicedWork<Value>, ready: Promise<void> | undefined): Promise<Value> {
  await ready;
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value;
    await nextSlice();
  }
}

/** Rate limit: at most `perTick` operations in one tick of the event loop; the others wait for the next ticks, first come, first served. */
export function limitPerTick(perTick: number): () => Promise<void> | undefined {
  const waiting: (() => void)[] = [];
  let started = 0;

  function nextTick(): void {
    const released = waiting.splice(0, perTick);
    started = released.length;
    if (started > 0) setImmediate(nextTick);
    for (const release of released) release();
  }

  return () => {
    if (started === 0) setImmediate(nextTick);
    if (started < perTick && waiting.length === 0) {
      started++;
      return undefined;
    }
    return new Promise((resolve) => waiting.push(resolve));
  };
}
