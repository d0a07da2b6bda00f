/** The code that runs in the thread of thread.ts: consumer of the ring. */
import { parentPort, workerData } from 'node:worker_threads';
import { compileCrc64, type InPlaceCrc64 } from './crc64.ts';
import { compileMd5, MD5_LANES, type Md5Input, type Md5State } from './md5.ts';
import {
  DATA_AT,
  DIGEST,
  DONE,
  IDLE,
  openRing,
  RECORDS_MAX,
  recordOffset,
  SENT,
  SIGNALLED,
  UPDATE,
  WAITING,
  WITH_MD5,
} from './ring.ts';
import type { WasmMemory } from './wasm.ts';

interface HashState {
  readonly crc64: InPlaceCrc64;
  readonly md5: Md5State | undefined;
}

/** An owner that waits for room is signalled after this many bytes, not after every record. */
const SIGNAL_BYTES = 256 << 10;

const memory = workerData as WasmMemory;
const { control, records, data } = openRing(memory);
const beginCrc64 = compileCrc64(memory);
const md5s = compileMd5(memory);
const hashings = new Map<number, HashState>();
/** By slot: 1 if a record is processed, while one before it may not be. */
const isProcessed = new Uint8Array(RECORDS_MAX);
let done = 0;
let bytesUnsignalled = 0;

parentPort!.on('message', drain);
drain();

function drain(): void {
  do {
    for (let sent = sentCount(); done !== sent; sent = sentCount()) processBatch(sent);
    if (Atomics.load(control, WAITING)) signalOwner();
    Atomics.store(control, IDLE, 1);
    // If the owner has reset IDLE meanwhile, its message is on the way.
  } while (done !== sentCount() && Atomics.exchange(control, IDLE, 0) === 1);
}

function sentCount(): number {
  return Atomics.load(control, SENT);
}

/** Processes the oldest record, together with the next records of other bodies: MD5 hashes several bodies at a time. */
function processBatch(sent: number): void {
  const inputs = new Map<number, Md5Input>();
  let count = 0;
  for (let number = done; number !== sent && count < MD5_LANES; number = (number + 1) | 0) {
    const record = readRecord(number);
    // Records of one body are processed in order.
    if (isProcessed[record.slot] || inputs.has(record.hashing)) continue;
    isProcessed[record.slot] = 1;
    count++;
    const input = processRecord(record);
    if (input) inputs.set(record.hashing, input);
  }
  md5s.update([...inputs.values()]);
  publishDone(sent);
}

interface RingRecord {
  readonly slot: number;
  readonly opcode: number;
  readonly hashing: number;
  readonly at: number;
  readonly length: number;
}

function readRecord(number: number): RingRecord {
  const word = recordOffset(number);
  return {
    slot: word / 4,
    opcode: records[word]!,
    hashing: records[word + 1]!,
    at: records[word + 2]!,
    length: records[word + 3]!,
  };
}

/** @returns the bytes of which the MD5 is still to be computed */
function processRecord({ opcode, hashing, at, length }: RingRecord): Md5Input | undefined {
  const operation = opcode & ~WITH_MD5;
  const current = hashings.get(hashing) ?? { crc64: beginCrc64(), md5: opcode & WITH_MD5 ? md5s.begin() : undefined };
  const { crc64, md5 } = current;
  if (operation === UPDATE) {
    hashings.set(hashing, current);
    const from = DATA_AT + at;
    crc64.update(from, from + length);
    return md5 && { md5, from, to: from + length };
  }
  hashings.delete(hashing);
  if (operation === DIGEST) data.write(crc64.digest() + (md5 ? md5s.digest(md5) : ''), at, 'latin1');
  return undefined;
}

/** The owner releases records in their order. */
function publishDone(sent: number): void {
  let hasDigest = false;
  for (; done !== sent; done = (done + 1) | 0) {
    const { slot, opcode, length } = readRecord(done);
    if (!isProcessed[slot]) break;
    isProcessed[slot] = 0;
    bytesUnsignalled += length;
    if ((opcode & ~WITH_MD5) === DIGEST) hasDigest = true;
  }
  Atomics.store(control, DONE, done);
  if (hasDigest || (bytesUnsignalled >= SIGNAL_BYTES && Atomics.load(control, WAITING))) signalOwner();
}

function signalOwner(): void {
  bytesUnsignalled = 0;
  if (Atomics.exchange(control, SIGNALLED, 1) === 0) parentPort!.postMessage(0);
}
