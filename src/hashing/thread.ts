/** A thread that hashes, and the line of those who want it to. Bytes reach it by one copy into memory that both share. */
import { Worker } from 'node:worker_threads';
import { workerFile } from '../base/worker-url.ts';
import type { Hashing } from './hash-pool.ts';
import type { Hashes } from './hasher.ts';
import {
  ABANDON,
  CRC64_TEXT,
  DIGEST,
  DONE,
  IDLE,
  MD5_TEXT,
  newRingMemory,
  newRoom,
  RECORD_BYTES_MAX,
  RECORDS_MAX,
  recordAt,
  ringIn,
  SENT,
  TOLD,
  UPDATE,
  WAITING,
  WITH_MD5,
} from './ring.ts';

/** What one hashing may have in the shared memory; it goes on once half of that is done. */
export const BACKLOG_BYTES_MAX = 512 << 10;

export interface HashThread {
  /** How many hashings are under way. */
  readonly load: () => number;
  readonly begin: (wants: { md5: boolean }) => Hashing;
  readonly stop: () => Promise<void>;
}

interface Waiter<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** One hashing, as its owner sees it. */
interface State {
  readonly number: number;
  readonly md5: boolean;
  /** Not yet copied. */
  readonly pieces: Uint8Array[];
  /** How many bytes of the first piece are copied. */
  copied: number;
  /** Copied, and not yet worked through. */
  backlog: number;
  last: typeof DIGEST | typeof ABANDON | undefined;
  updates: Waiter<void>[];
  answer: Waiter<Hashes> | undefined;
  failure: Error | undefined;
}

interface Sent {
  readonly state: State;
  readonly what: number;
  readonly at: number;
  readonly length: number;
}

/** `gone` is called when it ends, before anyone who waits for it hears of it. */
export function startHashThread(gone: () => void, memory = newRingMemory()): HashThread {
  const { control, records, data } = ringIn(memory);
  const room = newRoom();
  const worker = new Worker(workerFile(import.meta.url, './hash-worker.ts'), { workerData: memory });
  worker.unref();

  const states = new Set<State>();
  /** Those who have something to send, in turn; and those who may not until some of theirs is done. */
  const line = new Set<State>();
  const full = new Set<State>();
  const sent: Sent[] = [];
  let lastNumber = 0;
  let sentCount = 0;
  let doneCount = 0;
  let waiters = 0;
  let isTelling = false;
  let dead: Error | undefined;

  worker.on('message', () => {
    Atomics.store(control, TOLD, 0);
    pump();
  });
  worker.on('error', die);
  worker.on('exit', (code) => die(new Error(`it ended with ${code}`)));

  function die(error: Error): void {
    if (dead) return;
    dead = new Error(`The hashing thread stopped: ${error.message}`, { cause: error });
    gone();
    for (const state of states) fail(state, dead);
  }

  function fail(state: State, error: Error): void {
    forget(state);
    state.failure = error;
    state.pieces.length = 0;
    for (const { reject } of settle(state)) reject(error);
  }

  function forget(state: State): void {
    states.delete(state);
    line.delete(state);
    full.delete(state);
  }

  /** Everyone who waits for something of this hashing, and nobody does any more. */
  function settle(state: State): Waiter<never>[] {
    const all = [...state.updates.splice(0), ...(state.answer ? [state.answer] : [])];
    state.answer = undefined;
    count(-all.length);
    return all;
  }

  /** A process that waits for a hash does not end. */
  function count(more: number): void {
    const before = waiters;
    waiters += more;
    if (before === 0 && waiters > 0) worker.ref();
    if (before > 0 && waiters === 0) worker.unref();
  }

  function pump(): void {
    if (dead) return;
    do {
      takeBack();
      send();
      Atomics.store(control, WAITING, line.size + full.size > 0 ? 1 : 0);
      // Done meanwhile: the thread may not have seen that someone waits.
    } while (line.size + full.size > 0 && Atomics.load(control, DONE) !== doneCount);
  }

  function takeBack(): void {
    const now = Atomics.load(control, DONE);
    for (; doneCount !== now; doneCount = (doneCount + 1) | 0) {
      const { state, what, at, length } = sent.shift()!;
      if (what === UPDATE) {
        state.backlog -= length;
        if (state.backlog <= BACKLOG_BYTES_MAX / 2 && full.delete(state)) line.add(state);
      } else if (what === DIGEST) {
        const { answer } = state;
        if (answer) {
          state.answer = undefined;
          states.delete(state);
          count(-1);
          answer.resolve({
            md5: state.md5 ? data.toString('latin1', at + CRC64_TEXT, at + CRC64_TEXT + MD5_TEXT) : undefined,
            crc64: data.toString('latin1', at, at + CRC64_TEXT),
          });
        }
      }
      if (sent.length > 0) room.release(at + length);
      else room.reset();
    }
  }

  function send(): void {
    const before = sentCount;
    // One record each in turn, so that a long body does not keep the others waiting.
    for (const state of line) {
      if (sent.length === RECORDS_MAX || !sendOne(state)) break;
      line.delete(state);
      if (state.pieces.length > 0) {
        (state.backlog < BACKLOG_BYTES_MAX ? line : full).add(state);
        continue;
      }
      count(-state.updates.length);
      for (const { resolve } of state.updates.splice(0)) resolve();
      if (state.last !== undefined) line.add(state);
    }
    if (sentCount === before || isTelling) return;
    isTelling = true;
    // Once for all that a turn of the event loop brings: the thread takes several bodies at a time, if they are there.
    setImmediate(tell);
  }

  function tell(): void {
    isTelling = false;
    Atomics.store(control, SENT, sentCount);
    if (Atomics.exchange(control, IDLE, 0) === 1) worker.postMessage(0);
  }

  /** False if there is no room. */
  function sendOne(state: State): boolean {
    const piece = state.pieces[0];
    if (!piece) {
      const what = state.last!;
      const at = room.claim(what === DIGEST ? CRC64_TEXT + MD5_TEXT : 0, 0);
      if (at === undefined) return false;
      state.last = undefined;
      add({ state, what, at, length: what === DIGEST ? CRC64_TEXT + MD5_TEXT : 0 });
      return true;
    }
    const length = Math.min(piece.length - state.copied, RECORD_BYTES_MAX);
    const at = room.claim(length, piece.byteOffset + state.copied);
    if (at === undefined) return false;
    const whole = length === piece.length;
    data.set(whole ? piece : piece.subarray(state.copied, state.copied + length), at);
    state.backlog += length;
    state.copied += length;
    if (state.copied === piece.length) {
      state.pieces.shift();
      state.copied = 0;
    }
    add({ state, what: UPDATE, at, length });
    return true;
  }

  function add(record: Sent): void {
    const { state, what, at, length } = record;
    const word = recordAt(sentCount);
    records[word] = state.md5 ? what | WITH_MD5 : what;
    records[word + 1] = state.number;
    records[word + 2] = at;
    records[word + 3] = length;
    sent.push(record);
    sentCount = (sentCount + 1) | 0;
  }

  function waiting<T>(join: (waiter: Waiter<T>) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      count(1);
      join({ resolve, reject });
    });
  }

  return {
    load: () => states.size,

    begin({ md5 }) {
      lastNumber = (lastNumber + 1) | 0;
      const state: State = {
        number: lastNumber,
        md5,
        pieces: [],
        copied: 0,
        backlog: 0,
        last: undefined,
        updates: [],
        answer: undefined,
        failure: dead,
      };
      if (!dead) states.add(state);

      return {
        update(bytes) {
          if (state.failure) return Promise.reject(state.failure);
          for (const piece of bytes instanceof Uint8Array ? [bytes] : bytes) {
            if (piece.length > 0) state.pieces.push(piece);
          }
          if (state.pieces.length === 0) return taken;
          if (!full.has(state)) line.add(state);
          pump();
          return state.pieces.length === 0 ? taken : waiting((waiter) => state.updates.push(waiter));
        },
        digest() {
          if (state.failure) return Promise.reject(state.failure);
          state.last = DIGEST;
          state.failure = new Error('The hashing has ended');
          const answer = waiting<Hashes>((waiter) => {
            state.answer = waiter;
          });
          if (!full.has(state)) line.add(state);
          pump();
          return answer;
        },
        abandon() {
          if (!states.has(state)) return;
          fail(state, new Error('The hashing was given up'));
          state.last = ABANDON;
          line.add(state);
          pump();
        },
      };
    },

    async stop() {
      await worker.terminate();
    },
  };
}

const taken = Promise.resolve();
