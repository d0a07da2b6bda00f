import { limitPerTick } from './per-tick-limit.ts';

/** Slices of work on the event loop stay short: between two of them others have their turn. */
function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Work that yields where others may have their turn. */
export type SlicedWork<Value> = Generator<void, Value, void>;

/** Work on so many bytes is done at once, whoever else does the same in this turn. */
const SMALL_BYTES = 8 << 10;

export const isSmall = (inputBytes: number): boolean => inputBytes <= SMALL_BYTES;

/** All of it: at once if the input is small; otherwise in slices, each in a turn of its own, from the first one on. */
export function runSliced<Value>(steps: SlicedWork<Value>, inputBytes: number): Value | Promise<Value> {
  if (!isSmall(inputBytes)) return continueSliced(steps, firstSlice());
  const first = steps.next();
  return first.done ? first.value : continueSliced(steps, nextSlice());
}

/** One slice in each turn of the event loop, of all large inputs together: ten that come at once must not make a turn ten times as long. */
export const firstSlice = limitPerTick(1);

export async function nextSlice(): Promise<void> {
  await yieldToEventLoop();
  await firstSlice();
}

async function continueSliced<Value>(steps: SlicedWork<Value>, turn: Promise<void> | undefined): Promise<Value> {
  await turn;
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value;
    await nextSlice();
  }
}
