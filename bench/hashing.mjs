/**
 * node bench/hashing.mjs: the cost of MD5 and CRC64, and of handing them to a thread.
 * The limits in src/hashing/hash-pool.ts and thread.ts were chosen by these figures.
 */
import { hash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { openHashPool } from '../build/hashing/hash-pool.js';
import { crc64Base64, createHasher } from '../build/hashing/hasher.js';

const MIB = 1 << 20;
const PIECE_BYTES = 64 << 10;
const body = randomBytes(8 * MIB);

console.log('On the spot, MB/s');
for (const size of [1 << 10, 16 << 10, MIB]) {
  const bytes = body.subarray(0, size);
  const md5 = speed(() => hash('md5', bytes, 'base64'), size);
  const crc64 = speed(() => crc64Base64(bytes), size);
  console.log(`  ${name(size)}: MD5 ${md5}, CRC64 ${crc64}, both ${speed(() => both(bytes), size)}`);
}

for (const md5 of [true, false]) {
  console.log(`The main thread's microseconds for one body, ${md5 ? 'MD5 and CRC64' : 'CRC64 only'}`);
  for (const size of [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, MIB, 8 * MIB]) {
    const bytes = body.subarray(0, size);
    const rounds = Math.min(2000, Math.ceil((64 * MIB) / size));
    const nothing = await mainThread(rounds, () => feed(bytes, { update: async () => {}, digest: async () => {} }));
    const spot = (await mainThread(rounds, () => feed(bytes, onTheSpot(md5)))) - nothing;
    const hashers = openHashPool();
    await feed(bytes, hashers.begin({ md5 }));
    const thread = (await mainThread(rounds, () => feed(bytes, hashers.begin({ md5 })))) - nothing;
    await hashers.close();
    console.log(`  ${name(size)}: on the spot ${spot.toFixed(0)}, in a thread ${thread.toFixed(0)}`);
  }
}

console.log('Sixteen bodies of 1 MiB at a time, MB/s in all');
for (const threads of [1, 2]) {
  const hashers = openHashPool({ threads });
  const bytes = body.subarray(0, MIB);
  const client = async () => {
    for (let i = 0; i < 32; i++) await feed(bytes, hashers.begin({ md5: true }));
  };
  await client();
  const start = performance.now();
  await Promise.all(Array.from({ length: 16 }, client));
  console.log(`  ${threads} thread(s): ${((16 * 32 * MIB) / (performance.now() - start) / 1000).toFixed(0)}`);
  await hashers.close();
}

/** As a socket does: one chunk a turn of the event loop. */
async function feed(bytes, hashing) {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    await hashing.update(bytes.subarray(at, at + PIECE_BYTES));
    await turn();
  }
  return hashing.digest();
}

function onTheSpot(md5) {
  const hashers = openHashPool();
  return hashers.begin({ md5, length: 0 });
}

function both(bytes) {
  const hasher = createHasher({ md5: true });
  hasher.update(bytes);
  return hasher.digest();
}

function speed(work, size) {
  const rounds = Math.ceil((32 * MIB) / size);
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 4; i++) {
    const start = performance.now();
    for (let round = 0; round < rounds; round++) work();
    best = Math.min(best, performance.now() - start);
  }
  return ((rounds * size) / best / 1000).toFixed(0);
}

async function mainThread(rounds, work) {
  for (let i = 0; i < rounds / 4; i++) await work();
  const start = mainThreadMicroseconds();
  for (let i = 0; i < rounds; i++) await work();
  return (mainThreadMicroseconds() - start) / rounds;
}

/** On Linux the first thread's time on a processor; elsewhere the time that the event loop was not idle. */
function mainThreadMicroseconds() {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1000;
  } catch {
    return performance.eventLoopUtilization().active * 1000;
  }
}

function name(size) {
  return size < MIB ? `${size >> 10} KiB` : `${size / MIB} MiB`;
}
