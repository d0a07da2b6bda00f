/**
 * The store's clock with a high-water mark: time that was told must not be told again after a crash, so it is reserved ahead, and the
 * reservation is in the log no later than any commit that uses that time.
 */
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { type ClockOptions, startClock } from '../clock.ts';
import type { Engine, Instant, Timestamp } from '../partition.ts';

/** How far ahead of its use time is reserved. */
const RESERVED = TICKS_PER_SECOND;

export class ReservedClock {
  /** A reservation is not in the log yet. */
  isReservationPending = false;
  private reserved = 0n;
  private readonly time: ReturnType<typeof startClock>;
  private readonly onReservation: () => void;

  constructor(options: ClockOptions, onReservation: () => void) {
    this.time = startClock(options);
    this.onReservation = onReservation;
  }

  /** Without a reservation: for those who tell nobody. */
  current(): Instant {
    return this.time.now();
  }

  now(): Instant {
    return this.reserve(this.time.now());
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

  /** @param flush resolves once all that was decided has come to an end, and what is owed is in the log */
  forEngine(flush: () => Promise<unknown>): Engine['clock'] {
    return {
      now: () => this.now(),
      nextTimestamp: () => this.reserve(this.time.nextTimestamp()),
      advance: async (ticks) => {
        // Where it moves far at once, a reservation that is still to be written would be forgotten in a crash, and time go back.
        this.reserve(this.time.now() + ticks);
        await flush();
        await this.time.advance(ticks);
        await flush();
      },
    };
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
