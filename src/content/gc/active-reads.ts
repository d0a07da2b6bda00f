/**
 * Whoever finds in a snapshot that something can no longer be reached notes `next()` after it, and takes it away once `oldest()`
 * is not below: all reads that may have found it before have ended. No clock could tell whether a read began earlier.
 */
export interface Horizon {
  next(): number;
  oldest(): number;
  /** Resolves once `oldest()` is not below this. */
  ended(before: number): Promise<void>;
}

/** The reads of this process that are still running. They have rising numbers. */
export interface Reads extends Horizon {
  /** Before the snapshot of the read. */
  begin(): RunningRead;
  /** The number that the next read will have. */
  next(): number;
  /** Of the reads that run; Infinity if none does. */
  oldest(): number;
  /** What the running ones need may be taken away from now on. */
  cutAll(): void;
}

export interface RunningRead {
  readonly number: number;
  /** It took too long: what it has not read yet may be gone. */
  readonly isCut: boolean;
  end(): void;
}

export interface ReadsOptions {
  /** A read that takes longer is cut, or a client that takes a byte a minute would keep all space from coming back. */
  readonly millisecondsMax?: number;
  readonly now?: () => number;
}

interface Registered extends RunningRead {
  readonly began: number;
  isCut: boolean;
}

const MILLISECONDS_MAX = 6 * 3_600_000;

export function createReads({
  millisecondsMax = MILLISECONDS_MAX,
  now = () => performance.now(),
}: ReadsOptions = {}): Reads {
  let next = 0;
  // In the order in which they began: a Set keeps it.
  const running = new Set<Registered>();
  const waiting = createWaiting();

  function oldest(): number {
    let least = Infinity;
    let isLater = false;
    for (const read of running) {
      least = read.number;
      if (now() - read.began <= millisecondsMax) break;
      cut(read);
      least = Infinity;
      isLater = true;
    }
    if (isLater) waiting.wake(least);
    return least;
  }

  function cut(read: Registered): void {
    read.isCut = true;
    running.delete(read);
  }

  return {
    begin() {
      const read: Registered = { number: next++, began: now(), isCut: false, end };
      function end(): void {
        if (running.delete(read) && waiting.size() > 0) waiting.wake(oldest());
      }
      running.add(read);
      return read;
    },
    next: () => next,
    oldest,
    ended: (before) => waiting.until(before, oldest()),
    cutAll() {
      for (const read of running) cut(read);
      waiting.wake(oldest());
    },
  };
}

/** Who waits for a number that rises. */
export function createWaiting() {
  const waiting = new Set<{ before: number; resolve: () => void }>();
  return {
    size: () => waiting.size,
    until(before: number, reached: number): Promise<void> {
      if (reached >= before) return Promise.resolve();
      return new Promise((resolve) => waiting.add({ before, resolve }));
    },
    wake(reached: number): void {
      for (const wait of waiting) {
        if (reached < wait.before) continue;
        waiting.delete(wait);
        wait.resolve();
      }
    },
  };
}
