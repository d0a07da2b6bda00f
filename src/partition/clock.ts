import { uptime } from 'node:os';
import { TICKS_PER_SECOND, ticksFromUnix } from '../base/time.ts';
import type { Clock, Instant, Timestamp } from './partition.ts';

/** The clock of an engine that keeps its own time. */
export interface StoreClock extends Clock {
  /** An instant for a write, later than every one given before. */
  nextTimestamp(): Timestamp;
  /** The store holds this stamp: time is not earlier. */
  observe(timestamp: Timestamp): void;
}

export interface ClockOptions {
  /** The machine's clock; it may jump. */
  wall?: (() => Instant) | undefined;
  /** Time that has passed since some moment, but for that in which the machine slept. */
  monotonic?: (() => bigint) | undefined;
  /** The same with the time in which it slept. */
  sinceBoot?: (() => bigint) | undefined;
  /** The high-water mark of the store's earlier life. */
  atLeast?: Instant;
}

/** The machine's clock is asked only now and then: it costs more than the rest. */
const WALL_CHECK_TICKS = TICKS_PER_SECOND / 100n;

/** So long the machine's clock has to be ahead, at every look, before that counts: a wrong reading would be kept for ever. */
const AHEAD_TICKS_MIN = 5n * TICKS_PER_SECOND;

/**
 * Monotonic time plus an offset, so that a clock set back never revives a lease. A wall clock that stays ahead raises the
 * offset, and one that is ahead by the time in which the machine slept does so at once: leases run out in those hours.
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
  /** How far the time since the boot was ahead of monotonic time when the machine had last slept. */
  let sleptBefore = sinceBoot() - monotonic();
  /** How long the wall clock has been ahead, and by how much it was at least. */
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
    observe(stamp) {
      last = later(last, stamp);
    },
    async advance(ticks) {
      if (ticks < 0n) throw new RangeError('time goes forward only');
      advanced += ticks;
      offset += ticks;
    },
  };
}

/**
 * The instant of a write that comes behind this one. None ends in zero, so that all are equally long where zeros at the end of a
 * second's fraction are not written.
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
