import { uptime } from 'node:os';
import { TICKS_PER_SECOND, ticksOf } from '../base/time.ts';
import type { Clock, Instant, Stamp } from './partition.ts';

/** The clock of an engine that keeps its own time. */
export interface StoreClock extends Clock {
  /** An instant for a write, later than every one given before. */
  stamp(): Stamp;
  /** The store holds this stamp: time is not earlier. */
  observe(stamp: Stamp): void;
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
const LOOK_EVERY = TICKS_PER_SECOND / 100n;

/** So long the machine's clock has to be ahead, at every look, before that counts: a wrong reading would be kept for ever. */
const STANDS_TICKS = 5n * TICKS_PER_SECOND;

/**
 * Monotonic time plus an offset, so that a clock set back never revives a lease. A wall clock that stays ahead raises the
 * offset, and one that is ahead by the time in which the machine slept does so at once: leases run out in those hours.
 */
export function startClock({
  wall = () => ticksOf(Date.now()),
  monotonic = hrtimeTicks,
  sinceBoot = uptimeTicks,
  atLeast = 0n,
}: ClockOptions = {}): StoreClock {
  let offset = later(wall(), atLeast) - monotonic();
  let moved = 0n;
  let last = 0n;
  let lookAgain = 0n;
  /** How far the time since the boot was ahead of monotonic time when the machine had last slept. */
  let sleptBefore = sinceBoot() - monotonic();
  /** How long the wall clock has been ahead, and by how much it was at least. */
  let ahead: { readonly since: bigint; readonly by: bigint } | undefined;

  function now(): Instant {
    const elapsed = offset + monotonic();
    if (elapsed < lookAgain) return later(elapsed, last);
    lookAgain = elapsed + LOOK_EVERY;
    look(wall() + moved - elapsed);
    return later(offset + monotonic(), last);
  }

  function look(by: bigint): void {
    if (by <= TICKS_PER_SECOND) {
      ahead = undefined;
      return;
    }
    const slept = sinceBoot() - monotonic() - sleptBefore;
    ahead = ahead ? { since: ahead.since, by: earlier(ahead.by, by) } : { since: monotonic(), by };
    const isPassed = by <= slept + TICKS_PER_SECOND;
    if (!isPassed && monotonic() - ahead.since < STANDS_TICKS) return;
    offset += isPassed ? by : ahead.by;
    sleptBefore += slept;
    ahead = undefined;
  }

  return {
    now,
    stamp() {
      last = stampAfter(last, now());
      return last;
    },
    observe(stamp) {
      last = later(last, stamp);
    },
    async advance(ticks) {
      if (ticks < 0n) throw new RangeError('time goes forward only');
      moved += ticks;
      offset += ticks;
    },
  };
}

/**
 * The instant of a write that comes behind this one. None ends in zero, so that all are equally long where zeros at the end of a
 * second's fraction are not written.
 */
export function stampAfter(last: Stamp, now: Instant): Stamp {
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
