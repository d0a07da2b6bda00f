/** The thread of hash-thread.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { type Crc64Within, crc64Within } from './crc64.ts';
import { MD5_LANES, type Md5, type Md5Stretch, md5Within } from './md5.ts';
import {
  DATA_AT,
  DIGEST,
  DONE,
  IDLE,
  RECORDS_MAX,
  recordAt,
  ringIn,
  SENT,
  TOLD,
  UPDATE,
  WAITING,
  WITH_MD5,
} from './ring.ts';
import type { WasmMemory } from './wasm.ts';

interface Hashed {
  readonly crc64: Crc64Within;
  readonly md5: Md5 | undefined;
}

/** An owner that waits for room is told after so many bytes, not after every record. */
const TELLING_BYTES = 256 << 10;

const memory = workerData as WasmMemory;
const { control, records, data } = ringIn(memory);
const beginCrc64 = crc64Within(memory);
const md5s = md5Within(memory);
const hashings = new Map<number, Hashed>();
/** Whether a record was worked through, though not all before it were. */
const isWorked = new Uint8Array(RECORDS_MAX);
let done = 0;
let bytesUntold = 0;

parentPort!.on('message', drain);
drain();

function drain(): void {
  do {
    for (let sent = sentSoFar(); done !== sent; sent = sentSoFar()) workThrough(sent);
    if (Atomics.load(control, WAITING)) tell();
    Atomics.store(control, IDLE, 1);
    // If the owner saw the thread idle meanwhile, its message is on the way.
  } while (done !== sentSoFar() && Atomics.exchange(control, IDLE, 0) === 1);
}

function sentSoFar(): number {
  return Atomics.load(control, SENT);
}

/** The oldest record, and others that go with it: MD5 takes several bodies at a time. */
function workThrough(sent: number): void {
  const stretches = new Map<number, Md5Stretch>();
  let count = 0;
  for (let number = done; number !== sent && count < MD5_LANES; number = (number + 1) | 0) {
    const record = recordOf(number);
    // Of one body they are worked through in order.
    if (isWorked[record.place] || stretches.has(record.hashing)) continue;
    isWorked[record.place] = 1;
    count++;
    const stretch = begin(record);
    if (stretch) stretches.set(record.hashing, stretch);
  }
  md5s.update([...stretches.values()]);
  giveBack(sent);
}

interface RingRecord {
  readonly place: number;
  readonly order: number;
  readonly hashing: number;
  readonly at: number;
  readonly length: number;
}

function recordOf(number: number): RingRecord {
  const word = recordAt(number);
  return {
    place: word / 4,
    order: records[word]!,
    hashing: records[word + 1]!,
    at: records[word + 2]!,
    length: records[word + 3]!,
  };
}

/** All of what it asks for but the MD5 of its bytes. */
function begin({ order, hashing, at, length }: RingRecord): Md5Stretch | undefined {
  const what = order & ~WITH_MD5;
  const current = hashings.get(hashing) ?? { crc64: beginCrc64(), md5: order & WITH_MD5 ? md5s.begin() : undefined };
  const { crc64, md5 } = current;
  if (what === UPDATE) {
    hashings.set(hashing, current);
    const from = DATA_AT + at;
    crc64.update(from, from + length);
    return md5 && { md5, from, to: from + length };
  }
  hashings.delete(hashing);
  if (what === DIGEST) data.write(crc64.digest() + (md5 ? md5s.digest(md5) : ''), at, 'latin1');
  return undefined;
}

/** The owner takes records back in their order. */
function giveBack(sent: number): void {
  let hasAnswer = false;
  for (; done !== sent; done = (done + 1) | 0) {
    const { place, order, length } = recordOf(done);
    if (!isWorked[place]) break;
    isWorked[place] = 0;
    bytesUntold += length;
    if ((order & ~WITH_MD5) === DIGEST) hasAnswer = true;
  }
  Atomics.store(control, DONE, done);
  if (hasAnswer || (bytesUntold >= TELLING_BYTES && Atomics.load(control, WAITING))) tell();
}

function tell(): void {
  bytesUntold = 0;
  if (Atomics.exchange(control, TOLD, 1) === 0) parentPort!.postMessage(0);
}
