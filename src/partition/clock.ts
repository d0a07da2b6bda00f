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
  /** The high-water mark of the store's earlier life. */
  atLeast?: Instant;
  /** Eight bytes that let another thread read this clock. */
  shared?: SharedArrayBuffer;
}

/** The machine's clock is asked only now and then: it costs more than the rest. */
const LOOK_EVERY = TICKS_PER_SECOND / 100n;

/** So long the machine's clock has to be ahead, at every look, before that counts: a wrong reading would be kept for ever. */
const STANDS_TICKS = 5n * TICKS_PER_SECOND;

/**
 * Monotonic time plus an offset, so that a clock set back never revives a lease. A wall clock that stays ahead raises the
 * offset: a machine that slept does not count the hours, but leases run out in them.
 */
export function startClock({
  wall = () => ticksOf(Date.now()),
  monotonic = hrtimeTicks,
  atLeast = 0n,
  shared,
}: ClockOptions = {}): StoreClock {
  const offset = new BigInt64Array(shared ?? new SharedArrayBuffer(8));
  let moved = 0n;
  let last = 0n;
  let lookAgain = 0n;
  /** How long the wall clock has been ahead, and by how much it was at least. */
  let ahead: { readonly since: bigint; readonly by: bigint } | undefined;
  Atomics.store(offset, 0, later(wall(), atLeast) - monotonic());

  function now(): Instant {
    const elapsed = Atomics.load(offset, 0) + monotonic();
    if (elapsed < lookAgain) return later(elapsed, last);
    lookAgain = elapsed + LOOK_EVERY;
    look(wall() + moved - elapsed);
    return later(Atomics.load(offset, 0) + monotonic(), last);
  }

  function look(by: bigint): void {
    const since = ahead?.since ?? monotonic();
    ahead = by > TICKS_PER_SECOND ? { since, by: ahead ? earlier(ahead.by, by) : by } : undefined;
    if (!ahead || monotonic() - since < STANDS_TICKS) return;
    Atomics.add(offset, 0, ahead.by);
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
      Atomics.add(offset, 0, ticks);
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

/** The time of a clock that another thread started. */
export function readClock(shared: SharedArrayBuffer): Instant {
  return Atomics.load(new BigInt64Array(shared), 0) + hrtimeTicks();
}

function hrtimeTicks(): bigint {
  return process.hrtime.bigint() / 100n;
}

function later(a: Instant, b: Instant): Instant {
  return a > b ? a : b;
}

function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
