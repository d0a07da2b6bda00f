/** Conformance: a transaction commits as a whole, or not at all. */
import { describe, expect, it } from 'vitest';
import { keyAfter, keysUnder } from '../keys.ts';
import {
  bytes,
  get,
  type Harness,
  key,
  nextTick,
  openOne,
  openTwo,
  put,
  rowNumber,
  rowText,
  times,
} from './harness.ts';

export function atomicity(harness: Harness): void {
  describe('atomicity', () => {
    it('shows all writes of a transaction at once, or none', async () => {
      const partition = await openOne(harness);
      const keys = times(5, (i) => key('row', i));
      let writing = true;
      const seen: number[][] = [];
      const readers = times(4, async () => {
        while (writing) {
          const rows = await partition.read((at) => at.getMany(keys));
          seen.push(rows.map(rowNumber));
          await nextTick();
        }
      });
      for (let round = 1; round <= 50; round++) {
        await partition.transact(keys[0]!, async (tx) => {
          for (const each of keys) {
            tx.put(each, bytes(round));
            await nextTick();
          }
        });
      }
      writing = false;
      await Promise.all(readers);
      expect(seen.filter((values) => new Set(values).size > 1)).toEqual([]);
    });

    it('writes nothing when the function throws, and rejects with its error', async () => {
      const partition = await openOne(harness);
      await put(partition, key('kept'), 'old');
      const refusal = new Error('refused');
      const outcome = partition.transact(key('queue key'), async (tx) => {
        tx.put(key('new'), bytes(1));
        await nextTick();
        tx.remove(key('kept'));
        throw refusal;
      });
      await expect(outcome).rejects.toBe(refusal);
      expect(await get(partition, key('new'))).toBeUndefined();
      expect(await get(partition, key('kept'))).toBe('old');
    });

    it('rejects with a thrown value that is no Error', async () => {
      const partition = await openOne(harness);
      const refusal = { code: 'refused' };
      const outcome = partition.transact(key('queue key'), () => Promise.reject(refusal));
      await expect(outcome).rejects.toBe(refusal);
    });

    it('runs the next transaction after one that threw', async () => {
      const partition = await openOne(harness);
      const queueKey = key('queue key');
      await expect(partition.transact(queueKey, () => Promise.reject(new Error('refused')))).rejects.toThrow('refused');
      await partition.transact(queueKey, async (tx) => tx.put(queueKey, bytes('written')));
      expect(await get(partition, queueKey)).toBe('written');
    });

    it('discards the writes of the first attempt when the function runs again', async () => {
      const [one, other] = await openTwo(harness);
      await put(one, key('read'), 'before');
      let runs = 0;
      const { value } = await one.transact(key('queue key'), async (tx) => {
        runs++;
        const found = rowText(await tx.get(key('read')));
        if (runs === 1) {
          tx.put(key('first run'), bytes(1));
          tx.remove(key('read'));
          await put(other, key('read'), 'after');
        } else {
          tx.put(key('second run'), bytes(2));
        }
        return { found, own: await tx.get(key('first run')) };
      });
      expect(runs).toBe(2);
      expect(value).toEqual({ found: 'after', own: undefined });
      expect(await get(one, key('first run'))).toBeUndefined();
      expect(await get(one, key('second run'))).toBe('2');
      expect(await get(one, key('read'))).toBe('after');
    });

    it('shows a transaction its own writes', async () => {
      const partition = await openOne(harness);
      await put(partition, key('row', 1), 'old');
      await put(partition, key('row', 2), 'old');
      const { value, timestamp } = await partition.transact(key('row'), async (tx) => {
        tx.put(key('row', 1), bytes('new'));
        tx.remove(key('row', 2));
        tx.put(key('row', 3), bytes('new'));
        return {
          got: await tx.get(key('row', 1)),
          many: (await tx.getMany([key('row', 1), key('row', 2), key('row', 3), key('row', 4)])).map(rowText),
          scanned: (await tx.scan(keysUnder(['row']), { limit: 10 })).map(rowText),
          unchecked: (await tx.scanUnchecked(keysUnder(['row']), { limit: 10 })).map(rowText),
          manyUnchecked: (await tx.getUnchecked([key('row', 1), key('row', 2), key('row', 4)])).map(rowText),
        };
      });
      expect(rowText(value.got)).toBe('new');
      expect(value.got?.version).toBe(timestamp);
      expect(value.many).toEqual(['new', undefined, 'new', undefined]);
      expect(value.scanned).toEqual(['new', 'new']);
      expect(value.unchecked).toEqual(['new', 'new']);
      expect(value.manyUnchecked).toEqual(['new', undefined, undefined]);
    });

    it('keeps the last of several writes to a key', async () => {
      const partition = await openOne(harness);
      const { value } = await partition.transact(key('queue key'), async (tx) => {
        tx.put(key('put last'), bytes(1));
        tx.remove(key('put last'));
        tx.put(key('put last'), bytes(2));
        tx.put(key('removed last'), bytes(1));
        tx.remove(key('removed last'));
        return (await tx.getMany([key('put last'), key('removed last')])).map(rowText);
      });
      expect(value).toEqual(['2', undefined]);
      expect(await get(partition, key('put last'))).toBe('2');
      expect(await get(partition, key('removed last'))).toBeUndefined();
    });

    it('leaves a row that was read unchanged, whatever is read and written later', async () => {
      const partition = await openOne(harness);
      for (let i = 0; i < 10; i++) await put(partition, key('row', i), `value ${i}`);
      const first = await partition.read((at) => at.get(key('row', 0)));
      const rows = await partition.read((at) => at.scan(keysUnder(['row']), { limit: 10 }));
      for (let i = 0; i < 10; i++) await put(partition, key('row', i), `other ${i}`);
      await partition.read((at) => at.scan(keysUnder(['row']), { limit: 10 }));
      expect(rowText(first)).toBe('value 0');
      expect(rows.map(rowText)).toEqual(times(10, (i) => `value ${i}`));
    });

    it('removes an absent row without an error', async () => {
      const partition = await openOne(harness);
      await partition.transact(key('queue key'), async (tx) => tx.remove(key('nothing')));
      expect(await get(partition, key('nothing'))).toBeUndefined();
    });

    it('stores the longest keys', async () => {
      const partition = await openOne(harness);
      const longest = [
        key('a', 'b', 1n << 63n, 0, '\u{ffff}'.repeat(1024)),
        key('a', 'e', 1n << 63n, '\u{ffff}'.repeat(512), '\u{fffe}'.repeat(512)),
        key('a', 'i', 1n << 63n, 0, '\u{ffff}'.repeat(1024), 1n << 63n),
      ];
      await partition.transact(longest[0]!, async (tx) => {
        for (const each of longest) tx.put(each, bytes(each.length));
      });
      for (const each of longest) expect(await get(partition, each)).toBe(String(each.length));
      const rows = await partition.read((at) =>
        at.scan({ from: longest[0]!, to: keyAfter(longest[0]!) }, { limit: 2 }),
      );
      expect(rows.map((row) => row.key)).toEqual([longest[0]]);
    });

    it('stores values from no byte to 2 MiB', async () => {
      const partition = await openOne(harness);
      const values = [0, 1, 4095, 4096, 70_000, 2 * 1024 * 1024].map((length, i) => Buffer.alloc(length, i + 1));
      await partition.transact(key('value'), async (tx) => {
        for (const [i, value] of values.entries()) tx.put(key('value', i), value);
      });
      const rows = await partition.read((at) => at.scan(keysUnder(['value']), { limit: 10 }));
      expect(rows.map((row, i) => Buffer.compare(row.value, values[i]!))).toEqual(values.map(() => 0));
    });
  });
}
