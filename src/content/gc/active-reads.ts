/**
 * Epoch-based reclamation: active reads and their low watermark. A process that finds in a snapshot that something is unreachable
 * takes `next()` after that snapshot, and removes the thing once `oldest()` has reached that number: all reads that may have found
 * the thing before have ended. Numbers decide, as no clock could tell whether a read began earlier.
 */
export interface LowWatermark {
  next(): number;
  oldest(): number;
  /** Resolves once `oldest()` has reached `before`. */
  whenReached(before: number): Promise<void>;
}

/** The running reads of this process. Their numbers rise. */
export interface ActiveReads extends LowWatermark {
  /** Must be called before the snapshot of the read is taken. */
  begin(): ActiveRead;
  /** The number that the next read will have. */
  next(): number;
  /** The lowest number of a running read; Infinity if none is running. */
  oldest(): number;
  /** From now on, bytes that a running read needs may be removed. */
  cancelAll(): void;
}

export interface ActiveRead {
  readonly number: number;
  /** The bytes that the read has not got yet may be removed: it took too long, or its process was evicted. */
  readonly isCancelled: boolean;
  end(): void;
}

export interface ActiveReadsOptions {
  /** A longer read is cancelled. Otherwise a client that takes one byte a minute would keep all space from being reclaimed. */
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
  /** In the order of their numbers: a Set keeps the order of insertion. */
  const running = new Set<TrackedRead>();
  const waiters = createThresholdWaiters();

  function oldest(): number {
    let lowest = Infinity;
    let hasCancelled = false;
    for (const read of running) {
      lowest = read.number;
      if (now() - read.began <= millisecondsMax) break;
      cancel(read);
      lowest = Infinity;
      hasCancelled = true;
    }
    if (hasCancelled) waiters.wake(lowest);
    return lowest;
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

/** Promises that wait until a rising number has reached a threshold. */
export function createThresholdWaiters() {
  const waiters = new Set<{ readonly before: number; readonly resolve: () => void }>();
  return {
    size: () => waiters.size,
    until(before: number, reached: number): Promise<void> {
      if (reached >= before) return Promise.resolve();
      return new Promise((resolve) => waiters.add({ before, resolve }));
    },
    wake(reached: number): void {
      for (const waiter of waiters) {
        if (reached < waiter.before) continue;
        waiters.delete(waiter);
        waiter.resolve();
      }
    },
  };
}
