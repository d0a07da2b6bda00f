/** Conformance: writes of kind max, which do not conflict. */
import { describe, expect, it } from 'vitest';
import { keysUnder } from '../keys.ts';
import type { Commit, Outcome, Partition, Timestamp, Transaction } from '../partition.ts';
import { openPartition } from '../transact.ts';
import { decodeCounter } from '../values.ts';
import {
  bytes,
  get,
  type Harness,
  intercept,
  key,
  makeCommit,
  openOne,
  openStore,
  openTwo,
  put,
  readEngine,
  runInOneCommit,
  times,
} from './harness.ts';

const MAXIMUM = key('maximum', 1);
const UNREADABLE = 'a counter is not read in a transaction';

const greatest = async (partition: Partition, at = MAXIMUM): Promise<bigint> =>
  decodeCounter(await partition.read((snapshot) => snapshot.get(at)));
const max = (partition: Partition, n: bigint, at = MAXIMUM): Promise<{ timestamp: Timestamp }> =>
  partition.transact(at, async (tx) => tx.max(at, n));
const maxSet = (timestamp: Timestamp, n: bigint): Commit['writeSets'][number] => ({
  timestamp,
  writes: [{ kind: 'max', key: MAXIMUM, n }],
});

export function maxima(harness: Harness): void {
  describe('a maximum', () => {
    it('is the greatest of concurrent writes under different queue keys, and no function runs twice', async () => {
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
      const writers = times(64, async (writer) => {
        for (let round = 0; round < 10; round++) {
          await partitions[writer % 2]!.transact(key('writer', writer), async (tx) => {
            runs++;
            tx.max(MAXIMUM, BigInt(((writer * 37 + round * 101) % 640) + 1));
            tx.put(key('own', writer), bytes(round));
          });
        }
      });
      await Promise.all(writers);
      for (const partition of partitions) expect(await greatest(partition)).toBe(640n);
      expect(runs).toBe(640);
      expect([...outcomes]).toEqual(['committed']);
    });

    it('is never lowered, and a write that does not raise it leaves the row as it is', async () => {
      const partition = await openOne(harness);
      await max(partition, 5n);
      const row = await partition.read((at) => at.get(MAXIMUM));
      for (const n of [4n, 5n, 1n]) await max(partition, n);
      expect(await partition.read((at) => at.get(MAXIMUM))).toEqual(row);
      const { timestamp } = await max(partition, 6n);
      expect(await partition.read((at) => at.get(MAXIMUM))).toMatchObject({ version: timestamp });
    });

    it('takes several writes of one transaction, and of transactions that share a commit', async () => {
      const partition = await openOne(harness);
      await runInOneCommit(
        partition,
        async (tx) => {
          tx.max(MAXIMUM, 3n);
          tx.max(MAXIMUM, 9n);
          tx.max(MAXIMUM, 4n);
        },
        async (tx) => tx.max(MAXIMUM, 7n),
      );
      expect(await greatest(partition)).toBe(9n);
    });

    it('has numbers from 1 to 2^63 - 1', async () => {
      const partition = await openOne(harness);
      const most = (1n << 63n) - 1n;
      for (const wrong of [0n, -1n, most + 1n]) await expect(max(partition, wrong)).rejects.toThrow(RangeError);
      await max(partition, 1n);
      await max(partition, 255n);
      await max(partition, 256n);
      expect(await greatest(partition)).toBe(256n);
      await max(partition, most);
      expect(await greatest(partition)).toBe(most);
    });

    it('restarts after a removal, in the order of the writes', async () => {
      const partition = await openOne(harness);
      const remove = async (tx: Transaction) => tx.remove(MAXIMUM);
      const maxTo = (n: bigint) => async (tx: Transaction) => tx.max(MAXIMUM, n);
      await max(partition, 100n);
      await runInOneCommit(partition, maxTo(200n), remove, maxTo(30n), maxTo(2n));
      expect(await greatest(partition)).toBe(30n);
      await partition.transact(MAXIMUM, async (tx) => {
        tx.remove(MAXIMUM);
        tx.max(MAXIMUM, 5n);
      });
      expect(await greatest(partition)).toBe(5n);
      await runInOneCommit(partition, maxTo(200n), remove);
      expect(await partition.read((at) => at.get(MAXIMUM))).toBeUndefined();
    });

    it('cannot be read after a write of the same transaction or batch, and an unchecked scan shows what is committed', async () => {
      const partition = await openOne(harness);
      await max(partition, 1n);
      const reading = async (tx: Transaction) => tx.get(MAXIMUM);
      const [, second] = await runInOneCommit(partition, async (tx) => tx.max(MAXIMUM, 2n), reading);
      expect(second).toMatchObject({ status: 'rejected', reason: { message: UNREADABLE } });
      const { value } = await partition.transact(key('queue key'), async (tx) => {
        tx.max(MAXIMUM, 10n);
        return (await tx.scanUnchecked(keysUnder(['maximum']), { limit: 10 })).map(decodeCounter);
      });
      expect(value).toEqual([2n]);
    });

    it('accepts writes with older timestamps, and gives every change a new version', async () => {
      const { engine } = await openStore(harness);
      const timestamps = times(4, () => engine.clock.nextTimestamp());
      const versions: (Timestamp | undefined)[] = [];
      for (const [i, n] of [
        [2, 10n],
        [3, 20n],
        [1, 30n],
        [0, 40n],
        [0, 40n],
      ] as const) {
        expect(await engine.commit(makeCommit({ writeSets: [maxSet(timestamps[i]!, n)] }))).toBe('committed');
        versions.push((await readEngine(engine, (at) => at.get(MAXIMUM)))?.version);
      }
      const [first, second, third, fourth, fifth] = versions;
      expect([first, second]).toEqual([timestamps[2], timestamps[3]]);
      expect(third).toBeGreaterThan(second!);
      expect(fourth).toBeGreaterThan(third!);
      expect(fifth).toBe(fourth);
      expect(decodeCounter(await readEngine(engine, (at) => at.get(MAXIMUM)))).toBe(40n);
    });

    it('conflicts with a transaction that read it before it was raised, and with no other', async () => {
      const [partition, other] = await openTwo(harness);
      await max(partition, 5n);
      const seen: bigint[] = [];
      await partition.transact(key('queue key'), async (tx) => {
        seen.push(decodeCounter(await tx.get(MAXIMUM)));
        if (seen.length === 1) await max(other, 4n);
        if (seen.length === 1) await max(other, 6n);
        tx.put(key('row'), bytes(seen.length));
      });
      expect(seen).toEqual([5n, 6n]);
    });

    it('fails the whole commit of a write to a row that is no number, or that has adds in the same commit', async () => {
      const partition = await openOne(harness);
      await put(partition, MAXIMUM, 'no number');
      const wrong = partition.transact(key('queue key'), async (tx) => {
        tx.put(key('beside'), bytes(1));
        tx.max(MAXIMUM, 1n);
      });
      await expect(wrong).rejects.toThrow('a row of 9 bytes');
      expect(await get(partition, key('beside'))).toBeUndefined();
      const mixed = partition.transact(key('queue key'), async (tx) => {
        tx.add(key('maximum', 2), 1n);
        tx.max(key('maximum', 2), 1n);
      });
      await expect(mixed).rejects.toThrow('adds or max, not both');
    });

    if (!harness.durable) return;
    it('is durable', async () => {
      const store = await openStore(harness);
      const partition = openPartition(store.engine);
      await Promise.all(
        times(50, (i) => partition.transact(key('writer', i), async (tx) => tx.max(MAXIMUM, BigInt(i + 1)))),
      );
      const again = openPartition(await store.reopen!());
      expect(await greatest(again)).toBe(50n);
      await max(again, 49n);
      await max(again, 51n);
      expect(await greatest(again)).toBe(51n);
    });
  });
}
