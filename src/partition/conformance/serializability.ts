/** Conformance: concurrent transactions have the result of some serial order. */
import { describe, expect, it } from 'vitest';
import { keysUnder } from '../keys.ts';
import { type Partition, Unavailable } from '../partition.ts';
import { barrier, bytes, gate, get, type Harness, key, openTwo, put, rowNumber, rowText, times } from './harness.ts';

const PARENT = key('parent');
const CHILDREN = keysUnder(['child']);

async function createChild(partition: Partition, meanwhile?: () => Promise<unknown>): Promise<string> {
  let wait = meanwhile;
  const { value } = await partition.transact(key('queue key of the child'), async (tx) => {
    if (!(await tx.get(PARENT))) return 'no parent';
    const first = wait;
    wait = undefined;
    await first?.();
    tx.put(key('child', 1), bytes('child'));
    return 'created';
  });
  return value;
}

async function deleteParent(partition: Partition, meanwhile?: () => Promise<unknown>): Promise<string> {
  let wait = meanwhile;
  const { value } = await partition.transact(key('queue key of the parent'), async (tx) => {
    if (!(await tx.get(PARENT))) return 'no parent';
    if ((await tx.scan(CHILDREN, { limit: 1 })).length > 0) return 'not empty';
    const first = wait;
    wait = undefined;
    await first?.();
    tx.remove(PARENT);
    return 'deleted';
  });
  return value;
}

async function orphans(partition: Partition): Promise<boolean> {
  return partition.read(async (at) => !(await at.get(PARENT)) && (await at.scan(CHILDREN, { limit: 1 })).length > 0);
}

async function startOver(partition: Partition): Promise<void> {
  await partition.transact(PARENT, async (tx) => {
    tx.put(PARENT, bytes('parent'));
    tx.remove(key('child', 1));
  });
}

/** Transactions of different queue keys may give up when all write one row: nothing was written, so a retry is safe. */
async function retryUnavailable<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
    }
  }
}

export function serializability(harness: Harness): void {
  // Racing transactions have different queue keys on purpose: the queues must not hide conflicts from validation.
  describe('serializability', () => {
    it('loses no update of a counter', async () => {
      const partitions = await openTwo(harness);
      const counter = key('counter');
      const clients = times(8, async (client) => {
        for (let i = 0; i < 25; i++) {
          await retryUnavailable(() =>
            partitions[client % 2]!.transact(key('client', client), async (tx) =>
              tx.put(counter, bytes(rowNumber(await tx.get(counter)) + 1)),
            ),
          );
        }
      });
      await Promise.all(clients);
      for (const partition of partitions) expect(await get(partition, counter)).toBe('200');
    });

    it('allows no write skew', async () => {
      const partitions = await openTwo(harness);
      const sides = [key('left'), key('right')];
      for (let round = 0; round < 30; round++) {
        await partitions[0].transact(key('queue key'), async (tx) => {
          for (const side of sides) tx.put(side, bytes(0));
        });
        const bothRead = barrier(2);
        const takers = sides.map((side, i) =>
          partitions[i]!.transact(side, async (tx) => {
            const taken = (await tx.getMany(sides)).map(rowNumber);
            await bothRead();
            if (taken.includes(1)) return false;
            tx.put(side, bytes(1));
            return true;
          }),
        );
        const outcomes = (await Promise.all(takers)).map(({ value }) => value);
        expect(outcomes.filter(Boolean)).toHaveLength(1);
      }
    });

    it('lets no write skew through between two that read absent rows', async () => {
      const [one, other] = await openTwo(harness);
      const bothRead = barrier(2);
      const take = async (partition: Partition, mine: string, theirs: string) => {
        const { value } = await partition.transact(key(mine), async (tx) => {
          const found = await tx.get(key(theirs));
          await bothRead();
          if (found) return false;
          tx.put(key(mine), bytes(1));
          return true;
        });
        return value;
      };
      const outcomes = await Promise.all([take(one, 'left', 'right'), take(other, 'right', 'left')]);
      expect(outcomes.filter(Boolean)).toHaveLength(1);
    });

    it('lets no write skew through between two that scanned an empty range', async () => {
      const partitions = await openTwo(harness);
      for (let round = 0; round < 30; round++) {
        const bothRead = barrier(2);
        const takers = partitions.map(async (partition, taker) => {
          const { value } = await partition.transact(key('taker', taker), async (tx) => {
            const found = await tx.scan(keysUnder(['seat', round]), { limit: 1 });
            await bothRead();
            if (found.length > 0) return false;
            tx.put(key('seat', round, taker), bytes(1));
            return true;
          });
          return value;
        });
        expect((await Promise.all(takers)).filter(Boolean)).toHaveLength(1);
      }
    });

    it('refuses a child whose parent was deleted after the read', async () => {
      const [one, other] = await openTwo(harness);
      await startOver(one);
      let deleted: string | undefined;
      const created = await createChild(one, async () => {
        deleted = await deleteParent(other);
      });
      expect([deleted, created]).toEqual(['deleted', 'no parent']);
      expect(await orphans(one)).toBe(false);
    });

    it('refuses to delete a parent that got a child after the scan', async () => {
      const [one, other] = await openTwo(harness);
      await startOver(one);
      let created: string | undefined;
      const deleted = await deleteParent(one, async () => {
        created = await createChild(other);
      });
      expect([created, deleted]).toEqual(['created', 'not empty']);
      expect(await orphans(one)).toBe(false);
    });

    it('leaves no orphan when parents are deleted while children are created', async () => {
      const [one, other] = await openTwo(harness);
      for (let round = 0; round < 30; round++) {
        await startOver(one);
        const bothRead = barrier(2);
        const outcomes = await Promise.all([createChild(one, bothRead), deleteParent(other, bothRead)]);
        expect([
          ['created', 'not empty'],
          ['no parent', 'deleted'],
        ]).toContainEqual(outcomes);
        expect(await orphans(other)).toBe(false);
      }
    });

    it('conflicts if a row that was read was removed and written again', async () => {
      const [one, other] = await openTwo(harness);
      await put(one, key('row'), 'same');
      let runs = 0;
      await one.transact(key('queue key'), async (tx) => {
        await tx.get(key('row'));
        if (++runs > 1) return;
        await other.transact(key('row'), async (tx) => tx.remove(key('row')));
        await put(other, key('row'), 'same');
        tx.put(key('written'), bytes(1));
      });
      expect(runs).toBe(2);
      expect(await get(one, key('written'))).toBeUndefined();
    });

    it('keeps the sum while 2,000 transfers run under 200 queue keys', async () => {
      const partitions = await openTwo(harness);
      const accounts = times(200, (i) => key('account', i));
      await partitions[0].transact(key('queue key'), async (tx) => {
        for (const account of accounts) tx.put(account, bytes(100));
      });
      let running = true;
      const sums = new Set<number>();
      const auditor = (async () => {
        while (running) {
          const rows = await partitions[1].read((at) => at.scan(keysUnder(['account']), { limit: 1000 }));
          sums.add(rows.reduce((sum, row) => sum + rowNumber(row), 0));
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      })();
      let moved = 0;
      const transfers = times(2000, (i) => {
        const from = accounts[(i * 7) % 200]!;
        const to = accounts[(i * 13 + 1) % 200]!;
        return partitions[i % 2]!.transact(from, async (tx) => {
          const [source, target] = await tx.getMany([from, to]);
          if (from === to || rowNumber(source) === 0) return 0;
          tx.put(from, bytes(rowNumber(source) - 1));
          tx.put(to, bytes(rowNumber(target) + 1));
          return 1;
        });
      });
      for (const { value } of await Promise.all(transfers)) moved += value;
      running = false;
      await auditor;
      expect(moved).toBeGreaterThan(1900);
      expect([...sums]).toEqual([20_000]);
      const rows = await partitions[0].read((at) => at.getMany(accounts));
      expect(rows.reduce((sum, row) => sum + rowNumber(row), 0)).toBe(20_000);
    });

    it('does not wait for a transaction of another queue key', async () => {
      const [partition] = await openTwo(harness);
      const { promise, resolve } = gate();
      const slow = partition.transact(key('slow'), async (tx) => {
        await promise;
        tx.put(key('slow'), bytes(1));
      });
      await put(partition, key('fast'), 'done');
      expect(await get(partition, key('slow'))).toBeUndefined();
      resolve();
      await slow;
      expect(rowText(await partition.read((at) => at.get(key('slow'))))).toBe('1');
    });
  });
}
