/** Conformance: adds to counters, which do not conflict. */
import { describe, expect, it } from 'vitest';
import { type Key, keysUnder } from '../keys.ts';
import type { Commit, MaybePromise, Outcome, Partition, Timestamp, Transaction } from '../partition.ts';
import { openPartition } from '../transact.ts';
import { decodeCounter } from '../values.ts';
import {
  bytes,
  get,
  type Harness,
  intercept,
  key,
  makeCommit,
  nextTick,
  openOne,
  openStore,
  openTwo,
  put,
  readEngine,
  rowText,
  runInOneCommit,
  times,
} from './harness.ts';

const COUNTER = key('counter', 1);
const UNREADABLE = 'a counter is not read in a transaction';

const count = async (partition: Partition, at = COUNTER): Promise<bigint> =>
  decodeCounter(await partition.read((snapshot) => snapshot.get(at)));
const add = (partition: Partition, n: bigint, at = COUNTER, queueKey: Key = at): Promise<{ timestamp: Timestamp }> =>
  partition.transact(queueKey, async (tx) => tx.add(at, n));
const addSet = (timestamp: Timestamp, n: bigint, at = COUNTER): Commit['writeSets'][number] => ({
  timestamp,
  writes: [{ kind: 'add', key: at, n }],
});

export function counters(harness: Harness): void {
  describe('a counter', () => {
    it('has the sum of concurrent adds under different queue keys, and no function runs twice', async () => {
      const store = await openStore(harness);
      const outcomes = new Set<Outcome>();
      const partitions = [store.engine, await store.beside()].map((engine) =>
        openPartition(
          intercept(engine, async (_, pass) => {
            const outcome = await pass();
            outcomes.add(outcome);
            return outcome;
          }),
        ),
      );
      let runs = 0;
      const adders = times(64, async (adder) => {
        for (let round = 1; round <= 10; round++) {
          await partitions[adder % 2]!.transact(key('adder', adder), async (tx) => {
            runs++;
            tx.add(COUNTER, BigInt(adder));
            if (adder % 3 === 0) await nextTick();
            tx.put(key('own', adder), bytes(round));
          });
        }
      });
      await Promise.all(adders);
      for (const partition of partitions) expect(await count(partition)).toBe(BigInt((63 * 64) / 2) * 10n);
      expect(runs).toBe(640);
      expect([...outcomes]).toEqual(['committed']);
    });

    for (const [title, start] of Object.entries(harness.otherWriters ?? {})) {
      it(`has the concurrent adds of ${title}, too, and no function runs twice`, async () => {
        const store = await openStore(harness);
        const partition = openPartition(store.engine);
        const other = await start(store);
        let runs = 0;
        try {
          const there = (async () => {
            for (let i = 0; i < 300; i++) await other.add(COUNTER, 1000);
          })();
          const here = times(4, async (adder) => {
            for (let i = 0; i < 100; i++) {
              await partition.transact(key('adder', adder), async (tx) => {
                runs++;
                tx.add(COUNTER, -1n);
              });
            }
          });
          await Promise.all([there, ...here]);
          expect(await count(partition)).toBe(299_600n);
          await other.add(COUNTER, 400);
          expect(await count(partition)).toBe(300_000n);
        } finally {
          await other.end();
        }
        expect(runs).toBe(400);
      });
    }

    it('sums several adds of one transaction, and of transactions that share a commit', async () => {
      const partition = await openOne(harness);
      const adders = times(20, (i) => async (tx: Transaction) => {
        tx.add(COUNTER, 100n);
        tx.add(key('counter', 2), BigInt(-i));
        tx.add(COUNTER, 1n);
      });
      await runInOneCommit(partition, ...adders);
      expect(await count(partition)).toBe(2020n);
      expect(await count(partition, key('counter', 2))).toBe(-190n);
    });

    it('shows an add as soon as it is acknowledged', async () => {
      const [partition, other] = await openTwo(harness);
      for (let i = 1n; i <= 200n; i++) {
        await add(partition, 1n);
        expect([await count(partition), await count(other)]).toEqual([i, i]);
      }
      const rows = await partition.read((at) => at.scan(keysUnder(['counter']), { limit: 10 }));
      expect(rows.map(decodeCounter)).toEqual([200n]);
    });

    it('has no row before the first add, nor when it returns to zero', async () => {
      const partition = await openOne(harness);
      const rows = () => partition.read((at) => at.scan(keysUnder(['counter']), { limit: 10 }));
      await add(partition, 0n);
      expect(await rows()).toEqual([]);
      await add(partition, 7n);
      expect((await rows()).map(decodeCounter)).toEqual([7n]);
      await add(partition, -7n);
      expect(await rows()).toEqual([]);
      await add(partition, -7n);
      expect((await rows()).map(decodeCounter)).toEqual([-7n]);
      await runInOneCommit(
        partition,
        async (tx) => tx.add(COUNTER, 4n),
        async (tx) => tx.add(COUNTER, 3n),
      );
      expect(await rows()).toEqual([]);
    });

    it('counts exactly from -2^63 to 2^63 - 1, and refuses larger numbers', async () => {
      const partition = await openOne(harness);
      const [most, least] = [(1n << 63n) - 1n, -(1n << 63n)];
      await add(partition, most);
      expect(await count(partition)).toBe(most);
      await add(partition, least);
      expect(await count(partition)).toBe(-1n);
      await add(partition, least, key('counter', 2));
      expect(await count(partition, key('counter', 2))).toBe(least);
      for (const wrong of [most + 1n, least - 1n]) await expect(add(partition, wrong)).rejects.toThrow(RangeError);
      expect(await count(partition)).toBe(-1n);
    });

    it('ignores the adds of a function that throws, alone or in a batch', async () => {
      const partition = await openOne(harness);
      const refused = async (tx: Transaction) => {
        tx.add(COUNTER, 1000n);
        await nextTick();
        throw new Error('refused');
      };
      await expect(partition.transact(COUNTER, refused)).rejects.toThrow('refused');
      expect(await count(partition)).toBe(0n);
      const outcomes = await runInOneCommit(
        partition,
        async (tx) => tx.add(COUNTER, 1n),
        refused,
        async (tx) => tx.add(COUNTER, 2n),
      );
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(await count(partition)).toBe(3n);
    });

    it('ignores the adds of a commit that conflicts', async () => {
      const [partition, other] = await openTwo(harness);
      await put(partition, key('read'), 'before');
      let runs = 0;
      await partition.transact(key('queue key'), async (tx) => {
        await tx.get(key('read'));
        tx.add(COUNTER, 1n);
        tx.put(key('beside'), bytes(1));
        if (++runs === 1) await put(other, key('read'), 'after');
      });
      expect(runs).toBe(2);
      expect(await count(partition)).toBe(1n);
    });

    it('changes atomically with the other writes of its transaction', async () => {
      const [partition, other] = await openTwo(harness);
      const seen: [bigint, number][] = [];
      let writing = true;
      const reader = (async () => {
        while (writing) {
          const [counter, row] = await other.read((at) => at.getMany([COUNTER, key('row')]));
          seen.push([decodeCounter(counter), Number(rowText(row) ?? 0)]);
          await nextTick();
        }
      })();
      for (let i = 1; i <= 100; i++) {
        await partition.transact(key('row'), async (tx) => {
          tx.add(COUNTER, 1n);
          tx.put(key('row'), bytes(i));
        });
      }
      writing = false;
      await reader;
      expect(seen.filter(([counter, row]) => counter !== BigInt(row))).toEqual([]);
    });

    const readings: [string, (tx: Transaction) => MaybePromise<unknown>][] = [
      ['get', (tx) => tx.get(COUNTER)],
      ['getMany', (tx) => tx.getMany([key('row'), COUNTER])],
      ['scan', (tx) => tx.scan(keysUnder(['counter']), { limit: 10 })],
    ];
    for (const [title, reading] of readings) {
      it(`cannot be read by ${title} after an add of the same transaction or batch`, async () => {
        const partition = await openOne(harness);
        await add(partition, 1n);
        const own = partition.transact(key('queue key'), async (tx) => {
          tx.add(COUNTER, 10n);
          return reading(tx);
        });
        await expect(own).rejects.toThrow(UNREADABLE);
        const [first, second] = await runInOneCommit(partition, async (tx) => tx.add(COUNTER, 100n), reading);
        expect(first?.status).toBe('fulfilled');
        expect(second).toMatchObject({ status: 'rejected', reason: { message: UNREADABLE } });
        expect(await count(partition)).toBe(101n);
      });
    }

    it('shows an unchecked scan the committed sum, without uncommitted adds', async () => {
      const partition = await openOne(harness);
      await add(partition, 5n);
      const scanUnchecked = async (tx: Transaction) => {
        tx.add(COUNTER, 1n);
        tx.add(key('counter', 2), 1n);
        return (await tx.scanUnchecked(keysUnder(['counter']), { limit: 10 })).map(decodeCounter);
      };
      const outcomes = await runInOneCommit(partition, scanUnchecked, scanUnchecked);
      for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'fulfilled', value: { value: [5n] } });
      expect([await count(partition), await count(partition, key('counter', 2))]).toEqual([7n, 2n]);
    });

    it('restarts at zero after a removal, in the order of the writes', async () => {
      const partition = await openOne(harness);
      const remove = async (tx: Transaction) => tx.remove(COUNTER);
      const addTo = (n: bigint) => async (tx: Transaction) => tx.add(COUNTER, n);
      await add(partition, 5n);
      await partition.transact(COUNTER, async (tx) => {
        tx.add(COUNTER, 100n);
        tx.remove(COUNTER);
        tx.add(COUNTER, 20n);
        tx.add(COUNTER, 1n);
      });
      expect(await count(partition)).toBe(21n);
      await runInOneCommit(partition, addTo(100n), remove, addTo(30n), addTo(2n));
      expect(await count(partition)).toBe(32n);
      await runInOneCommit(partition, addTo(100n), remove);
      expect(await partition.read((at) => at.get(COUNTER))).toBeUndefined();
      await runInOneCommit(partition, addTo(100n), remove, addTo(3n), addTo(-3n));
      expect(await partition.read((at) => at.get(COUNTER))).toBeUndefined();
    });

    it('can be read after a put or a removal of the same commit', async () => {
      const partition = await openOne(harness);
      await add(partition, 5n);
      const [, , found] = await runInOneCommit(
        partition,
        async (tx) => tx.remove(COUNTER),
        async (tx) => tx.add(COUNTER, 2n),
        async (tx) => {
          const row = await tx.get(COUNTER);
          return [decodeCounter(row), row?.version];
        },
      );
      const row = await partition.read((at) => at.get(COUNTER));
      expect(found).toMatchObject({ status: 'fulfilled', value: { value: [2n, row?.version] } });
    });

    it('accepts adds with older timestamps, and gives every change a new version', async () => {
      const { engine } = await openStore(harness);
      const timestamps = times(4, () => engine.clock.nextTimestamp());
      const versions: (Timestamp | undefined)[] = [];
      for (const i of [2, 3, 1, 0, 2]) {
        expect(await engine.commit(makeCommit({ writeSets: [addSet(timestamps[i]!, 1n)] }))).toBe('committed');
        versions.push((await readEngine(engine, (at) => at.get(COUNTER)))?.version);
      }
      expect(versions.slice(0, 2)).toEqual([timestamps[2], timestamps[3]]);
      for (const [i, version] of versions.entries()) if (i > 0) expect(version).toBeGreaterThan(versions[i - 1]!);
      expect(decodeCounter(await readEngine(engine, (at) => at.get(COUNTER)))).toBe(5n);
    });

    it('conflicts with a transaction that read it before a concurrent add', async () => {
      const [partition, other] = await openTwo(harness);
      await add(partition, 1n);
      const seen: bigint[] = [];
      await partition.transact(key('queue key'), async (tx) => {
        seen.push(decodeCounter(await tx.get(COUNTER)));
        if (seen.length === 1) await add(other, 1n);
        tx.put(key('row'), bytes(seen.length));
      });
      expect(seen).toEqual([1n, 2n]);
    });

    it('fails the whole commit of an add to a row that is no counter, and no other commit', async () => {
      const partition = await openOne(harness);
      await put(partition, COUNTER, 'no counter');
      const wrong = partition.transact(key('queue key'), async (tx) => {
        tx.put(key('beside'), bytes(1));
        tx.add(COUNTER, 1n);
      });
      await expect(wrong).rejects.toThrow('a row of 10 bytes');
      expect(await get(partition, COUNTER)).toBe('no counter');
      expect(await get(partition, key('beside'))).toBeUndefined();
      const [first, second] = await runInOneCommit(
        partition,
        async (tx) => tx.put(key('counter', 2), bytes('none either')),
        async (tx) => tx.add(key('counter', 2), 1n),
      );
      expect([first?.status, second?.status]).toEqual(['fulfilled', 'rejected']);
      await add(partition, 1n, key('counter', 3));
      expect(await count(partition, key('counter', 3))).toBe(1n);
      await expect(count(partition)).rejects.toThrow(RangeError);
    });

    if (!harness.durable) return;
    it('is durable', async () => {
      const store = await openStore(harness);
      const partition = openPartition(store.engine);
      await Promise.all(times(50, (i) => add(partition, 3n, COUNTER, key('adder', i))));
      await add(partition, 1n, key('counter', 2));
      await add(partition, -1n, key('counter', 2));
      const again = openPartition(await store.reopen!());
      expect(await count(again)).toBe(150n);
      await add(again, -50n);
      expect(await count(again)).toBe(100n);
      expect(await again.read((at) => at.get(key('counter', 2)))).toBeUndefined();
    });
  });
}
