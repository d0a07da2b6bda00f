import { timestampAfter } from '../clock.ts';
import type { Clock, Instant, Timestamp } from '../partition.ts';

/** The server's time as this process knows it. */
export interface ServerClock extends Omit<Clock, 'advance'> {
  nextTimestamp(): Timestamp;
  /** The server's clock showed this after it was asked and before now. */
  observeServerTime(server: Instant): void;
  /** The store holds this stamp: the next one is later. */
  observe(timestamp: Timestamp): void;
}

/** How long an answer counts: two clocks drift apart. */
const WINDOW_NANOSECONDS = 10_000_000_000n;

/**
 * The latest answer plus the time since it came: never later than the server's clock, but for their drift. So who finds a
 * lease expired here is right, and a stamp lies in no other process's future.
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
      const heard = server - monotonic();
      const at = process.hrtime.bigint();
      if (at - windowStart > WINDOW_NANOSECONDS) {
        windowStart = at;
        previousOffset = offset;
        offset = heard;
      } else if (heard > offset) {
        offset = heard;
      }
    },
    observe(stamp) {
      last = later(last, stamp);
    },
  };
}

function later(a: Instant, b: Instant): Instant {
  return a > b ? a : b;
}
