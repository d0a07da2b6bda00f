import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bytes, get, key, put, rowNumber, times } from '../conformance/harness.ts';
import { partitionConformance } from '../conformance/suite.ts';
import { prefixEnd } from '../keys.ts';
import type { Timestamp } from '../partition.ts';
import { openPartition } from '../transact.ts';
import { decodeCounter } from '../values.ts';
import { type LmdbOptions, openLmdb } from './engine.ts';

const helper = (name: string): string => fileURLToPath(new URL(`../../../test/partition/${name}`, import.meta.url));
const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'holdfast-partition-'));
const remove = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });

const conformance = (name: string, options: Omit<LmdbOptions, 'location'>): void =>
  partitionConformance(name, {
    durable: true,
    ownClockPerEngine: true,
    async open(given) {
      const location = await newFolder();
      let engine = await openLmdb({ location, ...options, ...given });
      return {
        engine,
        beside: async () => engine,
        async reopen(again) {
          await engine.close();
          engine = await openLmdb({ location, ...options, ...again });
          return engine;
        },
        async drop() {
          await engine.close();
          await remove(location);
        },
      };
    },
  });

conformance('LMDB', {});
conformance('LMDB with a checkpoint every 2 KB', { checkpointBytes: 2_000, checkpointRowsPerTransaction: 3 });

interface Acknowledged {
  client: number;
  i: number;
  timestamp: string;
  now: string;
}

/** Lets a process write until it has acknowledged `count` commits, and kills it with no warning. */
async function killAfter(count: number, location: string, ...rest: string[]): Promise<Acknowledged[]> {
  const child = fork(helper('killed.mjs'), [location, ...rest], { execArgv: [] });
  const acknowledged: Acknowledged[] = [];
  child.on('message', (message: Acknowledged) => {
    if (acknowledged.push(message) === count) child.kill('SIGKILL');
  });
  await once(child, 'close');
  return acknowledged;
}

describe('LMDB after the process was killed', () => {
  it('holds every acknowledged commit whole, and no other in part', async () => {
    const location = await newFolder();
    onTestFinished(() => remove(location));
    const versions = new Map<string, Timestamp>();
    let commits = 0;
    for (const count of [1, 40, 150, 400]) {
      const acknowledged = await killAfter(count, location);
      expect(acknowledged.length).toBeGreaterThanOrEqual(count);
      const partition = openPartition(await openLmdb({ location }));
      for (const { client, i, timestamp } of acknowledged) {
        const rows = await partition.read((at) => at.getMany([key('left', client, i), key('right', client, i)]));
        const now = versions.get(`${client} ${i}`);
        for (const row of rows) {
          expect(row?.version).toBeGreaterThanOrEqual(BigInt(timestamp));
          expect(Buffer.compare(row!.value, Buffer.alloc(3000, i))).toBe(0);
        }
        expect(rows[0]?.version).toBe(rows[1]?.version);
        if (now !== undefined) expect(BigInt(timestamp)).toBeGreaterThan(now);
        versions.set(`${client} ${i}`, rows[0]!.version);
      }
      await partition.read(async (at) => {
        for (const client of times(8, (i) => i)) {
          const latest = await at.get(key('latest', client));
          if (!latest) continue;
          // A client that wrote nothing in this round left no new row.
          if (versions.get(`${client}`) !== latest.version) commits += rowNumber(latest) + 1;
          versions.set(`${client}`, latest.version);
          for (const side of ['left', 'right']) {
            expect((await at.get(key(side, client, rowNumber(latest))))?.version).toBe(latest.version);
          }
        }
        expect(decodeCounter(await at.get(key('commits')))).toBe(BigInt(commits));
      });
      await partition.close();
    }
  });

  it('continues at most a few seconds after the last instant it returned, and never before it', async () => {
    const location = await newFolder();
    onTestFinished(() => remove(location));
    const wall = 638_000_000_000_000_000n;
    const started = process.hrtime.bigint();
    const acknowledged = await killAfter(100, location, String(wall));
    const engine = await openLmdb({ location, wall: () => wall - 36_000_000_000n });
    const last = acknowledged
      .map(({ now }) => BigInt(now))
      .toSorted()
      .at(-1)!;
    const ahead = engine.clock.now() - last;
    const elapsed = (process.hrtime.bigint() - started) / 100n;
    expect(ahead).toBeGreaterThanOrEqual(0n);
    expect(ahead).toBeLessThan(20_000_000n + elapsed);
    expect(engine.clock.nextTimestamp()).toBeGreaterThan(last);
    await engine.close();
  });
});

describe('LMDB with a key over 4,026 bytes', () => {
  it('refuses to write it and continues, also after a read of such a key', async () => {
    const location = await newFolder();
    onTestFinished(() => remove(location));
    const partition = openPartition(await openLmdb({ location }));
    const long = key('x'.repeat(4100));
    const neighbours = times(5, (i) => put(partition, key('row', i), i));
    await expect(put(partition, long, 1)).rejects.toThrow();
    const reading = partition.transact(key('anchor'), async (tx) => {
      const row = await tx.get(long);
      const rows = await tx.scan({ from: long, to: prefixEnd(long) }, { limit: 1 });
      tx.put(key('read'), bytes(Number(row !== undefined) + rows.length));
    });
    await reading.catch(() => {});
    await Promise.all(neighbours);
    await put(partition, key('row', 5), 5);
    expect(await get(partition, key('row', 5))).toBe('5');
    await partition.close();
  });
});

describe('Time, as readers of LMDB see it', () => {
  it('is not past the end of a lease while what was written under it in time cannot be seen yet', async () => {
    const location = await newFolder();
    let passed = 0n;
    const engine = await openLmdb({ location, wall: () => 638_000_000_000_000_000n, monotonic: () => passed });
    onTestFinished(async () => {
      await engine.close();
      await remove(location);
    });
    const partition = openPartition(engine);
    for (let round = 0; round < 200; round++) {
      const end = engine.clock.now() + 3_600_000_000n;
      let isWritten: boolean | undefined;
      const late: Timestamp[] = [];
      const writing = partition
        .transact(key('lease'), async (tx) => {
          if (tx.now >= end) throw new Error('too late');
          tx.commitBefore(end);
          tx.put(key('row'), bytes(round));
        })
        .then(
          () => true,
          () => false,
        )
        .then((done) => {
          isWritten = done;
        });
      // The lease ends at any moment of the commit.
      for (let turn = 0; turn < round % 20; turn++) await new Promise(setImmediate);
      passed += 7_200_000_000n;
      while (isWritten === undefined) {
        const at = engine.snapshot();
        const row = await at.get(key('row'));
        if (at.now >= end && (!row || rowNumber(row) !== round)) late.push(at.now);
        at.end();
        await new Promise(setImmediate);
      }
      await writing;
      if (isWritten) expect(late).toEqual([]);
    }
  });
});
