/**
 * The store's clock with a high-water mark: time that was told must not be told again after a crash, so it is reserved ahead, and the
 * reservation is in the log no later than any commit that uses that time.
 */
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { type ClockOptions, type StoreClock, startClock } from '../clock.ts';
import type { Instant, Timestamp } from '../partition.ts';

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
