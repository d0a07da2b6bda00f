/** Conformance: a read sees one committed state. */
import { describe, expect, it } from 'vitest';
import type { Partition } from '../partition.ts';
import { openPartition } from '../transact.ts';
import {
  bytes,
  gate,
  type Harness,
  key,
  nextTick,
  openOne,
  openStore,
  openTwo,
  put,
  rowNumber,
  rowText,
  times,
} from './harness.ts';

/** Reads that start before the work and end after it; each must see one state. */
async function amongReads<T>(partition: Partition, work: () => Promise<T>): Promise<T> {
  const { promise, resolve } = gate();
  const readers = times(4, () =>
    partition.read(async (at) => {
      const before = await at.get(key('counter'));
      await promise;
      const after = await at.get(key('counter'));
      expect(after?.version).toBe(before?.version);
    }),
  );
  try {
    return await work();
  } finally {
    resolve();
    await Promise.all(readers);
  }
}

export function reads(harness: Harness): void {
  const { readBack: count = 10_000 } = harness;
  describe('reads', () => {
    it(`sees what was committed before, ${count} times under other reads`, async () => {
      const partition = await openOne(harness);
      const counter = key('counter');
      let stale = 0;
      const line = times(20, (i) => i);
      for (let written = 0; written < count; written += line.length) {
        await amongReads(partition, async () => {
          await Promise.all(
            line.map(async (i) => {
              const { timestamp } = await put(partition, key('own', i), written);
              const row = await partition.read((at) => at.get(key('own', i)));
              if (row?.version !== timestamp || rowNumber(row) !== written) stale++;
            }),
          );
          const { timestamp } = await put(partition, counter, written);
          if ((await partition.read((at) => at.get(counter)))?.version !== timestamp) stale++;
        });
      }
      expect(stale).toBe(0);
    }, 120_000);

    it('finds one row among many that are absent, wherever it stands between them, in any order', async () => {
      const partition = await openOne(harness);
      for (const at of [0, 1, 10, 18, 19]) {
        const keys = times(20, (i) => key('neighbours', at, (i * 7 + 5) % 20));
        const found = (): Promise<(string | undefined)[]> =>
          partition.read(async (snapshot) => (await snapshot.getMany(keys)).map(rowText));
        expect(await found()).toEqual(keys.map(() => undefined));
        const one = key('neighbours', at, at);
        await put(partition, one, 'there');
        expect(await found()).toEqual(keys.map((each) => (each === one ? 'there' : undefined)));
        await partition.transact(one, async (tx) => tx.remove(one));
        expect(await found()).toEqual(keys.map(() => undefined));
      }
    });

    for (const [title, start] of Object.entries(harness.otherWriters ?? {})) {
      it(`sees what ${title} committed before, ${count} times under other reads`, async () => {
        const store = await openStore(harness);
        const partition = openPartition(store.engine);
        const other = await start(store);
        const counter = key('counter');
        let stale = 0;
        try {
          for (let i = 1; i <= count; i++) {
            await amongReads(partition, async () => {
              await other.put(counter, i);
              const [row] = await partition.read((at) => at.getMany([counter]));
              if (rowNumber(row) !== i) stale++;
            });
          }
        } finally {
          await other.end();
        }
        expect(stale).toBe(0);
      }, 300_000);
    }

    it('gives a transaction that waited a snapshot of its own start', async () => {
      const [one, other] = await openTwo(harness);
      const { promise, resolve } = gate();
      const first = one.transact(key('queue key'), async () => promise);
      await nextTick();
      await put(other, key('row'), 'committed');
      const refusal = one.transact(key('queue key'), async (tx) => {
        throw new Error(rowText(await tx.get(key('row'))) ?? 'stale');
      });
      const answer = one.transact(key('queue key'), async (tx) => rowText(await tx.get(key('row'))));
      refusal.catch(() => {});
      resolve();
      await first;
      await expect(refusal).rejects.toThrow('committed');
      expect((await answer).value).toBe('committed');
    });

    it('never shows a torn snapshot to 32 interleaved readers while a writer keeps two rows equal', async () => {
      const [partition, other] = await openTwo(harness);
      const pair = [key('left'), key('right')] as const;
      let writing = true;
      const writer = (async () => {
        for (let i = 1; i <= 300; i++) {
          await other.transact(pair[0], async (tx) => {
            for (const each of pair) tx.put(each, bytes(i));
          });
          await nextTick();
        }
        writing = false;
      })();
      let snapshots = 0;
      const torn: unknown[] = [];
      const readers = times(32, async (reader) => {
        const look = async (at: { get: Transactional['get'] }) => {
          const left = rowNumber(await at.get(pair[0]));
          await nextTick();
          const right = rowNumber(await at.get(pair[1]));
          snapshots++;
          if (left !== right) torn.push([left, right]);
        };
        while (writing) {
          if (reader % 2) await partition.read(look);
          else await partition.transact(key('reader', reader), look);
        }
      });
      await Promise.all([writer, ...readers]);
      expect(snapshots).toBeGreaterThan(50);
      expect(torn).toEqual([]);
    });

    it('does not change the time of a snapshot', async () => {
      const partition = await openOne(harness);
      await partition.read(async (at) => {
        const { now } = at;
        await partition.clock.advance(10_000_000n);
        expect(at.now).toBe(now);
      });
    });
  });
}

type Transactional = Parameters<Parameters<Partition['read']>[0]>[0];
