import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { type HashPool, openHashPool } from './hash-pool.ts';
import { computeHashes } from './hasher.ts';
import { ABANDON, createRingMemory, openRing, recordOffset } from './ring.ts';
import { BACKLOG_BYTES_MAX, startHashThread } from './thread.ts';

const MIB = 1 << 20;
const opened: HashPool[] = [];

function open(options?: { threads?: number }): HashPool {
  const hashers = openHashPool(options);
  opened.push(hashers);
  return hashers;
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((hashers) => hashers.close()));
});

/** Bytes that differ from place to place and from one seed to another. */
function someBytes(length: number, seed = 1): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let i = 0, x = seed; i < length; i++) {
    x = (Math.imul(x, 1664525) + 1013904223) | 0;
    bytes[i] = x >>> 24;
  }
  return bytes;
}

function cut(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let rest = bytes;
  for (const length of lengths) {
    pieces.push(rest.subarray(0, length));
    rest = rest.subarray(length);
  }
  return [...pieces, rest];
}

/** The thread that starts while this runs. */
async function threadOf(work: () => void): Promise<Worker> {
  const started = once(process, 'worker');
  work();
  return (await started)[0] as Worker;
}

describe('A hashing', () => {
  it('gives the MD5 and CRC64 of its bytes', async () => {
    const hashing = open().begin({ md5: true });
    await hashing.update(Buffer.from('12345'));
    await hashing.update(Buffer.from('6789'));
    expect(await hashing.digest()).toEqual({
      md5: createHash('md5').update('123456789').digest('base64'),
      crc64: 'iJh5CoYUi64=',
    });
  });

  it('gives no MD5 that was not asked for', async () => {
    expect(await open().begin({ md5: false }).digest()).toEqual({ md5: undefined, crc64: 'AAAAAAAAAAA=' });
    expect(await open().begin({ md5: false, length: 0 }).digest()).toEqual({ md5: undefined, crc64: 'AAAAAAAAAAA=' });
  });

  it('does not depend on how its bytes come: in pieces, in lists, awaited or not, here or in a thread', async () => {
    const hashers = open({ threads: 2 });
    const bytes = someBytes(300_000);
    const scenario = fc.record({
      from: fc.nat(20),
      length: fc.nat(bytes.length - 20),
      lengths: fc.array(fc.oneof(fc.nat(100), fc.nat(150_000)), { maxLength: 8 }),
      md5: fc.boolean(),
      lists: fc.boolean(),
      awaited: fc.boolean(),
      known: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ from, length, lengths, md5, lists, awaited, known }) => {
        const body = bytes.subarray(from, from + length);
        const hashing = hashers.begin(known ? { md5, length } : { md5 });
        const updates = (lists ? [cut(body, lengths)] : cut(body, lengths)).map((part) => {
          return () => hashing.update(part);
        });
        const running: Promise<void>[] = [];
        for (const update of updates) {
          running.push(update());
          if (awaited) await running.at(-1);
        }
        expect(await hashing.digest()).toEqual(computeHashes(body, { md5 }));
        await Promise.all(running);
      }),
      { numRuns: 150 },
    );
  });

  it('leaves the bytes to the caller, who may change them once they are taken', async () => {
    const hashing = open().begin({ md5: true });
    const bytes = someBytes(2 * MIB);
    const expected = computeHashes(bytes, { md5: true });
    await hashing.update(bytes);
    expect(bytes).toHaveLength(2 * MIB);
    bytes.fill(0);
    expect(await hashing.digest()).toEqual(expected);
  });

  it('takes only so many bytes before they are worked through', async () => {
    const hashing = open().begin({ md5: false });
    const bytes = someBytes(64 * MIB);
    const update = hashing.update(bytes);
    // What is within the backlog was copied at once, the end certainly was not.
    const expected = Buffer.from(bytes);
    bytes[BACKLOG_BYTES_MAX - 1]! ^= 1;
    bytes[bytes.length - 1]! ^= 1;
    expected[bytes.length - 1]! ^= 1;
    await update;
    expect(await hashing.digest()).toEqual(computeHashes(expected, { md5: false }));
  });

  it('takes any number of tiny pieces', async () => {
    const hashing = open().begin({ md5: true });
    const bytes = someBytes(5000);
    await hashing.update(cut(bytes, Array(2000).fill(2)));
    expect(await hashing.digest()).toEqual(computeHashes(bytes, { md5: true }));
  });

  it('can be given up: who waits for it gets an error, and the others go on', async () => {
    const hashers = open();
    const other = hashers.begin({ md5: true });
    const hashing = hashers.begin({ md5: true });
    const bytes = someBytes(4 * MIB);
    const update = hashing.update(bytes);
    const digest = hashing.digest();
    const otherUpdate = other.update(bytes);
    hashing.abandon();
    await expect(update).rejects.toThrow('given up');
    await expect(digest).rejects.toThrow('given up');
    await expect(hashing.update(bytes)).rejects.toThrow('given up');
    hashing.abandon();
    await otherUpdate;
    expect(await other.digest()).toEqual(computeHashes(bytes, { md5: true }));
    other.abandon();
    await expect(other.update(bytes)).rejects.toThrow('ended');
  });
});

describe('Many hashings', () => {
  it.each([1, 2])('at a time do not mix, with %i thread(s)', async (threads) => {
    const hashers = open({ threads });
    const one = async (seed: number) => {
      const bytes = someBytes(1000 + ((seed * 7919) % 400_000), seed);
      const hashing = hashers.begin({ md5: seed % 2 === 0 });
      for (const piece of cut(bytes, Array(20).fill(1 + ((seed * 131) % 60_000)))) {
        await hashing.update(piece);
        if (seed % 3 === 0) await new Promise(setImmediate);
      }
      if (seed % 10 === 9) return hashing.abandon();
      expect(await hashing.digest()).toEqual(computeHashes(bytes, { md5: seed % 2 === 0 }));
    };
    await Promise.all(Array.from({ length: 200 }, (_, seed) => one(seed)));
  });

  it('share the memory: a thousand that are fed at once wait for room, and all are served', async () => {
    const hashers = open();
    const piece = someBytes(64 << 10);
    const hashings = Array.from({ length: 1000 }, () => hashers.begin({ md5: false }));
    let taken = 0;
    const updates = hashings.map((hashing) => hashing.update(piece).then(() => taken++));
    await Promise.resolve();
    expect(taken).toBeLessThan(500);
    await Promise.all(updates);
    const expected = computeHashes(piece, { md5: false });
    for (const digest of await Promise.all(hashings.map((hashing) => hashing.digest()))) {
      expect(digest).toEqual(expected);
    }
  });

  it('take turns: a short body does not wait for a long one', async () => {
    const hashers = open();
    const long = hashers.begin({ md5: true });
    const order: string[] = [];
    const longDone = long.update(someBytes(64 * MIB)).then(() => order.push('long'));
    const short = hashers.begin({ md5: true });
    await short.update(someBytes(100_000));
    await short.digest();
    order.push('short');
    await longDone;
    expect(order).toEqual(['short', 'long']);
  });
});

describe('A thread', () => {
  it('that dies fails the hashings it had, and is replaced', async () => {
    const hashers = open();
    const bytes = someBytes(8 * MIB);
    let idle = hashers.begin({ md5: true });
    const worker = await threadOf(() => {
      idle = hashers.begin({ md5: true });
    });
    const waiting = hashers.begin({ md5: true });
    const update = waiting.update(bytes);
    const digest = waiting.digest();
    const settled = Promise.allSettled([update, digest]);
    await worker.terminate();
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(digest).rejects.toThrow('The hashing thread stopped');
    await expect(idle.update(bytes)).rejects.toThrow('The hashing thread stopped');
    idle.abandon();

    const next = hashers.begin({ md5: true });
    await next.update(bytes);
    expect(await next.digest()).toEqual(computeHashes(bytes, { md5: true }));
  });

  it('keeps nothing of a hashing that was given up', async () => {
    const memory = createRingMemory();
    const { records } = openRing(memory);
    const thread = startHashThread(() => {}, memory);
    const hashing = thread.begin({ md5: false });
    await hashing.update(someBytes(100));
    hashing.abandon();
    expect(records[recordOffset(1)]).toBe(ABANDON);
    expect(thread.load()).toBe(0);
    await thread.stop();
  });

  it('is not started for short bodies', async () => {
    let started = 0;
    const count = () => {
      started++;
    };
    process.on('worker', count);
    const hashers = open();
    const bytes = someBytes(64 << 10);
    const hashing = hashers.begin({ md5: true, length: bytes.length });
    await hashing.update(bytes);
    expect(await hashing.digest()).toEqual(computeHashes(bytes, { md5: true }));
    await pause(0);
    process.off('worker', count);
    expect(started).toBe(0);
  });

  it('keeps the process while someone waits for a hash, and no longer', () => {
    const url = new URL('../../build/hashing/hash-pool.js', import.meta.url).href;
    const program = `import(${JSON.stringify(url)}).then(async ({ openHashPool }) => {
      const hashing = openHashPool().begin({ md5: false });
      await hashing.update(Buffer.alloc(${4 * MIB}));
      console.log((await hashing.digest()).crc64);
    })`;
    const { stdout, status } = spawnSync(process.execPath, ['-e', program], {
      encoding: 'utf8',
      timeout: 20_000,
    });
    expect({ stdout: stdout.trim(), status }).toEqual({
      stdout: computeHashes(Buffer.alloc(4 * MIB), { md5: false }).crc64,
      status: 0,
    });
  });

  it('ends with its owner: what is under way fails, and nothing can be begun', async () => {
    const hashers = open();
    const hashing = hashers.begin({ md5: true });
    const digest = hashing.digest();
    const failed = expect(digest).rejects.toThrow('The hashing thread stopped');
    await hashers.close();
    await failed;
    expect(() => hashers.begin({ md5: true })).toThrow('closed');
  });
});
