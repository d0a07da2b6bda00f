/**
 * The store's clock: monotonic time plus an offset that follows the wall clock forward, never back. With a write-ahead log it has a
 * high-water mark: time must not repeat after a crash, so it is reserved ahead, and a reservation is in the log no later than any commit
 * that uses the reserved time.
 */
import { uptime } from 'node:os';
import { TICKS_PER_SECOND, ticksFromUnix } from '../base/time.ts';
import type { Clock, Instant, Timestamp } from './partition.ts';

/** The clock of an engine in this process. */
export interface StoreClock extends Clock {
  /** Later than every timestamp returned before. */
  nextTimestamp(): Timestamp;
  /** Later timestamps are above this one. */
  observe(timestamp: Timestamp): void;
}

export interface ClockOptions {
  /** The machine's clock, which may jump. */
  wall?: (() => Instant) | undefined;
  /** Excludes time in which the machine was suspended. */
  monotonic?: (() => bigint) | undefined;
  /** Includes time in which the machine was suspended. */
  sinceBoot?: (() => bigint) | undefined;
  /** The high-water mark of the last run. */
  atLeast?: Instant;
}

/** How often the wall clock is read, which costs more than the rest of `now`. */
const WALL_CHECK_TICKS = TICKS_PER_SECOND / 100n;

/** The offset follows a wall clock that was ahead at every check for this long: a wrong reading could not be undone. */
const AHEAD_TICKS_MIN = 5n * TICKS_PER_SECOND;

/**
 * Monotonic, so that a wall clock set back never revives a lease. A wall clock that stays ahead raises the offset; one that is ahead by the
 * time of a suspension raises it at once, since leases expire in that time.
 */
export function startClock({
  wall = wallClock(),
  monotonic = hrtimeTicks,
  sinceBoot = uptimeTicks,
  atLeast = 0n,
}: ClockOptions = {}): StoreClock {
  let offset = later(wall(), atLeast) - monotonic();
  let advanced = 0n;
  /** No later timestamp is at or below this one. */
  let last = 0n;
  let nextWallCheck = 0n;
  /** The total time of suspensions that the offset includes. */
  let suspendedBefore = sinceBoot() - monotonic();
  /** Since when, and by how much at least, the wall clock has been ahead. */
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
    const suspended = sinceBoot() - monotonic() - suspendedBefore;
    ahead = ahead ? { since: ahead.since, by: earlier(ahead.by, by) } : { since: monotonic(), by };
    const isSuspension = by <= suspended + TICKS_PER_SECOND;
    if (!isSuspension && monotonic() - ahead.since < AHEAD_TICKS_MIN) return;
    offset += isSuspension ? by : ahead.by;
    suspendedBefore += suspended;
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

/** No timestamp ends in zero, so that all have the same length in formats that omit trailing zeros of a second's fraction. */
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

export function later(a: Instant, b: Instant): Instant {
  return a > b ? a : b;
}

function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

const RESERVATION_TICKS = TICKS_PER_SECOND;

/** A clock with a high-water mark in the write-ahead log. */
export class ReservedClock implements StoreClock {
  /** The high-water mark is not in a log record yet. */
  isReservationPending = false;
  /** The high-water mark: every instant and timestamp that was returned is below it. */
  private reserved = 0n;
  private readonly time: StoreClock;
  private readonly onReservation: () => void;
  private readonly flush: () => Promise<unknown>;

  /** @param flush resolves once all commits decided earlier are durable or failed, and a pending reservation is in the log */
  constructor(options: ClockOptions, onReservation: () => void, flush: () => Promise<unknown>) {
    this.time = startClock(options);
    this.onReservation = onReservation;
    this.flush = flush;
  }

  /** Without a reservation: for instants that are not stored or returned to callers. */
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
    // Reserved and logged before the move: after a crash between the two, time would go back.
    this.reserve(this.time.now() + ticks);
    await this.flush();
    await this.time.advance(ticks);
    await this.flush();
  }

  /** Later timestamps are above this version, also after a crash. */
  observe(version: Timestamp): void {
    this.time.observe(version);
    if (version > this.reserved) this.reserve(version);
  }

  /** For the next record. */
  takeReservation(): Instant | undefined {
    const pending = this.isReservationPending ? this.reserved : undefined;
    this.isReservationPending = false;
    return pending;
  }

  /** After a clean stop, time continues where it ended. */
  reserveExactly(): void {
    this.reserved = this.time.now();
    this.isReservationPending = true;
  }

  private reserve(now: Instant): Instant {
    if (now + RESERVATION_TICKS / 2n > this.reserved) {
      this.reserved = now + RESERVATION_TICKS;
      this.isReservationPending = true;
      this.onReservation();
    }
    return now;
  }
}

/** @param lead how far the store's time is ahead of a wall clock that was set back */
export function wallClock(lead = 0n): () => Instant {
  return () => ticksFromUnix(Date.now()) + lead;
}

/** The date that clients see: the time of the store without its lead. */
export function dateOf(clock: Pick<StoreClock, 'now'>, lead: bigint): () => Instant {
  return () => clock.now() - lead;
}
