/** Estimates the server's clock from below, by the latest of its answers in two windows. */
import { timestampAfter } from '../clock.ts';
import type { Clock, Instant, Timestamp } from '../partition.ts';

/** The server's time as far as this process knows. */
export interface ServerClock extends Omit<Clock, 'advance'> {
  nextTimestamp(): Timestamp;
  /** The server's clock showed this between the request and now. */
  observeServerTime(server: Instant): void;
  /** The store has a row of this timestamp: the next one is later. */
  observe(timestamp: Timestamp): void;
}

/** The length of a window: older answers are dropped, since the two clocks drift apart. */
const WINDOW_NANOSECONDS = 10_000_000_000n;

/**
 * The latest answer plus the time since it came: apart from drift, never later than the server's clock. So a lease that is expired
 * by this clock has expired, and no timestamp is in another process's future.
 */
export function startServerClock(first: Instant): ServerClock {
  const started = process.hrtime.bigint();
  const monotonic = (): bigint => (process.hrtime.bigint() - started) / 100n;
  let windowStart = process.hrtime.bigint();
  let offset = first - monotonic();
  let previousOffset = offset;
  let lastNow = 0n;
  let last = 0n;

  function now(): Instant {
    lastNow = later(lastNow, monotonic() + later(offset, previousOffset));
    return lastNow;
  }

  return {
    now,
    nextTimestamp() {
      last = timestampAfter(last, now());
      return last;
    },
    observeServerTime(server) {
      const estimate = server - monotonic();
      const at = process.hrtime.bigint();
      if (at - windowStart > WINDOW_NANOSECONDS) {
        windowStart = at;
        previousOffset = offset;
        offset = estimate;
      } else if (estimate > offset) {
        offset = estimate;
      }
    },
    observe(timestamp) {
      last = later(last, timestamp);
    },
  };
}

function later(a: Instant, b: Instant): Instant {
  return a > b ? a : b;
}
