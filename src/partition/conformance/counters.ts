import { describe, expect, it } from 'vitest';
import { type Key, keysUnder } from '../keys.ts';
import {
  type Commit,
  decodeCounter,
  type Outcome,
  type Partition,
  type Timestamp,
  type Transaction,
} from '../partition.ts';
import { openPartition } from '../transact.ts';
import {
  bytes,
  gate,
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
  times,
} from './harness.ts';

const COUNTER = key('counter', 1);
const UNREADABLE = 'a counter is not read in a transaction';

const count = async (partition: Partition, at = COUNTER): Promise<bigint> =>
  decodeCounter(await partition.read((snapshot) => snapshot.get(at)));
const add = (partition: Partition, n: bigint, at = COUNTER, anchor: Key = at): Promise<{ timestamp: Timestamp }> =>
  partition.transact(anchor, async (tx) => tx.add(at, n));
const adding = (stamp: Timestamp, n: bigint, at = COUNTER): Commit['writeSets'][number] => ({
  timestamp: stamp,
  writes: [{ kind: 'add', key: at, n }],
});

/** Bodies that run one after another over one view, and go as one commit. */
async function runInOneCommit(partition: Partition, ...bodies: ((tx: Transaction) => Promise<unknown>)[]) {
  const { promise, resolve } = gate();
  const first = partition.transact(key('together'), () => promise);
  const settled = Promise.allSettled(bodies.map((body) => partition.transact(key('together'), body)));
  resolve();
  await first;
  return settled;
}

export function counters(harness: Harness): void {
  describe('a counter', () => {
    it('holds the sum of what bodies on different anchors add at the same time, and none of them runs twice', async () => {
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
      it(`holds what ${title} adds meanwhile, and no body runs twice`, async () => {
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

    it('takes what a body adds in several steps, and what bodies of one commit add', async () => {
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

    it('reads as the sum as soon as an add was answered', async () => {
      const [partition, other] = await openTwo(harness);
      for (let i = 1n; i <= 200n; i++) {
        await add(partition, 1n);
        expect([await count(partition), await count(other)]).toEqual([i, i]);
      }
      const rows = await partition.read((at) => at.scan(keysUnder(['counter']), { limit: 10 }));
      expect(rows.map(decodeCounter)).toEqual([200n]);
    });

    it('is absent at nothing, and has no row again when it comes back to zero', async () => {
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

    it('counts exactly from -2^63 to 2^63 - 1, and takes no number beyond', async () => {
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

    it('takes nothing from a body that throws, alone or among others', async () => {
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

    it('takes nothing from a commit that conflicts', async () => {
      const [partition, other] = await openTwo(harness);
      await put(partition, key('read'), 'before');
      let runs = 0;
      await partition.transact(key('anchor'), async (tx) => {
        await tx.get(key('read'));
        tx.add(COUNTER, 1n);
        tx.put(key('beside'), bytes(1));
        if (++runs === 1) await put(other, key('read'), 'after');
      });
      expect(runs).toBe(2);
      expect(await count(partition)).toBe(1n);
    });

    it('changes in the same commit as what the body writes besides', async () => {
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

    const readings: [string, (tx: Transaction) => Promise<unknown>][] = [
      ['get', (tx) => tx.get(COUNTER)],
      ['getMany', (tx) => tx.getMany([key('row'), COUNTER])],
      ['scan', (tx) => tx.scan(keysUnder(['counter']), { limit: 10 })],
    ];
    for (const [title, reading] of readings) {
      it(`is not to be read by ${title} in a body that added to it, or behind one`, async () => {
        const partition = await openOne(harness);
        await add(partition, 1n);
        const own = partition.transact(key('anchor'), async (tx) => {
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

    it('shows a glance what was committed, without what is being added', async () => {
      const partition = await openOne(harness);
      await add(partition, 5n);
      const glance = async (tx: Transaction) => {
        tx.add(COUNTER, 1n);
        tx.add(key('counter', 2), 1n);
        return (await tx.scanUnchecked(keysUnder(['counter']), { limit: 10 })).map(decodeCounter);
      };
      const outcomes = await runInOneCommit(partition, glance, glance);
      for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'fulfilled', value: { value: [5n] } });
      expect([await count(partition), await count(partition, key('counter', 2))]).toEqual([7n, 2n]);
    });

    it('can be removed; what is added after that counts from nothing, and what was added before is gone', async () => {
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

    it('is known to the bodies of the commit that put or removed it', async () => {
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

    it('takes adds whose stamps come late, and gives every change a version of its own', async () => {
      const { engine } = await openStore(harness);
      const stamps = times(4, () => engine.clock.nextTimestamp());
      const versions: (Timestamp | undefined)[] = [];
      for (const i of [2, 3, 1, 0, 2]) {
        expect(await engine.commit(makeCommit({ writeSets: [adding(stamps[i]!, 1n)] }))).toBe('committed');
        versions.push((await readEngine(engine, (at) => at.get(COUNTER)))?.version);
      }
      expect(versions.slice(0, 2)).toEqual([stamps[2], stamps[3]]);
      for (const [i, version] of versions.entries()) if (i > 0) expect(version).toBeGreaterThan(versions[i - 1]!);
      expect(decodeCounter(await readEngine(engine, (at) => at.get(COUNTER)))).toBe(5n);
    });

    it('runs a body again that had read it, once somebody added to it', async () => {
      const [partition, other] = await openTwo(harness);
      await add(partition, 1n);
      const seen: bigint[] = [];
      await partition.transact(key('anchor'), async (tx) => {
        seen.push(decodeCounter(await tx.get(COUNTER)));
        if (seen.length === 1) await add(other, 1n);
        tx.put(key('row'), bytes(seen.length));
      });
      expect(seen).toEqual([1n, 2n]);
    });

    it('leaves a row alone that is none, with everything else in that commit, and others go on', async () => {
      const partition = await openOne(harness);
      await put(partition, COUNTER, 'no counter');
      const wrong = partition.transact(key('anchor'), async (tx) => {
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
    it('is there when the store is opened again, and counts on', async () => {
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
