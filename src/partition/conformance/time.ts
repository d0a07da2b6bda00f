/** Conformance: the clock and timestamps. */
import { describe, expect, it } from 'vitest';
import type { Instant, Timestamp } from '../partition.ts';
import { openPartition } from '../transact.ts';
import {
  bytes,
  type Harness,
  key,
  makeCommit,
  nextTick,
  openOne,
  openStore,
  put,
  readEngine,
  times,
} from './harness.ts';

const SECOND = 10_000_000n;
const NOON: Instant = 638_000_000_000_000_000n;
const elapsedTicks = (): bigint => process.hrtime.bigint() / 100n;

export function time(harness: Harness): void {
  describe('time', () => {
    it('runs a function again whose commit is after its deadline', async () => {
      const partition = await openOne(harness);
      const seen: Instant[] = [];
      await partition.transact(key('queue key'), async (tx) => {
        seen.push(tx.now);
        tx.put(key('run'), bytes(seen.length));
        if (seen.length > 1) return;
        tx.commitBefore(tx.now + 10n * SECOND);
        await partition.clock.advance(20n * SECOND);
      });
      expect(seen).toHaveLength(2);
      expect(seen[1]! - seen[0]!).toBeGreaterThanOrEqual(20n * SECOND);
    });

    it('uses the earliest of several deadlines', async () => {
      const partition = await openOne(harness);
      let runs = 0;
      await partition.transact(key('queue key'), async (tx) => {
        tx.put(key('run'), bytes(++runs));
        if (runs > 1) return;
        tx.commitBefore(tx.now + 10n * SECOND);
        tx.commitBefore(tx.now + 60n * SECOND);
        await partition.clock.advance(20n * SECOND);
      });
      expect(runs).toBe(2);
    });

    it('commits before the deadline', async () => {
      const partition = await openOne(harness);
      let runs = 0;
      await partition.transact(key('queue key'), async (tx) => {
        tx.put(key('run'), bytes(++runs));
        tx.commitBefore(tx.now + 60n * SECOND);
        await partition.clock.advance(20n * SECOND);
      });
      expect(runs).toBe(1);
    });

    it('moves when it is advanced, for reads, transactions and timestamps', async () => {
      const partition = await openOne(harness);
      const before = partition.clock.now();
      await partition.clock.advance(3600n * SECOND);
      const { value, timestamp } = await partition.transact(key('row'), async (tx) => {
        tx.put(key('row'), bytes(1));
        return tx.now;
      });
      for (const instant of [partition.clock.now(), await partition.read(async (at) => at.now), value, timestamp]) {
        expect(instant - before).toBeGreaterThanOrEqual(3600n * SECOND);
        expect(instant - before).toBeLessThan(3700n * SECOND);
      }
    });

    it('does not move backwards', async () => {
      const partition = await openOne(harness);
      await expect(partition.clock.advance(-1n)).rejects.toThrow(RangeError);
    });

    it('is not later in a transaction than its timestamp', async () => {
      const partition = await openOne(harness);
      for (let i = 0; i < 20; i++) {
        const { value, timestamp } = await partition.transact(key('queue key'), async (tx) => {
          tx.put(key('row'), bytes(i));
          return tx.now;
        });
        expect(value).toBeLessThanOrEqual(timestamp);
      }
    });

    it('gives a read an instant that is not before an earlier commit', async () => {
      const partition = await openOne(harness);
      for (let i = 0; i < 20; i++) {
        const timestamps = await Promise.all(
          times(20, async (j) => (await put(partition, key('row', j), i)).timestamp),
        );
        const now = await partition.read(async (at) => at.now);
        for (const timestamp of timestamps) expect(now).toBeGreaterThanOrEqual(timestamp);
      }
    });

    it('is after an instant only for a reader that sees every commit decided before that instant', async () => {
      const store = await openStore(harness);
      const reader = harness.ownClockPerEngine ? store.engine : await store.beside();
      const seen = { committed: 0, past: 0 };
      // The deadlines approach the time at which a commit is decided: there a reader could be ahead of it.
      let leeway = SECOND / 100n;
      for (let round = 0; round < 60; round++) {
        const keys = times(8, (i) => key('row', round, i));
        const reads: { now: Instant; isThere: boolean[] }[] = [];
        let isDecided = false;
        const reading = times(2, async () => {
          while (!isDecided) {
            await readEngine(reader, async (at) => {
              const rows = await at.getMany(keys);
              reads.push({ now: at.now, isThere: rows.map((row) => row !== undefined) });
            });
            await nextTick();
          }
        });
        const commits = await Promise.all(
          keys.map(async (at) => {
            const before = store.engine.clock.now() + leeway;
            const writes = [{ kind: 'put', key: at, value: bytes(round) } as const];
            const writeSets = [{ timestamp: store.engine.clock.nextTimestamp(), writes }];
            return {
              before,
              outcome: await store.engine.commit(
                makeCommit({ queueKeys: [at], deadline: before, writeSets: writeSets }),
              ),
            };
          }),
        );
        isDecided = true;
        await Promise.all(reading);
        for (const [i, { before, outcome }] of commits.entries()) {
          leeway = outcome === 'committed' ? (leeway * 9n) / 10n : (leeway * 11n) / 10n;
          if (outcome !== 'committed') continue;
          seen.committed++;
          const past = reads.filter(({ now }) => now >= before);
          seen.past += past.length;
          for (const { isThere } of past) expect(isThere[i]).toBe(true);
        }
      }
      expect(seen.committed).toBeGreaterThan(0);
    });

    it('continues when the machine sets its clock back', async () => {
      let wall = NOON;
      const { engine } = await openStore(harness, { wall: () => wall });
      const before = engine.clock.now();
      const started = elapsedTicks();
      wall -= 3600n * SECOND;
      do expect(engine.clock.now()).toBeGreaterThanOrEqual(before);
      while (elapsedTicks() - started < SECOND / 100n);
      expect(engine.clock.now() - before).toBeGreaterThanOrEqual(SECOND / 100n);
    });

    it('never goes back when the machine sets its clock back', async () => {
      let wall = NOON;
      const { engine } = await openStore(harness, { wall: () => wall });
      const partition = openPartition(engine);
      let [now, last]: [Instant, Timestamp] = [0n, 0n];
      for (const back of [0n, 1n, 3600n, 86_400n, 10n]) {
        wall = NOON - back * SECOND;
        expect(engine.clock.now()).toBeGreaterThanOrEqual(now);
        now = engine.clock.now();
        expect(now).toBeGreaterThanOrEqual(NOON);
        const { timestamp } = await put(partition, key('row'), 1);
        expect(timestamp).toBeGreaterThan(last);
        last = timestamp;
      }
    });
  });

  if (!harness.durable) return;
  describe('a store that is opened again', () => {
    it('continues exactly at the time of its clean close, though the machine set its clock back', async () => {
      const store = await openStore(harness, { wall: () => NOON });
      const { timestamp } = await put(openPartition(store.engine), key('row'), 1);
      await store.engine.clock.advance(100n * SECOND);
      const before = store.engine.clock.now();
      const started = elapsedTicks();
      for (const back of [0n, 3600n, 86_400n]) {
        const engine = await store.reopen!({ wall: () => NOON - back * SECOND });
        const now = engine.clock.now();
        expect(now).toBeGreaterThanOrEqual(before);
        expect(now - before).toBeLessThan(elapsedTicks() - started + SECOND / 10n);
        const written = await put(openPartition(engine), key('row', back), 1);
        expect(written.timestamp).toBeGreaterThan(timestamp);
        expect(written.timestamp).toBeGreaterThanOrEqual(before);
      }
    });

    it('continues at the wall clock when that is ahead', async () => {
      const store = await openStore(harness, { wall: () => NOON });
      const engine = await store.reopen!({ wall: () => NOON + 3600n * SECOND });
      expect(engine.clock.now()).toBeGreaterThanOrEqual(NOON + 3600n * SECOND);
    });

    it('has all commits, with their versions', async () => {
      const store = await openStore(harness);
      const partition = openPartition(store.engine);
      const timestamps = await Promise.all(times(50, async (i) => (await put(partition, key('row', i), i)).timestamp));
      const engine = await store.reopen!();
      const rows = await readEngine(engine, (at) => at.getMany(times(50, (i) => key('row', i))));
      expect(rows.map((row) => row?.version)).toEqual(timestamps);
    });
  });
}
