/** The store's clock: monotonic time plus an offset that follows the wall clock forward, never back. */
import { uptime } from 'node:os';
import { TICKS_PER_SECOND, ticksFromUnix } from '../base/time.ts';
import type { Clock, Instant, Timestamp } from './partition.ts';

/** The clock of an engine without a server. */
export interface StoreClock extends Clock {
  /** Later than every timestamp returned before. */
  nextTimestamp(): Timestamp;
  /** The store has a row of this timestamp: time is not earlier. */
  observe(timestamp: Timestamp): void;
}

export interface ClockOptions {
  /** The machine's clock; it may jump. */
  wall?: (() => Instant) | undefined;
  /** Time since some moment, without the time in which the machine slept. */
  monotonic?: (() => bigint) | undefined;
  /** Time since some moment, with the time in which the machine slept. */
  sinceBoot?: (() => bigint) | undefined;
  /** The latest time of the store when it was open before. */
  atLeast?: Instant;
}

/** How often the wall clock is read: that costs more than the rest. */
const WALL_CHECK_TICKS = TICKS_PER_SECOND / 100n;

/** The wall clock must be ahead for this long, at every check, before the offset follows: a wrong reading could not be undone. */
const AHEAD_TICKS_MIN = 5n * TICKS_PER_SECOND;

/**
 * Monotonic, so that a wall clock set back never revives a lease. A wall clock that stays ahead raises the offset; one that is
 * ahead by the time in which the machine slept does so at once, since leases run out in that time.
 */
export function startClock({
  wall = () => ticksFromUnix(Date.now()),
  monotonic = hrtimeTicks,
  sinceBoot = uptimeTicks,
  atLeast = 0n,
}: ClockOptions = {}): StoreClock {
  let offset = later(wall(), atLeast) - monotonic();
  let advanced = 0n;
  let last = 0n;
  let nextWallCheck = 0n;
  /** How far time since boot was ahead of monotonic time at the last raise of the offset. */
  let sleptBefore = sinceBoot() - monotonic();
  /** Since when the wall clock has been ahead, and by how much at least. */
  let ahead: { readonly since: bigint; readonly by: bigint } | undefined;

  function now(): Instant {
    const elapsed = offset + monotonic();
    if (elapsed < nextWallCheck) return later(elapsed, last);
    nextWallCheck = elapsed + WALL_CHECK_TICKS;
    followWallClock(wall() + advanced - elapsed);
    return later(offset + monotonic(), last);
  }

  function followWallClock(by: bigint): void {
    if (by <= TICKS_PER_SECOND) {
      ahead = undefined;
      return;
    }
    const slept = sinceBoot() - monotonic() - sleptBefore;
    ahead = ahead ? { since: ahead.since, by: earlier(ahead.by, by) } : { since: monotonic(), by };
    const isSleep = by <= slept + TICKS_PER_SECOND;
    if (!isSleep && monotonic() - ahead.since < AHEAD_TICKS_MIN) return;
    offset += isSleep ? by : ahead.by;
    sleptBefore += slept;
    ahead = undefined;
  }

  return {
    now,
    nextTimestamp() {
      last = timestampAfter(last, now());
      return last;
    },
    observe(timestamp) {
      last = later(last, timestamp);
    },
    async advance(ticks) {
      if (ticks < 0n) throw new RangeError('time goes forward only');
      advanced += ticks;
      offset += ticks;
    },
  };
}

/**
 * The next timestamp. None ends in zero, so that all have the same length where trailing zeros of a second's fraction are left
 * out.
 */
export function timestampAfter(last: Timestamp, now: Instant): Timestamp {
  const next = later(now, last + 1n);
  return next % 10n === 0n ? next + 1n : next;
}

function hrtimeTicks(): bigint {
  return process.hrtime.bigint() / 100n;
}

function uptimeTicks(): bigint {
  return BigInt(Math.round(uptime() * Number(TICKS_PER_SECOND)));
}

function later(a: Instant, b: Instant): Instant {
  return a > b ? a : b;
}

function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
