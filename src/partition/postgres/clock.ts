import { stampAfter } from '../clock.ts';
import type { Clock, Instant, Stamp } from '../partition.ts';

/** The server's time as this process knows it. */
export interface ServerClock extends Omit<Clock, 'advance'> {
  stamp(): Stamp;
  /** The server's clock showed this after it was asked and before now. */
  hear(server: Instant): void;
  /** The store holds this stamp: the next one is later. */
  observe(stamp: Stamp): void;
}

/** How long an answer counts: two clocks drift apart. */
const WINDOW_NANOSECONDS = 10_000_000_000n;

/**
 * The latest answer plus the time since it came: never later than the server's clock, but for their drift. So who finds a
 * lease expired here is right, and a stamp lies in no other process's future.
 */
export function followClock(first: Instant): ServerClock {
  const started = process.hrtime.bigint();
  const monotonic = (): bigint => (process.hrtime.bigint() - started) / 100n;
  let window = process.hrtime.bigint();
  let offset = first - monotonic();
  let before = offset;
  let told = 0n;
  let last = 0n;

  function now(): Instant {
    told = later(told, monotonic() + later(offset, before));
    return told;
  }

  return {
    now,
    stamp() {
      last = stampAfter(last, now());
      return last;
    },
    hear(server) {
      const heard = server - monotonic();
      const at = process.hrtime.bigint();
      if (at - window > WINDOW_NANOSECONDS) {
        window = at;
        before = offset;
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
