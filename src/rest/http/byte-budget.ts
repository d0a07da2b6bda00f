/**
 * Memory for bodies, one for all connections of a process: how much of it is in use, and which bodies may be read in this turn of
 * the event loop. Node accepts one connection a turn, so that a turn which reads from hundreds of uploads keeps every newcomer waiting.
 */

export interface BodyMemory {
  /**
   * Bytes of bodies, of both directions, have come into memory; with a minus: they are gone. Those that are on their way to the disk make
   * reading wait where there are many of them; those of a body that is kept until its end do not, or it would not come to its end.
   */
  add(bytes: number, isOnItsWay?: boolean): void;
  /**
   * Counts all the bytes that something will need before any of them is there, so that many that begin at once cannot pass the bound together.
   * What is small is let in unless all is full; what is larger waits for room, in its order. False: there was none, and nothing is counted.
   */
  reserve(bytes: number): boolean | Promise<boolean>;
  /** Nothing further is to be taken. */
  isFull(): boolean;
  bytesUsed(): number;
  /** Calls `resume` at once, or in a later turn: in the order in which they wait. */
  wait(resume: () => void): void;
  /** So many bytes were read. False: whoever read them has to wait before it reads more. */
  mayGoOn(bytes: number): boolean;
  /** A connection was accepted: others may be behind it. */
  accepted(): void;
  /** Whether one was accepted in this turn. */
  isAccepting(): boolean;
}

/** What one body counts for. */
export class Share {
  readonly #memory: BodyMemory;
  #bytes = 0;

  constructor(memory: BodyMemory) {
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
const TURN_BYTES = 2 << 20;
const PIECE_BYTES = 64 << 10;
/** The same in a turn that has accepted a connection. */
const ACCEPTING_TURN_BYTES = PIECE_BYTES;
/** From here on reading waits for the disk: more in memory would not make that faster. */
const AHEAD_SHARE = 1 / 4;
const AHEAD_BYTES_MAX = 32 << 20;
const TRICKLE_MILLISECONDS = 10;
/** Up to here a reservation is small. */
const SMALL_BYTES_MAX = 64 << 10;
/** Larger reservations leave the rest to what is small and to what streams. */
const RESERVED_SHARE = 3 / 4;
/** Whoever wants more than this has it as soon as the other reservations leave so much: otherwise it might never be let in. */
const WANTED_SHARE_MAX = 1 / 4;
/** Each that waits for room has one piece in memory, which Node has read already. */
const RESERVING_MAX = 1_024;
const RESERVING_MILLISECONDS = 10_000;

export function createBodyMemory(bytesMax: number): BodyMemory {
  const aheadMax = Math.min(AHEAD_BYTES_MAX, bytesMax * AHEAD_SHARE);
  const waiting: (() => void)[] = [];
  const reserving: { readonly bytes: number; readonly answer: (isReserved: boolean) => void }[] = [];
  let used = 0;
  let onItsWay = 0;
  let left = TURN_BYTES;
  let isAccepting = false;
  let isScheduled = false;
  let isTrickling = false;

  const isFull = () => used >= bytesMax;
  const hasRoom = () => onItsWay < aheadMax;

  const fits = (bytes: number) => used + Math.min(bytes, bytesMax * WANTED_SHARE_MAX) <= bytesMax * RESERVED_SHARE;

  function waitForRoom(bytes: number): Promise<boolean> {
    return new Promise((resolve) => {
      const answer = (isReserved: boolean) => {
        clearTimeout(timer);
        resolve(isReserved);
      };
      const one = { bytes, answer };
      const giveUp = () => {
        reserving.splice(reserving.indexOf(one), 1);
        answer(false);
        letIn();
      };
      const timer = setTimeout(giveUp, RESERVING_MILLISECONDS).unref();
      reserving.push(one);
    });
  }

  function letIn(): void {
    while (reserving.length > 0 && fits(reserving[0]!.bytes)) {
      const { bytes, answer } = reserving.shift()!;
      used += bytes;
      answer(true);
    }
  }

  function scheduleTurn(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(beginTurn);
  }

  function beginTurn(): void {
    isScheduled = false;
    left = isAccepting ? ACCEPTING_TURN_BYTES : TURN_BYTES;
    isAccepting = false;
    if (hasRoom()) for (const resume of waiting.splice(0, left / PIECE_BYTES)) resume();
    scheduleWaiting();
  }

  /** Without room nothing is read until some is given back, or for a while: what holds it may be stalled. */
  function scheduleWaiting(): void {
    if (waiting.length === 0) return;
    if (hasRoom()) scheduleTurn();
    else if (!isTrickling) {
      isTrickling = true;
      setTimeout(readOne, TRICKLE_MILLISECONDS).unref();
    }
  }

  function readOne(): void {
    isTrickling = false;
    waiting.shift()?.();
    scheduleWaiting();
  }

  return {
    add(bytes, isOnItsWay = false) {
      used += bytes;
      if (isOnItsWay) onItsWay += bytes;
      if (bytes >= 0) return;
      letIn();
      scheduleWaiting();
    },
    reserve(bytes) {
      const isSmall = bytes <= SMALL_BYTES_MAX;
      const isRoom = isSmall ? !isFull() : reserving.length === 0 && fits(bytes);
      if (isRoom) used += bytes;
      return isRoom || (!isSmall && reserving.length < RESERVING_MAX && waitForRoom(bytes));
    },
    isFull,
    bytesUsed: () => used,
    wait(resume) {
      if (left > 0 && waiting.length === 0 && hasRoom()) return resume();
      waiting.push(resume);
      scheduleWaiting();
    },
    mayGoOn(bytes) {
      left -= bytes;
      scheduleTurn();
      return left > 0 && hasRoom();
    },
    accepted() {
      isAccepting = true;
      left = Math.min(left, ACCEPTING_TURN_BYTES);
      scheduleTurn();
    },
    isAccepting: () => isAccepting,
  };
}
