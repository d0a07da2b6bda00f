/**
 * Whoever finds in a snapshot that something can no longer be reached notes `next()` after it, and takes it away once `oldest()`
 * is not below: all reads that may have found it before have ended. No clock could tell whether a read began earlier.
 */
export interface LowWatermark {
  next(): number;
  oldest(): number;
  /** Resolves once `oldest()` is not below this. */
  whenReached(before: number): Promise<void>;
}

/** The reads of this process that are still running. They have rising numbers. */
export interface ActiveReads extends LowWatermark {
  /** Before the snapshot of the read. */
  begin(): ActiveRead;
  /** The number that the next read will have. */
  next(): number;
  /** Of the reads that run; Infinity if none does. */
  oldest(): number;
  /** What the running ones need may be taken away from now on. */
  cancelAll(): void;
}

export interface ActiveRead {
  readonly number: number;
  /** It took too long: what it has not read yet may be gone. */
  readonly isCancelled: boolean;
  end(): void;
}

export interface ActiveReadsOptions {
  /** A read that takes longer is cut, or a client that takes a byte a minute would keep all space from coming back. */
  readonly millisecondsMax?: number;
  readonly now?: () => number;
}

interface TrackedRead extends ActiveRead {
  readonly began: number;
  isCancelled: boolean;
}

const MILLISECONDS_MAX = 6 * 3_600_000;

export function createActiveReads({
  millisecondsMax = MILLISECONDS_MAX,
  now = () => performance.now(),
}: ActiveReadsOptions = {}): ActiveReads {
  let next = 0;
  // In the order in which they began: a Set keeps it.
  const running = new Set<TrackedRead>();
  const waiters = createThresholdWaiters();

  function oldest(): number {
    let least = Infinity;
    let hasCancelled = false;
    for (const read of running) {
      least = read.number;
      if (now() - read.began <= millisecondsMax) break;
      cancel(read);
      least = Infinity;
      hasCancelled = true;
    }
    if (hasCancelled) waiters.wake(least);
    return least;
  }

  function cancel(read: TrackedRead): void {
    read.isCancelled = true;
    running.delete(read);
  }

  return {
    begin() {
      const read: TrackedRead = { number: next++, began: now(), isCancelled: false, end };
      function end(): void {
        if (running.delete(read) && waiters.size() > 0) waiters.wake(oldest());
      }
      running.add(read);
      return read;
    },
    next: () => next,
    oldest,
    whenReached: (before) => waiters.until(before, oldest()),
    cancelAll() {
      for (const read of running) cancel(read);
      waiters.wake(oldest());
    },
  };
}

/** Who waits for a number that rises. */
export function createThresholdWaiters() {
  const waiters = new Set<{ before: number; resolve: () => void }>();
  return {
    size: () => waiters.size,
    until(before: number, reached: number): Promise<void> {
      if (reached >= before) return Promise.resolve();
      return new Promise((resolve) => waiters.add({ before, resolve }));
    },
    wake(reached: number): void {
      for (const wait of waiters) {
        if (reached < wait.before) continue;
        waiters.delete(wait);
        wait.resolve();
      }
    },
  };
}
