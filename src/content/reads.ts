/**
 * Which reads are still running. Reads have rising numbers; whoever finds in a snapshot that something can no longer be reached
 * notes `next()` after it, and takes it away once `oldest()` is not below: no clock could tell whether a read began earlier.
 */
export interface Reads {
  /** Before the snapshot of the read. */
  begin(): { readonly number: number; end(): void };
  /** The number that the next read will have. */
  next(): number;
  /** Of the reads that run; Infinity if none does. */
  oldest(): number;
  /** Resolves once no read with a smaller number runs. */
  ended(before: number): Promise<void>;
}

export function createReads(): Reads {
  let next = 0;
  // In the order in which they began: a Set keeps it.
  const running = new Set<number>();
  const waiting = new Set<{ before: number; resolve: () => void }>();

  function oldest(): number {
    for (const number of running) return number;
    return Infinity;
  }

  function end(number: number): void {
    if (!running.delete(number) || waiting.size === 0) return;
    const least = oldest();
    for (const wait of waiting) {
      if (least < wait.before) continue;
      waiting.delete(wait);
      wait.resolve();
    }
  }

  return {
    begin() {
      const number = next++;
      running.add(number);
      return { number, end: () => end(number) };
    },
    next: () => next,
    oldest,
    ended(before) {
      if (oldest() >= before) return Promise.resolve();
      return new Promise((resolve) => waiting.add({ before, resolve }));
    },
  };
}
