/**
 * Memory for bodies, one for all connections of a process: how much of it is in use, and which bodies may be read in this turn of
 * the event loop. Node accepts one connection a turn, so that a turn which reads from hundreds of uploads keeps every newcomer waiting.
 */

export interface ByteBudget {
  /**
   * Bytes of bodies, of both directions, have come into memory; with a minus: they are gone. Those that are on their way to the disk make
   * reading wait where there are many of them; those of a body that is kept until its end do not, or it would not come to its end.
   */
  add(bytes: number, isReadAhead?: boolean): void;
  /**
   * Counts all the bytes that something will need before any of them is there, so that many that begin at once cannot pass the bound together.
   * What is small is let in unless all is full; what is larger waits for room, in its order. False: there was none, and nothing is counted.
   */
  reserve(bytes: number): boolean | Promise<boolean>;
  /** Nothing further is to be taken. */
  isFull(): boolean;
  bytesUsed(): number;
  /** Calls `resume` at once, or in a later turn: in the order in which they wait. */
  whenReadable(resume: () => void): void;
  /** So many bytes were read. False: whoever read them has to wait before it reads more. */
  chargeRead(bytes: number): boolean;
  /** A connection was accepted: others may be behind it. */
  connectionAccepted(): void;
  /** Whether one was accepted in this turn. */
  isAccepting(): boolean;
}

/** What one body counts for. */
export class BudgetShare {
  readonly #memory: ByteBudget;
  #bytes = 0;

  constructor(memory: ByteBudget) {
    this.#memory = memory;
  }

  get bytes(): number {
    return this.#bytes;
  }

  set(bytes: number): void {
    if (bytes === this.#bytes) return;
    this.#memory.add(bytes - this.#bytes);
    this.#bytes = bytes;
  }

  async reserve(bytes: number): Promise<boolean> {
    if (!(await this.#memory.reserve(bytes))) return false;
    this.#bytes += bytes;
    return true;
  }
}

/**
 * Read from all uploads in one turn: about 1 ms. Each is read in pieces of 64 KiB. Whoever has its turn finds out behind a piece that all is
 * used up, so that it can become twice as much.
 */
const TICK_BYTES = 2 << 20;
const READ_BYTES = 64 << 10;
/** The same in a turn that has accepted a connection. */
const ACCEPTING_TICK_BYTES = READ_BYTES;
/** From here on reading waits for the disk: more in memory would not make that faster. */
const READ_AHEAD_SHARE = 1 / 4;
const READ_AHEAD_BYTES_MAX = 32 << 20;
const TRICKLE_MILLISECONDS = 10;
/** Up to here a reservation is small. */
const SMALL_BYTES_MAX = 64 << 10;
/** Larger reservations leave the rest to what is small and to what streams. */
const RESERVED_SHARE = 3 / 4;
/** Whoever wants more than this has it as soon as the other reservations leave so much: otherwise it might never be let in. */
const WANTED_SHARE_MAX = 1 / 4;
/** Each that waits for room has one piece in memory, which Node has read already. */
const RESERVATIONS_QUEUED_MAX = 1_024;
const RESERVATION_TIMEOUT_MILLISECONDS = 10_000;

export function createByteBudget(bytesMax: number): ByteBudget {
  const readAheadMax = Math.min(READ_AHEAD_BYTES_MAX, bytesMax * READ_AHEAD_SHARE);
  const readQueue: (() => void)[] = [];
  const reservationQueue: { readonly bytes: number; readonly answer: (isReserved: boolean) => void }[] = [];
  let used = 0;
  let readAhead = 0;
  let tickBytesLeft = TICK_BYTES;
  let isAccepting = false;
  let isScheduled = false;
  let isTrickling = false;

  const isFull = () => used >= bytesMax;
  const mayReadAhead = () => readAhead < readAheadMax;

  const fits = (bytes: number) => used + Math.min(bytes, bytesMax * WANTED_SHARE_MAX) <= bytesMax * RESERVED_SHARE;

  function queueReservation(bytes: number): Promise<boolean> {
    return new Promise((resolve) => {
      const answer = (isReserved: boolean) => {
        clearTimeout(timer);
        resolve(isReserved);
      };
      const one = { bytes, answer };
      const giveUp = () => {
        reservationQueue.splice(reservationQueue.indexOf(one), 1);
        answer(false);
        admitReservations();
      };
      const timer = setTimeout(giveUp, RESERVATION_TIMEOUT_MILLISECONDS).unref();
      reservationQueue.push(one);
    });
  }

  function admitReservations(): void {
    while (reservationQueue.length > 0 && fits(reservationQueue[0]!.bytes)) {
      const { bytes, answer } = reservationQueue.shift()!;
      used += bytes;
      answer(true);
    }
  }

  function scheduleTick(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(startTick);
  }

  function startTick(): void {
    isScheduled = false;
    tickBytesLeft = isAccepting ? ACCEPTING_TICK_BYTES : TICK_BYTES;
    isAccepting = false;
    if (mayReadAhead()) for (const resume of readQueue.splice(0, tickBytesLeft / READ_BYTES)) resume();
    scheduleReads();
  }

  /** Without room nothing is read until some is given back, or for a while: what holds it may be stalled. */
  function scheduleReads(): void {
    if (readQueue.length === 0) return;
    if (mayReadAhead()) scheduleTick();
    else if (!isTrickling) {
      isTrickling = true;
      setTimeout(readOne, TRICKLE_MILLISECONDS).unref();
    }
  }

  function readOne(): void {
    isTrickling = false;
    readQueue.shift()?.();
    scheduleReads();
  }

  return {
    add(bytes, isReadAhead = false) {
      used += bytes;
      if (isReadAhead) readAhead += bytes;
      if (bytes >= 0) return;
      admitReservations();
      scheduleReads();
    },
    reserve(bytes) {
      const isSmall = bytes <= SMALL_BYTES_MAX;
      const isRoom = isSmall ? !isFull() : reservationQueue.length === 0 && fits(bytes);
      if (isRoom) used += bytes;
      return isRoom || (!isSmall && reservationQueue.length < RESERVATIONS_QUEUED_MAX && queueReservation(bytes));
    },
    isFull,
    bytesUsed: () => used,
    whenReadable(resume) {
      if (tickBytesLeft > 0 && readQueue.length === 0 && mayReadAhead()) return resume();
      readQueue.push(resume);
      scheduleReads();
    },
    chargeRead(bytes) {
      tickBytesLeft -= bytes;
      scheduleTick();
      return tickBytesLeft > 0 && mayReadAhead();
    },
    connectionAccepted() {
      isAccepting = true;
      tickBytesLeft = Math.min(tickBytesLeft, ACCEPTING_TICK_BYTES);
      scheduleTick();
    },
    isAccepting: () => isAccepting,
  };
}
