import { turnsOf } from './turns.ts';

/** Slices of work on the event loop stay short: between two of them others have their turn. */
export function othersFirst(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Work that yields where others may have their turn. */
export type Steps<Value> = Generator<void, Value, void>;

/** All of it: at once if it never yields, as small inputs do not; otherwise with a turn for others at each yield. */
export function inTurns<Value>(steps: Steps<Value>): Value | Promise<Value> {
  const first = steps.next();
  return first.done ? first.value : restInTurns(steps);
}

/** One slice in each turn of the event loop, of all large inputs together: ten that come at once must not make a turn ten times as long. */
const sliceTurn = turnsOf(1);

export async function nextSlice(): Promise<void> {
  await othersFirst();
  await sliceTurn();
}

async function restInTurns<Value>(steps: Steps<Value>): Promise<Value> {
  for (;;) {
    await nextSlice();
    const step = steps.next();
    if (step.done) return step.value;
  }
}
