/** Conformance: transactions that share one commit. */
import { describe, expect, it } from 'vitest';
import type { Commit, Engine, Partition, Timestamp } from '../partition.ts';
import { openPartition } from '../transact.ts';
import {
  bytes,
  gate,
  get,
  type Harness,
  intercept,
  key,
  nextTick,
  nextTicks,
  openStore,
  put,
  rowNumber,
  rowText,
  times,
  writesTo,
} from './harness.ts';

const QUEUE_KEY = key('queue key');

interface CountedPartition {
  partition: Partition;
  beside: Engine;
  commits: Commit[];
}

async function openCounted(harness: Harness): Promise<CountedPartition> {
  const store = await openStore(harness);
  const commits: Commit[] = [];
  const engine = intercept(store.engine, (data, pass) => {
    commits.push(data);
    return pass();
  });
  return { partition: openPartition(engine), beside: await store.beside(), commits };
}

/** A transaction keeps the queue key until `release`, so that the next ones wait in one queue. */
function occupy(partition: Partition): { release: () => void; done: Promise<unknown> } {
  const { promise, resolve } = gate();
  const done = partition.transact(QUEUE_KEY, async (tx) => {
    await promise;
    tx.put(key('occupied'), bytes(1));
  });
  return { release: resolve, done };
}

export function groupCommit(harness: Harness): void {
  describe('transactions that wait for one queue key', () => {
    it('see the writes of those before, 64 in far fewer commits', async () => {
      const { partition, commits } = await openCounted(harness);
      const counter = key('counter');
      const transactions = times(64, () =>
        partition.transact(QUEUE_KEY, async (tx) => {
          const next = rowNumber(await tx.get(counter)) + 1;
          await nextTick();
          tx.put(counter, bytes(next));
          return next;
        }),
      );
      const values = (await Promise.all(transactions)).map(({ value }) => value);
      expect(values).toEqual(times(64, (i) => i + 1));
      expect(await get(partition, counter)).toBe('64');
      expect(commits.length).toBeLessThan(16);
    });

    it('have ascending timestamps, which are the versions of their rows', async () => {
      const { partition } = await openCounted(harness);
      const transactions = times(64, (i) =>
        partition.transact(QUEUE_KEY, async (tx) => {
          tx.put(key('own', i), bytes(i));
          tx.put(key('shared'), bytes(i));
          return { timestamp: tx.timestamp, now: tx.now };
        }),
      );
      const results = await Promise.all(transactions);
      const rows = await partition.read((at) => at.getMany(times(64, (i) => key('own', i))));
      const timestamps = results.map(({ timestamp }) => timestamp);
      expect(results.map(({ value }) => value.timestamp)).toEqual(timestamps);
      expect(rows.map((row) => row?.version)).toEqual(timestamps);
      expect(timestamps.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(timestamps);
      expect(new Set(timestamps).size).toBe(64);
      expect((await partition.read((at) => at.get(key('shared'))))?.version).toBe(timestamps.at(-1));
    });

    it('see the timestamp of an earlier transaction as the version of its row', async () => {
      const { partition } = await openCounted(harness);
      const { release, done } = occupy(partition);
      const writer = partition.transact(QUEUE_KEY, async (tx) => tx.put(key('row'), bytes(1)));
      const reader = partition.transact(QUEUE_KEY, async (tx) => (await tx.get(key('row')))?.version);
      release();
      await done;
      expect((await reader).value).toBe((await writer).timestamp);
    });

    it('commit while one of them throws, and see nothing of its writes', async () => {
      const { partition } = await openCounted(harness);
      const seen: (string | undefined)[] = [];
      const transactions = times(64, (i) =>
        partition.transact(QUEUE_KEY, async (tx) => {
          seen[i] = rowText(await tx.get(key('own', i - 1 < 0 ? 99 : i - 1)));
          tx.put(key('own', i), bytes(i));
          await nextTick();
          if (i % 3 === 1) throw new Error(`refused ${i}`);
        }),
      );
      const outcomes = await Promise.allSettled(transactions);
      const kept = times(64, (i) => (i % 3 === 1 ? undefined : String(i)));
      expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(kept.map((value) => value !== undefined));
      const rows = await partition.read((at) => at.getMany(times(64, (i) => key('own', i))));
      expect(rows.map(rowText)).toEqual(kept);
      expect(seen.slice(1)).toEqual(kept.slice(0, -1));
    });

    const readers: [string, (partition: Partition) => Promise<unknown>][] = [
      [
        'an error that read',
        (partition) =>
          partition.transact(QUEUE_KEY, async (tx) => {
            throw new Error(`found ${rowText(await tx.get(key('row')))}`);
          }),
      ],
      [
        'an error that scanned',
        (partition) =>
          partition.transact(QUEUE_KEY, async (tx) => {
            throw new Error(
              `found ${rowText((await tx.scan({ from: key('row'), to: key('rows') }, { limit: 1 }))[0])}`,
            );
          }),
      ],
      [
        'a result without writes that read',
        (partition) =>
          partition
            .transact(QUEUE_KEY, async (tx) => `found ${rowText((await tx.getMany([key('row')]))[0])}`)
            .then(({ value }) => Promise.reject(new Error(value))),
      ],
    ];
    for (const [title, read] of readers) {
      it(`delay ${title} an uncommitted write until it is durable`, async () => {
        const store = await openStore(harness);
        const events: string[] = [];
        const arrived = gate();
        const held = gate();
        const partition = openPartition(
          intercept(store.engine, async (data, pass) => {
            if (!writesTo(data, key('row'))) return pass();
            arrived.resolve();
            await held.promise;
            const outcome = await pass();
            events.push(outcome);
            return outcome;
          }),
        );
        const { release, done } = occupy(partition);
        const writer = partition.transact(QUEUE_KEY, async (tx) => tx.put(key('row'), bytes('held')));
        const reader = read(partition).catch((error: Error) => events.push(error.message));
        release();
        await arrived.promise;
        await nextTicks(20);
        expect(events).toEqual([]);
        held.resolve();
        await Promise.all([done, writer, reader]);
        expect(events).toEqual(['committed', 'found held']);
      });
    }

    it('do not delay an error that depends on no uncommitted write', async () => {
      const store = await openStore(harness);
      const held = gate();
      const partition = openPartition(
        intercept(store.engine, async (data, pass) => {
          if (writesTo(data, key('row'))) await held.promise;
          return pass();
        }),
      );
      const { release, done } = occupy(partition);
      const writer = partition.transact(QUEUE_KEY, async (tx) => tx.put(key('row'), bytes('held')));
      const refusal = partition.transact(QUEUE_KEY, async (tx) => {
        throw new Error(`found ${await tx.get(key('elsewhere'))}`);
      });
      release();
      await expect(refusal).rejects.toThrow('found undefined');
      held.resolve();
      await Promise.all([done, writer]);
    });

    it('run again together when a row changed that an error depends on besides an uncommitted write', async () => {
      const { partition, beside } = await openCounted(harness);
      const other = openPartition(beside);
      await put(other, key('elsewhere'), 'old');
      const { release, done } = occupy(partition);
      const writer = partition.transact(QUEUE_KEY, async (tx) => tx.put(key('row'), bytes('held')));
      let between: (string | undefined)[] = [];
      let runs = 0;
      const refusal = partition.transact(QUEUE_KEY, async (tx) => {
        const found = (await tx.getMany([key('row'), key('elsewhere')])).map(rowText);
        if (++runs === 1) {
          await put(other, key('elsewhere'), 'new');
          between = (await other.read((at) => at.getMany([key('row'), key('elsewhere')]))).map(rowText);
        }
        throw new Error(found.join());
      });
      release();
      refusal.catch(() => {});
      await Promise.all([done, writer]);
      // Another transaction saw the new row without the uncommitted write: so none may see that write without the new row.
      if (between[0] === undefined) await expect(refusal).rejects.toThrow('held,new');
      else await expect(refusal).rejects.toThrow('held');
    });

    it('all run again after a conflict, and only the last attempt counts', async () => {
      const { partition, beside } = await openCounted(harness);
      const other = openPartition(beside);
      await put(other, key('read'), 1);
      const { release, done } = occupy(partition);
      let disturbed = false;
      const transactions = times(8, (i) =>
        partition.transact(QUEUE_KEY, async (tx) => {
          const found = rowNumber(await tx.get(key('read')));
          const counter = rowNumber(await tx.get(key('counter')));
          if (i === 5 && !disturbed) {
            disturbed = true;
            await put(other, key('read'), 2);
          }
          tx.put(key('counter'), bytes(counter + 1));
          return { found, counter };
        }),
      );
      release();
      await done;
      const results = await Promise.all(transactions);
      expect(results.map(({ value }) => value.counter)).toEqual(times(8, (i) => i));
      expect(results.at(-1)?.value.found).toBe(2);
      expect(await get(partition, key('counter'))).toBe('8');
    });

    it('give every write of a key a new timestamp, also after a removal', async () => {
      const { partition, beside } = await openCounted(harness);
      const partitions = [partition, harness.ownClockPerEngine ? partition : openPartition(beside)];
      const timestamps: Timestamp[] = [];
      for (let i = 0; i < 40; i++) {
        const { timestamp } = await partitions[i % 2]!.transact(key('row'), async (tx) => {
          if (i % 4 === 3) tx.remove(key('row'));
          else tx.put(key('row'), bytes(i));
        });
        timestamps.push(timestamp);
      }
      expect(new Set(timestamps).size).toBe(40);
      expect(timestamps.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(timestamps);
    });
  });
}
