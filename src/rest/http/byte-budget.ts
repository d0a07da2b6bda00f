/**
 * Byte budget with admission control and back-pressure: one for the bodies of all connections of a process, and a limit on the bytes that are
 * read per turn of the event loop. Node accepts one connection per turn, so a turn that reads from hundreds of uploads delays every new one.
 */

/**
 * Read from all uploads in one turn: about 1 ms. Each upload is read in pieces of 64 KiB. A reader learns after a piece that the limit is
 * reached, so a turn can read twice as much.
 */
const TICK_BYTES = 2 << 20;
const READ_BYTES = 64 << 10;
/** The same in a turn that has accepted a connection. */
const ACCEPTING_TICK_BYTES = READ_BYTES;
/** Above this amount reading waits for the disk: more bytes in memory would not make the disk faster. */
const READ_AHEAD_SHARE = 1 / 4;
const READ_AHEAD_BYTES_MAX = 32 << 20;
const TRICKLE_MILLISECONDS = 10;
/** Up to this size a reservation is small. */
const SMALL_BYTES_MAX = 64 << 10;
/** Larger reservations leave the rest of the budget to small ones and to streams. */
const RESERVED_SHARE = 3 / 4;
/** A reservation of more than this is admitted as soon as the others leave this much: otherwise it might never be. */
const WANTED_SHARE_MAX = 1 / 4;
/** Each waiting reservation has one piece in memory, which Node has read already. */
const RESERVATIONS_QUEUED_MAX = 1_024;
const RESERVATION_TIMEOUT_MILLISECONDS = 10_000;

interface QueuedReservation {
  readonly bytes: number;
  readonly answer: (isReserved: boolean) => void;
}

export class ByteBudget {
  readonly #bytesMax: number;
  readonly #readAheadMax: number;
  /** Bytes in memory, including reservations for bytes that have not arrived yet. */
  #used = 0;
  /** The part of #used that streams have read ahead of their consumers; reading waits for this part only. */
  #readAhead = 0;
  /** FIFO: a reservation never overtakes an earlier one. */
  readonly #reservations: QueuedReservation[] = [];
  /** FIFO of readers that wait for their turn. */
  readonly #readers: (() => void)[] = [];
  #tickBytesLeft = TICK_BYTES;
  #isAccepting = false;
  #isTickScheduled = false;
  #isTrickling = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#readAheadMax = Math.min(READ_AHEAD_BYTES_MAX, bytesMax * READ_AHEAD_SHARE);
  }

  /**
   * Charges bytes of bodies, in either direction; a negative number releases them. Bytes that were read ahead make reading wait where there are
   * many of them. Bytes of a body that is read whole do not: the body would never be complete.
   */
  add(bytes: number, isReadAhead = false): void {
    this.#used += bytes;
    if (isReadAhead) this.#readAhead += bytes;
    if (bytes >= 0) return;
    this.#admitReservations();
    this.#scheduleReads();
  }

  /**
   * Charges all bytes of a body before any of them is in memory, so that many bodies that begin at once cannot exceed the budget together.
   * A small reservation is admitted unless the budget is full; a larger one waits for space, in order. False: refused, nothing is charged.
   */
  reserve(bytes: number): boolean | Promise<boolean> {
    const isSmall = bytes <= SMALL_BYTES_MAX;
    const isAdmitted = isSmall ? !this.isFull() : this.#reservations.length === 0 && this.#fits(bytes);
    if (isAdmitted) this.#used += bytes;
    return isAdmitted || (!isSmall && this.#reservations.length < RESERVATIONS_QUEUED_MAX && this.#queue(bytes));
  }

  isFull(): boolean {
    return this.#used >= this.#bytesMax;
  }

  bytesUsed(): number {
    return this.#used;
  }

  /** Calls `resume` at once or in a later turn, in the order of the calls. */
  whenReadable(resume: () => void): void {
    if (this.#tickBytesLeft > 0 && this.#readers.length === 0 && this.#mayReadAhead()) resume();
    else {
      this.#readers.push(resume);
      this.#scheduleReads();
    }
  }

  /** Charges bytes read to the limit of this turn. False: the reader must wait with `whenReadable` before it reads more. */
  chargeRead(bytes: number): boolean {
    this.#tickBytesLeft -= bytes;
    this.#scheduleTick();
    return this.#tickBytesLeft > 0 && this.#mayReadAhead();
  }

  /** A connection was accepted in this turn: more may wait in the backlog, so this turn reads little. */
  connectionAccepted(): void {
    this.#isAccepting = true;
    this.#tickBytesLeft = Math.min(this.#tickBytesLeft, ACCEPTING_TICK_BYTES);
    this.#scheduleTick();
  }

  isAccepting(): boolean {
    return this.#isAccepting;
  }

  #mayReadAhead(): boolean {
    return this.#readAhead < this.#readAheadMax;
  }

  #fits(bytes: number): boolean {
    const needed = Math.min(bytes, this.#bytesMax * WANTED_SHARE_MAX);
    return this.#used + needed <= this.#bytesMax * RESERVED_SHARE;
  }

  #queue(bytes: number): Promise<boolean> {
    return new Promise((resolve) => {
      const answer = (isReserved: boolean) => {
        clearTimeout(timer);
        resolve(isReserved);
      };
      const reservation = { bytes, answer };
      const giveUp = () => {
        this.#reservations.splice(this.#reservations.indexOf(reservation), 1);
        answer(false);
        this.#admitReservations();
      };
      const timer = setTimeout(giveUp, RESERVATION_TIMEOUT_MILLISECONDS).unref();
      this.#reservations.push(reservation);
    });
  }

  #admitReservations(): void {
    while (this.#reservations.length > 0 && this.#fits(this.#reservations[0]!.bytes)) {
      const { bytes, answer } = this.#reservations.shift()!;
      this.#used += bytes;
      answer(true);
    }
  }

  #scheduleTick(): void {
    if (this.#isTickScheduled) return;
    this.#isTickScheduled = true;
    setImmediate(() => this.#startTick());
  }

  #startTick(): void {
    this.#isTickScheduled = false;
    this.#tickBytesLeft = this.#isAccepting ? ACCEPTING_TICK_BYTES : TICK_BYTES;
    this.#isAccepting = false;
    if (this.#mayReadAhead()) for (const resume of this.#readers.splice(0, this.#tickBytesLeft / READ_BYTES)) resume();
    this.#scheduleReads();
  }

  /** While too much is read ahead, one reader at a time reads, at intervals: the consumers of the bytes in memory may be stalled. */
  #scheduleReads(): void {
    if (this.#readers.length === 0) return;
    if (this.#mayReadAhead()) this.#scheduleTick();
    else if (!this.#isTrickling) {
      this.#isTrickling = true;
      setTimeout(() => this.#readOne(), TRICKLE_MILLISECONDS).unref();
    }
  }

  #readOne(): void {
    this.#isTrickling = false;
    this.#readers.shift()?.();
    this.#scheduleReads();
  }
}

/** The bytes that one reply has charged. */
export class BudgetShare {
  readonly #budget: ByteBudget;
  #bytes = 0;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  get bytes(): number {
    return this.#bytes;
  }

  set(bytes: number): void {
    if (bytes === this.#bytes) return;
    this.#budget.add(bytes - this.#bytes);
    this.#bytes = bytes;
  }

  async reserve(bytes: number): Promise<boolean> {
    if (!(await this.#budget.reserve(bytes))) return false;
    this.#bytes += bytes;
    return true;
  }
}
