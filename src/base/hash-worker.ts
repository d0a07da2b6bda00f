/** The thread of hash-thread.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { ABANDON, DIGEST, DONE, IDLE, recordAt, ringIn, SENT, TOLD, UPDATE, WAITING, WITH_MD5 } from './hash-ring.ts';
import { type Hasher, hasher } from './hashes.ts';

/** An owner that waits for room is told after so many bytes, not after every record. */
const TELLING_BYTES = 256 << 10;

const { control, records, data } = ringIn(workerData as SharedArrayBuffer);
const hashers = new Map<number, Hasher>();
let done = 0;
let bytesUntold = 0;

parentPort!.on('message', drain);
drain();

function drain(): void {
  do {
    while (done !== Atomics.load(control, SENT)) workThrough(recordAt(done));
    if (Atomics.load(control, WAITING)) tell();
    Atomics.store(control, IDLE, 1);
    // If the owner saw the thread idle meanwhile, its message is on the way.
  } while (done !== Atomics.load(control, SENT) && Atomics.exchange(control, IDLE, 0) === 1);
}

function workThrough(at: number): void {
  const order = records[at]!;
  const number = records[at + 1]!;
  const from = records[at + 2]!;
  const to = from + records[at + 3]!;
  const current = hashers.get(number) ?? hasher({ md5: (order & WITH_MD5) !== 0 });
  const what = order & ~WITH_MD5;
  if (what === UPDATE) {
    hashers.set(number, current);
    current.update(data.subarray(from, to));
  } else {
    hashers.delete(number);
    if (what === DIGEST) {
      const { md5 = '', crc64 } = current.digest();
      data.write(crc64 + md5, from, 'latin1');
    }
  }

  bytesUntold += to - from;
  done = (done + 1) | 0;
  Atomics.store(control, DONE, done);
  if (what === DIGEST || (what !== ABANDON && bytesUntold >= TELLING_BYTES && Atomics.load(control, WAITING))) tell();
}

function tell(): void {
  bytesUntold = 0;
  if (Atomics.exchange(control, TOLD, 1) === 0) parentPort!.postMessage(0);
}
