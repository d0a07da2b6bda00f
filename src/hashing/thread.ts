/** A thread that hashes, and the line of those who want it to. Bytes reach it by one copy into memory that both share. */
import { Worker } from 'node:worker_threads';
import { compiledWorkerUrl } from '../base/worker-url.ts';
import type { HashStream } from './hash-pool.ts';
import type { Hashes } from './hasher.ts';
import {
  ABANDON,
  CRC64_TEXT,
  createRingAllocator,
  createRingMemory,
  DIGEST,
  DONE,
  IDLE,
  MD5_TEXT,
  openRing,
  RECORD_BYTES_MAX,
  RECORDS_MAX,
  recordOffset,
  SENT,
  SIGNALLED,
  UPDATE,
  WAITING,
  WITH_MD5,
} from './ring.ts';

/** What one hashing may have in the shared memory; it goes on once half of that is done. */
export const BACKLOG_BYTES_MAX = 512 << 10;

export interface HashThread {
  /** How many hashings are under way. */
  readonly load: () => number;
  readonly begin: (wants: { md5: boolean }) => HashStream;
  readonly stop: () => Promise<void>;
}

interface Waiter<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** One hashing, as its owner sees it. */
interface HashJob {
  readonly number: number;
  readonly md5: boolean;
  /** Not yet copied. */
  readonly pieces: Uint8Array[];
  /** How many bytes of the first piece are copied. */
  copied: number;
  /** Copied, and not yet worked through. */
  backlog: number;
  finalRecord: typeof DIGEST | typeof ABANDON | undefined;
  updates: Waiter<void>[];
  result: Waiter<Hashes> | undefined;
  failure: Error | undefined;
}

interface SentRecord {
  readonly job: HashJob;
  readonly opcode: number;
  readonly at: number;
  readonly length: number;
}

/** `gone` is called when it ends, before anyone who waits for it hears of it. */
export function startHashThread(onExit: () => void, memory = createRingMemory()): HashThread {
  const { control, records, data } = openRing(memory);
  const allocator = createRingAllocator();
  const worker = new Worker(compiledWorkerUrl(import.meta.url, './hash-worker.ts'), { workerData: memory });
  worker.unref();

  const jobs = new Set<HashJob>();
  /** Those who have something to send, in turn; and those who may not until some of theirs is done. */
  const sendQueue = new Set<HashJob>();
  const blocked = new Set<HashJob>();
  const sent: SentRecord[] = [];
  let lastNumber = 0;
  let sentCount = 0;
  let doneCount = 0;
  let waiters = 0;
  let isSignalling = false;
  let exitError: Error | undefined;

  worker.on('message', () => {
    Atomics.store(control, SIGNALLED, 0);
    pump();
  });
  worker.on('error', failAll);
  worker.on('exit', (code) => failAll(new Error(`it ended with ${code}`)));

  function failAll(error: Error): void {
    if (exitError) return;
    exitError = new Error(`The hashing thread stopped: ${error.message}`, { cause: error });
    onExit();
    for (const job of jobs) fail(job, exitError);
  }

  function fail(job: HashJob, error: Error): void {
    forget(job);
    job.failure = error;
    job.pieces.length = 0;
    for (const { reject } of takeWaiters(job)) reject(error);
  }

  function forget(job: HashJob): void {
    jobs.delete(job);
    sendQueue.delete(job);
    blocked.delete(job);
  }

  /** Everyone who waits for something of this hashing, and nobody does any more. */
  function takeWaiters(job: HashJob): Waiter<never>[] {
    const all = [...job.updates.splice(0), ...(job.result ? [job.result] : [])];
    job.result = undefined;
    addWaiters(-all.length);
    return all;
  }

  /** A process that waits for a hash does not end. */
  function addWaiters(more: number): void {
    const before = waiters;
    waiters += more;
    if (before === 0 && waiters > 0) worker.ref();
    if (before > 0 && waiters === 0) worker.unref();
  }

  function pump(): void {
    if (exitError) return;
    do {
      reclaim();
      send();
      Atomics.store(control, WAITING, sendQueue.size + blocked.size > 0 ? 1 : 0);
      // Done meanwhile: the thread may not have seen that someone waits.
    } while (sendQueue.size + blocked.size > 0 && Atomics.load(control, DONE) !== doneCount);
  }

  function reclaim(): void {
    const now = Atomics.load(control, DONE);
    for (; doneCount !== now; doneCount = (doneCount + 1) | 0) {
      const { job, opcode, at, length } = sent.shift()!;
      if (opcode === UPDATE) {
        job.backlog -= length;
        if (job.backlog <= BACKLOG_BYTES_MAX / 2 && blocked.delete(job)) sendQueue.add(job);
      } else if (opcode === DIGEST) {
        const { result } = job;
        if (result) {
          job.result = undefined;
          jobs.delete(job);
          addWaiters(-1);
          result.resolve({
            md5: job.md5 ? data.toString('latin1', at + CRC64_TEXT, at + CRC64_TEXT + MD5_TEXT) : undefined,
            crc64: data.toString('latin1', at, at + CRC64_TEXT),
          });
        }
      }
      if (sent.length > 0) allocator.release(at + length);
      else allocator.reset();
    }
  }

  function send(): void {
    const before = sentCount;
    // One record each in turn, so that a long body does not keep the others waiting.
    for (const job of sendQueue) {
      if (sent.length === RECORDS_MAX || !sendOne(job)) break;
      sendQueue.delete(job);
      if (job.pieces.length > 0) {
        (job.backlog < BACKLOG_BYTES_MAX ? sendQueue : blocked).add(job);
        continue;
      }
      addWaiters(-job.updates.length);
      for (const { resolve } of job.updates.splice(0)) resolve();
      if (job.finalRecord !== undefined) sendQueue.add(job);
    }
    if (sentCount === before || isSignalling) return;
    isSignalling = true;
    // Once for all that a turn of the event loop brings: the thread takes several bodies at a time, if they are there.
    setImmediate(signalWorker);
  }

  function signalWorker(): void {
    isSignalling = false;
    Atomics.store(control, SENT, sentCount);
    if (Atomics.exchange(control, IDLE, 0) === 1) worker.postMessage(0);
  }

  /** False if there is no room. */
  function sendOne(job: HashJob): boolean {
    const piece = job.pieces[0];
    if (!piece) {
      const opcode = job.finalRecord!;
      const at = allocator.allocate(opcode === DIGEST ? CRC64_TEXT + MD5_TEXT : 0, 0);
      if (at === undefined) return false;
      job.finalRecord = undefined;
      add({ job, opcode, at, length: opcode === DIGEST ? CRC64_TEXT + MD5_TEXT : 0 });
      return true;
    }
    const length = Math.min(piece.length - job.copied, RECORD_BYTES_MAX);
    const at = allocator.allocate(length, piece.byteOffset + job.copied);
    if (at === undefined) return false;
    const whole = length === piece.length;
    data.set(whole ? piece : piece.subarray(job.copied, job.copied + length), at);
    job.backlog += length;
    job.copied += length;
    if (job.copied === piece.length) {
      job.pieces.shift();
      job.copied = 0;
    }
    add({ job, opcode: UPDATE, at, length });
    return true;
  }

  function add(record: SentRecord): void {
    const { job, opcode, at, length } = record;
    const word = recordOffset(sentCount);
    records[word] = job.md5 ? opcode | WITH_MD5 : opcode;
    records[word + 1] = job.number;
    records[word + 2] = at;
    records[word + 3] = length;
    sent.push(record);
    sentCount = (sentCount + 1) | 0;
  }

  function waitFor<T>(join: (waiter: Waiter<T>) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      addWaiters(1);
      join({ resolve, reject });
    });
  }

  return {
    load: () => jobs.size,

    begin({ md5 }) {
      lastNumber = (lastNumber + 1) | 0;
      const job: HashJob = {
        number: lastNumber,
        md5,
        pieces: [],
        copied: 0,
        backlog: 0,
        finalRecord: undefined,
        updates: [],
        result: undefined,
        failure: exitError,
      };
      if (!exitError) jobs.add(job);

      return {
        update(bytes) {
          if (job.failure) return Promise.reject(job.failure);
          for (const piece of bytes instanceof Uint8Array ? [bytes] : bytes) {
            if (piece.length > 0) job.pieces.push(piece);
          }
          if (job.pieces.length === 0) return RESOLVED;
          if (!blocked.has(job)) sendQueue.add(job);
          pump();
          return job.pieces.length === 0 ? RESOLVED : waitFor((waiter) => job.updates.push(waiter));
        },
        digest() {
          if (job.failure) return Promise.reject(job.failure);
          job.finalRecord = DIGEST;
          job.failure = new Error('The hashing has ended');
          const answer = waitFor<Hashes>((waiter) => {
            job.result = waiter;
          });
          if (!blocked.has(job)) sendQueue.add(job);
          pump();
          return answer;
        },
        abandon() {
          if (!jobs.has(job)) return;
          fail(job, new Error('The hashing was given up'));
          job.finalRecord = ABANDON;
          sendQueue.add(job);
          pump();
        },
      };
    },

    async stop() {
      await worker.terminate();
    },
  };
}

const RESOLVED = Promise.resolve();
