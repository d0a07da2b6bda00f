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
