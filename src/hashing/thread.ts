/** A hashing thread and the queue of its jobs. Bytes reach the thread by one copy into a ring buffer in shared memory. */
import { Worker } from 'node:worker_threads';
import { compiledWorkerUrl } from '../base/worker-url.ts';
import { HashJob, type Waiter } from './hash-job.ts';
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
  type Ring,
  type RingAllocator,
  recordOffset,
  SENT,
  SIGNALLED,
  UPDATE,
  WAITING,
  WITH_MD5,
} from './ring.ts';

/** Limit of the bytes of one job in the ring. A job that reached it goes on once half of them are hashed. */
export const BACKLOG_BYTES_MAX = 512 << 10;
const DIGEST_BYTES = CRC64_TEXT + MD5_TEXT;
const RESOLVED = Promise.resolve();

export interface HashThread {
  /** The number of jobs. */
  load(): number;
  begin(wants: { md5: boolean }): HashStream;
  stop(): Promise<void>;
}

interface SentRecord {
  readonly job: HashJob;
  readonly opcode: number;
  readonly at: number;
  readonly length: number;
}

/** @param onExit is called when the thread has ended, before the waiting calls fail */
export function startHashThread(onExit: () => void, memory = createRingMemory()): HashThread {
  return new WorkerHashThread(onExit, memory);
}

class WorkerHashThread implements HashThread {
  readonly #worker: Worker;
  readonly #onExit: () => void;
  readonly #ring: Ring;
  readonly #allocator: RingAllocator = createRingAllocator();
  readonly #jobs = new Set<HashJob>();
  /** Jobs with something to send, in turn. A job is in one of these two sets at most. */
  readonly #sendQueue = new Set<HashJob>();
  /** Jobs that have reached the limit of their backlog. */
  readonly #blocked = new Set<HashJob>();
  /** Exactly the records between `doneCount` and `sentCount`, in order. Their room in the ring is released in that order. */
  readonly #sent: SentRecord[] = [];
  #sentCount = 0;
  #doneCount = 0;
  #lastNumber = 0;
  /** Calls that wait for this thread. While there are any, the thread keeps the process alive. */
  #waiters = 0;
  #isSignalling = false;
  #exitError: Error | undefined;

  constructor(onExit: () => void, memory: ReturnType<typeof createRingMemory>) {
    this.#onExit = onExit;
    this.#ring = openRing(memory);
    this.#worker = new Worker(compiledWorkerUrl(import.meta.url, './hash-worker.ts'), { workerData: memory });
    this.#worker.unref();
    this.#worker.on('message', () => {
      Atomics.store(this.#ring.control, SIGNALLED, 0);
      this.#pump();
    });
    this.#worker.on('error', (error) => this.#failAll(error));
    this.#worker.on('exit', (code) => this.#failAll(new Error(`it ended with ${code}`)));
  }

  load(): number {
    return this.#jobs.size;
  }

  begin({ md5 }: { md5: boolean }): HashStream {
    this.#lastNumber = (this.#lastNumber + 1) | 0;
    const job = new HashJob(this.#lastNumber, md5, this.#exitError);
    if (!this.#exitError) this.#jobs.add(job);
    return {
      update: (bytes) => this.#update(job, bytes),
      digest: () => this.#digest(job),
      abandon: () => this.#abandon(job),
    };
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }

  #update(job: HashJob, bytes: Uint8Array | readonly Uint8Array[]): Promise<void> {
    if (job.failure) return Promise.reject(job.failure);
    job.addPieces(bytes);
    if (job.pieces.length === 0) return RESOLVED;
    if (!this.#blocked.has(job)) this.#sendQueue.add(job);
    this.#pump();
    return job.pieces.length === 0 ? RESOLVED : this.#wait((waiter) => job.updates.push(waiter));
  }

  #digest(job: HashJob): Promise<Hashes> {
    if (job.failure) return Promise.reject(job.failure);
    job.finalRecord = DIGEST;
    job.failure = new Error('The hashing has ended');
    const result = this.#wait<Hashes>((waiter) => {
      job.result = waiter;
    });
    if (!this.#blocked.has(job)) this.#sendQueue.add(job);
    this.#pump();
    return result;
  }

  #abandon(job: HashJob): void {
    if (!this.#jobs.has(job)) return;
    this.#fail(job, new Error('The hashing was given up'));
    job.finalRecord = ABANDON;
    this.#sendQueue.add(job);
    this.#pump();
  }

  #failAll(error: Error): void {
    if (this.#exitError) return;
    this.#exitError = new Error(`The hashing thread stopped: ${error.message}`, { cause: error });
    this.#onExit();
    for (const job of this.#jobs) this.#fail(job, this.#exitError);
  }

  #fail(job: HashJob, error: Error): void {
    for (const jobs of [this.#jobs, this.#sendQueue, this.#blocked]) jobs.delete(job);
    job.failure = error;
    job.pieces.length = 0;
    const waiters = job.takeWaiters();
    this.#addWaiters(-waiters.length);
    for (const { reject } of waiters) reject(error);
  }

  #wait<T>(enqueue: (waiter: Waiter<T>) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#addWaiters(1);
      enqueue({ resolve, reject });
    });
  }

  #addWaiters(more: number): void {
    const before = this.#waiters;
    this.#waiters += more;
    if (before === 0 && this.#waiters > 0) this.#worker.ref();
    if (before > 0 && this.#waiters === 0) this.#worker.unref();
  }

  /** Takes finished records back and sends new ones. */
  #pump(): void {
    if (this.#exitError) return;
    const { control } = this.#ring;
    const hasUnsent = () => this.#sendQueue.size + this.#blocked.size > 0;
    do {
      this.#reclaim();
      this.#send();
      Atomics.store(control, WAITING, hasUnsent() ? 1 : 0);
      // Records that were done meanwhile: the thread may not have seen WAITING, and then sends no message.
    } while (hasUnsent() && Atomics.load(control, DONE) !== this.#doneCount);
  }

  #reclaim(): void {
    const done = Atomics.load(this.#ring.control, DONE);
    for (; this.#doneCount !== done; this.#doneCount = (this.#doneCount + 1) | 0) {
      const record = this.#sent.shift()!;
      const { job, opcode, at, length } = record;
      if (opcode === UPDATE) {
        job.backlog -= length;
        if (job.backlog <= BACKLOG_BYTES_MAX / 2 && this.#blocked.delete(job)) this.#sendQueue.add(job);
      } else if (opcode === DIGEST) this.#resolveDigest(record);
      if (this.#sent.length > 0) this.#allocator.release(at + length);
      else this.#allocator.reset();
    }
  }

  #resolveDigest({ job, at }: SentRecord): void {
    const { result } = job;
    if (!result) return;
    const { data } = this.#ring;
    job.result = undefined;
    this.#jobs.delete(job);
    this.#addWaiters(-1);
    result.resolve({
      md5: job.md5 ? data.toString('latin1', at + CRC64_TEXT, at + DIGEST_BYTES) : undefined,
      crc64: data.toString('latin1', at, at + CRC64_TEXT),
    });
  }

  #send(): void {
    const before = this.#sentCount;
    // One record per job in turn, so that a long body does not delay the others.
    for (const job of this.#sendQueue) {
      if (this.#sent.length === RECORDS_MAX || !this.#sendOne(job)) break;
      this.#sendQueue.delete(job);
      if (job.pieces.length > 0) {
        (job.backlog < BACKLOG_BYTES_MAX ? this.#sendQueue : this.#blocked).add(job);
        continue;
      }
      this.#addWaiters(-job.updates.length);
      for (const { resolve } of job.updates.splice(0)) resolve();
      if (job.finalRecord !== undefined) this.#sendQueue.add(job);
    }
    if (this.#sentCount === before || this.#isSignalling) return;
    this.#isSignalling = true;
    // One signal per tick of the event loop: the thread then finds records of several bodies, and hashes them in parallel lanes.
    setImmediate(() => this.#signalWorker());
  }

  #signalWorker(): void {
    const { control } = this.#ring;
    this.#isSignalling = false;
    Atomics.store(control, SENT, this.#sentCount);
    if (Atomics.exchange(control, IDLE, 0) === 1) this.#worker.postMessage(0);
  }

  /** @returns false if the ring has no room */
  #sendOne(job: HashJob): boolean {
    const piece = job.pieces[0];
    if (!piece) return this.#sendFinal(job);
    const length = Math.min(piece.length - job.copied, RECORD_BYTES_MAX);
    const at = this.#allocator.allocate(length, piece.byteOffset + job.copied);
    if (at === undefined) return false;
    const isWhole = length === piece.length;
    this.#ring.data.set(isWhole ? piece : piece.subarray(job.copied, job.copied + length), at);
    job.advance(length);
    this.#writeRecord({ job, opcode: UPDATE, at, length });
    return true;
  }

  #sendFinal(job: HashJob): boolean {
    const opcode = job.finalRecord!;
    const length = opcode === DIGEST ? DIGEST_BYTES : 0;
    const at = this.#allocator.allocate(length, 0);
    if (at === undefined) return false;
    job.finalRecord = undefined;
    this.#writeRecord({ job, opcode, at, length });
    return true;
  }

  #writeRecord(record: SentRecord): void {
    const { job, opcode, at, length } = record;
    const { records } = this.#ring;
    const word = recordOffset(this.#sentCount);
    records[word] = job.md5 ? opcode | WITH_MD5 : opcode;
    records[word + 1] = job.number;
    records[word + 2] = at;
    records[word + 3] = length;
    this.#sent.push(record);
    this.#sentCount = (this.#sentCount + 1) | 0;
  }
}
