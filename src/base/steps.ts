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

async function restInTurns<Value>(steps: Steps<Value>): Promise<Value> {
  for (;;) {
    await othersFirst();
    const step = steps.next();
    if (step.done) return step.value;
  }
}
