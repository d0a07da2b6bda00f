/**
 * The store's clock: monotonic time plus an offset that follows the wall clock forward, never back. An engine with a log adds a high-water
 * mark: time that was given out must not come again after a crash, so it is reserved ahead, and the reservation is in the log no later than
 * any commit that uses that time.
 */
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
  wall = wallClock(),
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

/** How far ahead of its use time is reserved. */
const RESERVED = TICKS_PER_SECOND;

export class ReservedClock implements StoreClock {
  /** A reservation is not in the log yet. */
  isReservationPending = false;
  private reserved = 0n;
  private readonly time: StoreClock;
  private readonly onReservation: () => void;
  private readonly flush: () => Promise<unknown>;

  /** @param settle resolves once all that was decided is durable or failed, and what is owed is in the log */
  constructor(options: ClockOptions, onReservation: () => void, settle: () => Promise<unknown>) {
    this.time = startClock(options);
    this.onReservation = onReservation;
    this.flush = settle;
  }

  /** Without a reservation: for those who tell nobody. */
  current(): Instant {
    return this.time.now();
  }

  now(): Instant {
    return this.reserve(this.time.now());
  }

  nextTimestamp(): Timestamp {
    return this.reserve(this.time.nextTimestamp());
  }

  async advance(ticks: bigint): Promise<void> {
    // Where it moves far at once, a reservation that is still to be written would be forgotten in a crash, and time go back.
    this.reserve(this.time.now() + ticks);
    await this.flush();
    await this.time.advance(ticks);
    await this.flush();
  }

  /** The store holds this version: later stamps lie above it, after a crash, too. */
  observe(version: Timestamp): void {
    this.time.observe(version);
    if (version > this.reserved) this.reserve(version);
  }

  /** For the next record. */
  takeReservation(): Instant | undefined {
    const owed = this.isReservationPending ? this.reserved : undefined;
    this.isReservationPending = false;
    return owed;
  }

  /** After a clean stop, time goes on where it ended. */
  reserveExactly(): void {
    this.reserved = this.time.now();
    this.isReservationPending = true;
  }

  private reserve(now: Instant): Instant {
    if (now + RESERVED / 2n > this.reserved) {
      this.reserved = now + RESERVED;
      this.isReservationPending = true;
      this.onReservation();
    }
    return now;
  }
}

/** @param lead how far the store's time is ahead of the wall clock, since that was set back */
export function wallClock(lead = 0n): () => Instant {
  return () => ticksFromUnix(Date.now()) + lead;
}

/** The date that clients see: the time of the store without its lead. */
export function dateOf(clock: Pick<StoreClock, 'now'>, lead: bigint): () => Instant {
  return () => clock.now() - lead;
}
