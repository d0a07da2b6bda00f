import { describe, expect, it } from 'vitest';
import {
  bytes,
  gate,
  get,
  intercept,
  key,
  nextTicks,
  rowNumber,
  rowText,
  times,
  writesTo,
} from './conformance/harness.ts';
import { openMemory } from './memory/engine.ts';
import { type Commit, OutcomeUnknown, type Partition, Unavailable } from './partition.ts';
import { openPartition } from './transact.ts';

const QUEUE_KEY = key('queue key');
const ROW = key('row');

function increment(partition: Partition, runs?: { count: number }): Promise<{ value: number }> {
  return partition.transact(QUEUE_KEY, async (tx) => {
    if (runs) runs.count++;
    const next = rowNumber(await tx.get(ROW)) + 1;
    tx.put(ROW, bytes(next));
    return next;
  });
}

describe('transact', () => {
  it('runs a function again after a conflict, until it commits', async () => {
    let conflicts = 3;
    const partition = openPartition(openMemory({ inject: () => (conflicts-- > 0 ? 'conflict' : undefined) }));
    const runs = { count: 0 };
    expect((await increment(partition, runs)).value).toBe(1);
    expect(runs.count).toBe(4);
    expect(await get(partition, ROW)).toBe('1');
  });

  it('gives every attempt a new timestamp and returns the last', async () => {
    let conflicts = 2;
    const partition = openPartition(openMemory({ inject: () => (conflicts-- > 0 ? 'conflict' : undefined) }));
    const timestamps: bigint[] = [];
    const { timestamp } = await partition.transact(QUEUE_KEY, async (tx) => {
      timestamps.push(tx.timestamp);
      tx.put(ROW, bytes(1));
    });
    expect(new Set(timestamps).size).toBe(3);
    expect(timestamps.at(-1)).toBe(timestamp);
    expect((await partition.read((at) => at.get(ROW)))?.version).toBe(timestamp);
  });

  it('returns the rows as of the call, though the function writes while they are being read', async () => {
    const partition = openPartition(openMemory());
    const other = key('other');
    await partition.transact(QUEUE_KEY, async (tx) => {
      tx.put(ROW, bytes(1));
      tx.put(other, bytes(2));
    });
    const { value } = await partition.transact(QUEUE_KEY, async (tx) => {
      const asked = tx.getMany([ROW, other]);
      tx.put(ROW, bytes(3));
      return (await asked).map(rowNumber);
    });
    expect(value).toEqual([1, 2]);
  });

  it('rejects a read whose function throws before its first await, and runs the others of the turn', async () => {
    const partition = openPartition(openMemory());
    const thrown = partition.read(() => {
      throw new Error('at once');
    });
    const beside = increment(partition);
    await expect(thrown).rejects.toThrow('at once');
    expect((await beside).value).toBe(1);
    await partition.close();
  });

  it('runs a starved transaction alone', async () => {
    const partition = openPartition(openMemory(), { attemptsMax: 20 });
    let writing = true;
    // Each of these needs one turn, the slow one many: beside them it would never commit.
    const others = times(4, async (number) => {
      while (writing) {
        await partition.transact(key(`other ${number}`), async (tx) => {
          tx.put(ROW, bytes(rowNumber(await tx.get(ROW)) + 1));
        });
        await new Promise(setImmediate);
      }
    });
    const runs = { count: 0 };
    await partition.transact(QUEUE_KEY, async (tx) => {
      runs.count++;
      const found = rowNumber(await tx.get(ROW));
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      tx.put(ROW, bytes(found + 1_000_000));
    });
    writing = false;
    await Promise.all(others);
    expect(runs.count).toBe(6);
    expect(Number(await get(partition, ROW))).toBeGreaterThan(1_000_000);
  });

  it('runs a starved transaction while reads never stop', async () => {
    let conflicts = 7;
    const inject = () => (conflicts-- > 0 ? 'conflict' : undefined);
    const partition = openPartition(openMemory({ inject }), { batchMax: 8 });
    let reading = true;
    const readers = times(64, async () => {
      while (reading) {
        await partition.read((at) => at.get(ROW));
        await new Promise(setImmediate);
      }
    });
    const late = new Promise<'late'>((resolve) => setTimeout(resolve, 5_000, 'late'));
    expect(await Promise.race([increment(partition), late])).toMatchObject({ value: 1 });
    reading = false;
    await Promise.all(readers);
  });

  it('runs transactions while reads never stop', async () => {
    const partition = openPartition(openMemory(), { batchMax: 8 });
    let reading = true;
    const readers = times(64, async () => {
      while (reading) await partition.read((at) => at.get(ROW));
    });
    for (let count = 1; count <= 20; count++) expect((await increment(partition)).value).toBe(count);
    reading = false;
    await Promise.all(readers);
  });

  it('gives every commit a new id', async () => {
    const ids: string[] = [];
    const partition = openPartition(
      openMemory({
        inject(commit) {
          ids.push(commit.id);
          return ids.length < 3 ? 'conflict' : undefined;
        },
      }),
    );
    await increment(partition);
    await increment(partition);
    expect(new Set(ids).size).toBe(4);
  });

  it('gives up as unavailable when a transaction conflicts for ever, and runs the next', async () => {
    let conflicting = true;
    const engine = openMemory({ inject: () => (conflicting ? 'conflict' : undefined) });
    const partition = openPartition(engine, { attemptsMax: 5 });
    const runs = { count: 0 };
    await expect(increment(partition, runs)).rejects.toBeInstanceOf(Unavailable);
    expect(runs.count).toBe(5);
    conflicting = false;
    expect((await increment(partition)).value).toBe(1);
  });

  it('rejects with an unknown outcome and does not run the function again', async () => {
    let unknown = true;
    const partition = openPartition(openMemory({ inject: () => (unknown ? 'unknown' : undefined) }));
    const runs = { count: 0 };
    await expect(increment(partition, runs)).rejects.toBeInstanceOf(OutcomeUnknown);
    await nextTicks(20);
    expect(runs.count).toBe(1);
    unknown = false;
    expect((await increment(partition)).value).toBe(1);
  });

  it('rejects every transaction that wrote, or read a write, in a commit of unknown outcome', async () => {
    const partition = openPartition(
      openMemory({ inject: (commit) => (writesTo(commit, ROW) ? 'unknown' : undefined) }),
    );
    const { promise, resolve } = gate();
    let runs = 0;
    const first = partition.transact(QUEUE_KEY, () => promise);
    const together = [
      increment(partition),
      increment(partition),
      partition.transact(QUEUE_KEY, async (tx) => {
        runs++;
        throw new Error(`found ${rowText(await tx.get(ROW))}`);
      }),
      partition.transact(QUEUE_KEY, async (tx) => {
        runs++;
        return rowText(await tx.get(ROW));
      }),
    ];
    const beside = partition.transact(QUEUE_KEY, async (tx) => {
      throw new Error(`found ${await tx.get(key('elsewhere'))}`);
    });
    const settled = Promise.allSettled([...together, beside]);
    resolve();
    await first;
    const errors = (await settled).map((outcome) => (outcome as PromiseRejectedResult).reason);
    for (const error of errors.slice(0, 4)) expect(error).toBeInstanceOf(OutcomeUnknown);
    expect(errors[4].message).toBe('found undefined');
    expect(runs).toBe(2);
  });

  it('rejects with the error of the engine, and does not run the function again', async () => {
    let full = true;
    const engine = intercept(openMemory(), (_, pass) => (full ? Promise.reject(new Unavailable('full')) : pass()));
    const partition = openPartition(engine);
    const runs = { count: 0 };
    await expect(increment(partition, runs)).rejects.toThrow('full');
    expect(runs.count).toBe(1);
    full = false;
    expect((await increment(partition)).value).toBe(1);
  });

  it('runs a function that threw again when the write that it read did not commit', async () => {
    let conflicts = 1;
    const partition = openPartition(
      openMemory({ inject: (commit) => (writesTo(commit, ROW) && conflicts-- > 0 ? 'conflict' : undefined) }),
    );
    const { promise, resolve } = gate();
    const first = partition.transact(QUEUE_KEY, () => promise);
    let runs = 0;
    const writer = partition.transact(QUEUE_KEY, async (tx) => {
      if (++runs > 1) throw new Error('refused');
      tx.put(ROW, bytes('never'));
    });
    const reader = partition.transact(QUEUE_KEY, async (tx) => {
      const found = rowText(await tx.get(ROW));
      if (found) throw new Error(`found ${found}`);
      return 'nothing there';
    });
    const settled = Promise.allSettled([writer, reader]);
    resolve();
    await first;
    expect((await settled)[0]).toMatchObject({ status: 'rejected', reason: { message: 'refused' } });
    expect((await settled)[1]).toMatchObject({ status: 'fulfilled', value: { value: 'nothing there' } });
  });

  it('checks the rows of get and getMany, once per key, and not those of scanUnchecked', async () => {
    const commits: Commit[] = [];
    const engine = intercept(openMemory(), (data, pass) => {
      commits.push(data);
      return pass();
    });
    const partition = openPartition(engine);
    await increment(partition);
    const row = await partition.read((at) => at.get(ROW));
    await partition.transact(QUEUE_KEY, async (tx) => {
      await tx.get(ROW);
      await tx.getMany([ROW, key('absent')]);
      await tx.scanUnchecked({ from: key('a'), to: key('z') }, { limit: 5 });
      tx.put(key('written'), bytes(1));
      await tx.get(key('written'));
    });
    expect(commits[1]?.checks).toEqual([{ key: ROW, version: row?.version }, { key: key('absent') }]);
    expect(commits[1]?.ranges).toEqual([]);
    expect(commits[1]?.queueKeys).toEqual([QUEUE_KEY]);
  });

  it('does not commit transactions that write nothing', async () => {
    let commits = 0;
    const partition = openPartition(
      intercept(openMemory(), (_, pass) => {
        commits++;
        return pass();
      }),
    );
    await partition.transact(QUEUE_KEY, (tx) => tx.get(ROW));
    expect(commits).toBe(0);
  });

  it('limits the transactions and bytes of a commit', async () => {
    const sizes: number[] = [];
    const engine = intercept(openMemory(), (data, pass) => {
      sizes.push(data.writeSets.length);
      return pass();
    });
    const partition = openPartition(engine, { batchMax: 10 });
    await Promise.all(times(95, () => increment(partition)));
    expect(await get(partition, ROW)).toBe('95');
    expect(Math.max(...sizes)).toBe(10);
    const large = openPartition(engine, { bytesMax: 1000 });
    sizes.length = 0;
    await Promise.all(
      times(20, (i) => large.transact(QUEUE_KEY, async (tx) => tx.put(key('large', i), new Uint8Array(600)))),
    );
    expect(Math.max(...sizes)).toBe(2);
  });

  it('closes when all transactions are done', async () => {
    const partition = openPartition(openMemory());
    const pending = times(10, () => increment(partition));
    await partition.close();
    expect((await Promise.all(pending)).map(({ value }) => value)).toEqual(times(10, (i) => i + 1));
  });
});
