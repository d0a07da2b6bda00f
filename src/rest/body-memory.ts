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

export function createBodyMemory(bytesMax: number): BodyMemory {
  const aheadMax = Math.min(AHEAD_BYTES_MAX, bytesMax * AHEAD_SHARE);
  const waiting: (() => void)[] = [];
  let used = 0;
  let onItsWay = 0;
  let left = TURN_BYTES;
  let isAccepting = false;
  let isScheduled = false;
  let isTrickling = false;

  const hasRoom = () => onItsWay < aheadMax;

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
      if (bytes < 0) scheduleWaiting();
    },
    isFull: () => used >= bytesMax,
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
