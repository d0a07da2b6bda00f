/** Conformance: volatile rows take part in commits, checks and snapshots as all others do, and are not durable. */
import { describe, expect, it } from 'vitest';
import { type Key, keysUnder, type Part, prefixEnd, volatileKey, volatileKeysUnder } from '../keys.ts';
import type { Page, PagedSnapshot, Partition, Row, Snapshot } from '../partition.ts';
import { openPartition } from '../transact.ts';
import { decodeCounter } from '../values.ts';
import {
  barrier,
  bytes,
  get,
  type Harness,
  key,
  makeCommit,
  openOne,
  openStore,
  openTwo,
  put,
  readEngine,
  rowNumber,
  rowText,
  times,
} from './harness.ts';

const open = (...parts: Part[]): Key => volatileKey(['open', ...parts]);
const OPENS = volatileKeysUnder(['open']);
const FILE = key('file');
const EVERYTHING = { from: key(), to: prefixEnd(key()) };

const texts = (rows: readonly (Row | undefined)[]): (string | undefined)[] => rows.map(rowText);

/** Opens the file unless another transaction has changed it; `meanwhile` runs once, between the reads and the commit. */
async function openFile(partition: Partition, id: number, meanwhile?: () => Promise<unknown>): Promise<string> {
  let wait = meanwhile;
  const { value } = await partition.transact(open(id), async (tx) => {
    if (rowText(await tx.get(FILE)) !== 'created') return 'changed';
    const others = await tx.scan(OPENS, { limit: 1 });
    const first = wait;
    wait = undefined;
    await first?.();
    if (others.length > 0) return 'held by another';
    tx.put(open(id), bytes('exclusive'));
    return 'opened';
  });
  return value;
}

/** Changes the file unless it is open. */
async function changeFile(partition: Partition, meanwhile?: () => Promise<unknown>): Promise<string> {
  let wait = meanwhile;
  const { value } = await partition.transact(FILE, async (tx) => {
    const others = await tx.scan(OPENS, { limit: 1 });
    const first = wait;
    wait = undefined;
    await first?.();
    if (others.length > 0) return 'open';
    tx.put(FILE, bytes('changed'));
    return 'changed';
  });
  return value;
}

async function startOver(partition: Partition): Promise<void> {
  await partition.transact(FILE, async (tx) => {
    tx.put(FILE, bytes('created'));
    for (const row of await tx.scan(OPENS, { limit: 10 })) tx.remove(row.key);
  });
}

export function volatileRows(harness: Harness): void {
  describe('volatile rows', () => {
    it('are read as all others, one by one, many at once, in scans and in pages, and come after them', async () => {
      const partition = await openOne(harness);
      const { timestamp } = await partition.transact(FILE, async (tx) => {
        for (const i of [3, 1, 2]) tx.put(open(i), bytes(i));
        tx.put(FILE, bytes('file'));
      });
      await partition.read(async (at) => {
        expect(await at.get(open(2))).toEqual({ key: open(2), version: timestamp, value: Buffer.from('2') });
        expect(texts(await at.getMany([open(3), FILE, open(4)]))).toEqual(['3', 'file', undefined]);
        const many = [FILE, ...times(10, (i) => open(i)), key('none')];
        expect(texts(await at.getMany(many)).flatMap((text) => text ?? [])).toEqual(['file', '1', '2', '3']);
        expect(texts(await at.scan(OPENS, { limit: 2 }))).toEqual(['1', '2']);
        expect(texts(await at.scan(OPENS, { limit: 2, reverse: true }))).toEqual(['3', '2']);
        expect(texts(await at.scan(EVERYTHING, { limit: 3 }))).toEqual(['file', '1', '2']);
        expect(texts(await at.scan(EVERYTHING, { limit: 9, reverse: true }))).toEqual(['3', '2', '1', 'file']);
        expect(texts(await at.scan(EVERYTHING, { limit: 9, bytesMax: 5 }))).toEqual(['file', '1']);
        expect(await allPages(at)).toEqual(['file', '1', '2', '3']);
      });
      await partition.transact(FILE, async (tx) => tx.remove(open(2)));
      expect(texts(await partition.read((at) => at.scan(OPENS, { limit: 9 })))).toEqual(['1', '3']);
    });

    it('are seen by their own transaction and by the next of its batch', async () => {
      const partition = await openOne(harness);
      const seen = await Promise.all(
        times(5, (i) =>
          partition.transact(FILE, async (tx) => {
            tx.put(open('count'), bytes(rowNumber(await tx.get(open('count'))) + 1));
            tx.put(open('row', i), bytes(i));
            return rowNumber(await tx.get(open('count')));
          }),
        ),
      );
      expect(seen.map(({ value }) => value)).toEqual([1, 2, 3, 4, 5]);
      expect(await get(partition, open('count'))).toBe('5');
    });

    it('are committed with logged rows or not at all, whichever of the two a check fails on', async () => {
      const { engine } = await openStore(harness);
      const partition = openPartition(engine);
      await put(partition, FILE, 'file');
      await put(partition, open(1), 'open');
      const writes = [FILE, open(1), open(2), key('other')].map((at) => ({
        kind: 'put' as const,
        key: at,
        value: bytes('new'),
      }));
      const [file, opened] = await readEngine(engine, (at) => at.getMany([FILE, open(1)]));
      const commit = (...checks: { key: Key; version?: bigint }[]) =>
        engine.commit(
          makeCommit({ checks, writeSets: [{ timestamp: engine.clock.nextTimestamp(), writes: writes.slice() }] }),
        );
      const state = () =>
        readEngine(engine, async (at) => texts(await at.getMany([FILE, key('other'), open(1), open(2)])));
      const fileRead = { key: FILE, version: file!.version };
      const openRead = { key: open(1), version: opened!.version };
      expect(await commit({ key: FILE, version: file!.version - 1n }, openRead)).toBe('conflict');
      expect(await commit(fileRead, { key: open(1), version: opened!.version - 1n })).toBe('conflict');
      expect(await commit(fileRead, { key: open(1) })).toBe('conflict');
      expect(await commit(fileRead, openRead, { key: open(2), version: 1n })).toBe('conflict');
      expect(await state()).toEqual(['file', undefined, 'open', undefined]);
      expect(await commit(fileRead, openRead, { key: open(2) }, { key: key('other') })).toBe('committed');
      expect(await state()).toEqual(['new', 'new', 'new', 'new']);
    });

    it('make a commit a conflict whose timestamp is not above their version', async () => {
      const { engine } = await openStore(harness);
      const timestamps = times(2, () => engine.clock.nextTimestamp());
      const write = (timestamp: bigint) =>
        engine.commit(
          makeCommit({ writeSets: [{ timestamp, writes: [{ kind: 'put', key: open(1), value: bytes(1) }] }] }),
        );
      expect(await write(timestamps[1]!)).toBe('committed');
      expect(await write(timestamps[0]!)).toBe('conflict');
    });

    it('refuse a transaction that read one before another removed it, and wrote it again', async () => {
      const [one, other] = await openTwo(harness);
      await put(one, open(1), 'same');
      let runs = 0;
      await one.transact(FILE, async (tx) => {
        await tx.get(open(1));
        if (++runs > 1) return;
        await other.transact(open(1), async (tx) => tx.remove(open(1)));
        await put(other, open(1), 'same');
        tx.put(FILE, bytes(1));
      });
      expect(runs).toBe(2);
      expect(await get(one, FILE)).toBeUndefined();
    });

    it('refuse a transaction that found one absent which another has made', async () => {
      const [one, other] = await openTwo(harness);
      let runs = 0;
      const { value } = await one.transact(FILE, async (tx) => {
        const found = await tx.get(open(1));
        if (++runs === 1) await put(other, open(1), 'there');
        tx.put(FILE, bytes(runs));
        return rowText(found);
      });
      expect([value, runs]).toEqual(['there', 2]);
    });

    it('refuse an open of a file that was changed after the read', async () => {
      const [one, other] = await openTwo(harness);
      await startOver(one);
      let changed: string | undefined;
      const opened = await openFile(one, 1, async () => {
        changed = await changeFile(other);
      });
      expect([changed, opened]).toEqual(['changed', 'changed']);
      expect(await one.read((at) => at.scan(OPENS, { limit: 1 }))).toEqual([]);
    });

    it('refuse a change of a file that was opened after the scan', async () => {
      const [one, other] = await openTwo(harness);
      await startOver(one);
      let opened: string | undefined;
      const changed = await changeFile(one, async () => {
        opened = await openFile(other, 1);
      });
      expect([opened, changed]).toEqual(['opened', 'open']);
      expect(await get(one, FILE)).toBe('created');
    });

    it('let exactly one of two succeed that exclude each other', async () => {
      const [one, other] = await openTwo(harness);
      for (let round = 0; round < 30; round++) {
        await startOver(one);
        const bothRead = barrier(2);
        const outcomes = await Promise.all([openFile(one, 1, bothRead), changeFile(other, bothRead)]);
        expect([
          ['opened', 'open'],
          ['changed', 'changed'],
        ]).toContainEqual(outcomes);
        await startOver(other);
        const bothScanned = barrier(2);
        const opens = await Promise.all([openFile(one, 1, bothScanned), openFile(other, 2, bothScanned)]);
        expect(opens.toSorted()).toEqual(['held by another', 'opened']);
      }
    });

    it('are shown by a snapshot as they were, together with the logged rows of the same commits', async () => {
      const { engine } = await openStore(harness);
      const partition = openPartition(engine);
      const write = (n: number) =>
        partition.transact(FILE, async (tx) => {
          tx.put(FILE, bytes(n));
          tx.put(open('last'), bytes(n));
          tx.put(open('each', n), bytes(n));
          if (n > 0) tx.remove(open('each', n - 1));
        });
      const shown = async (at: Snapshot) => ({
        logged: rowText(await at.get(FILE)),
        last: rowText(await at.get(open('last'))),
        each: texts(await at.scan(volatileKeysUnder(['open', 'each']), { limit: 10 })),
      });
      const held = [];
      for (let n = 0; n < 20; n++) {
        await write(n);
        const at = engine.snapshot();
        // The first read begins the snapshot.
        await at.get(FILE);
        if (n % 3 === 0) held.push({ at, n });
        else at.end();
        await put(partition, open('alone', n), n);
      }
      for (const { at, n } of held.toReversed()) {
        expect(await shown(at)).toEqual({ logged: `${n}`, last: `${n}`, each: [`${n}`] });
        at.end();
      }
      await write(20);
      expect(await readEngine(engine, shown)).toEqual({ logged: '20', last: '20', each: ['20'] });
    });

    it('keep the sum of logged and volatile balances while transfers run under many queue keys', async () => {
      const partitions = await openTwo(harness);
      const accounts = times(20, (i) => (i % 2 ? key('account', i) : volatileKey(['account', i])));
      await partitions[0].transact(FILE, async (tx) => {
        for (const account of accounts) tx.put(account, bytes(100));
      });
      const ranges = [keysUnder(['account']), volatileKeysUnder(['account'])];
      const sums = new Set<number>();
      let running = true;
      const auditor = (async () => {
        while (running) {
          const rows = await partitions[1].read((at) =>
            Promise.all(ranges.map((range) => at.scan(range, { limit: 100 }))),
          );
          sums.add(rows.flat().reduce((sum, row) => sum + rowNumber(row), 0));
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      })();
      await Promise.all(
        times(400, (i) => {
          const from = accounts[(i * 7) % 20]!;
          const to = accounts[(i * 13 + 1) % 20]!;
          return partitions[i % 2]!.transact(from, async (tx) => {
            const [source, target] = await tx.getMany([from, to]);
            if (from === to || rowNumber(source) === 0) return;
            tx.put(from, bytes(rowNumber(source) - 1));
            tx.put(to, bytes(rowNumber(target) + 1));
          });
        }),
      );
      running = false;
      await auditor;
      expect([...sums]).toEqual([2_000]);
    });

    it('can be counters and maxima, which conflict with nothing', async () => {
      const [one, other] = await openTwo(harness);
      await Promise.all(
        times(20, (i) =>
          [one, other][i % 2]!.transact(key('client', i), async (tx) => {
            tx.add(open('count'), 2n);
            tx.max(open('greatest'), BigInt(1 + i));
            if (i % 4 === 0) tx.put(key('row', i), bytes(i));
          }),
        ),
      );
      const rows = await one.read((at) => at.getMany([open('count'), open('greatest')]));
      expect(rows.map(decodeCounter)).toEqual([40n, 20n]);
    });

    if (!harness.durable) return;
    it('are gone when the store is opened again, and the logged rows of their commits are not', async () => {
      const store = await openStore(harness);
      const before = openPartition(store.engine);
      for (let n = 0; n < 50; n++) {
        await before.transact(FILE, async (tx) => {
          tx.put(open(n), bytes(n));
          tx.put(key('row', n), bytes(n));
        });
        await put(before, open('alone', n), n);
      }
      const after = openPartition(await store.reopen!());
      const logged = await after.read((at) => at.scan(keysUnder(['row']), { limit: 100 }));
      expect(logged.map(rowNumber)).toEqual(times(50, (n) => n));
      const found = await after.read((at) => at.scan(OPENS, { limit: 200 }));
      // Where processes share the store, the rows belong to all of them.
      if (harness.isShared) expect(found).toHaveLength(100);
      else expect(found).toEqual([]);
      await put(after, open(7), 'again');
      expect(await get(after, open(7))).toBe('again');
    });
  });
}

async function allPages(at: PagedSnapshot) {
  const found: (string | undefined)[] = [];
  let from: Key | undefined = EVERYTHING.from;
  while (from !== undefined) {
    const page: Page = await at.page({ from, to: EVERYTHING.to }, { limit: 2 });
    found.push(...texts(page.rows));
    from = page.next;
  }
  return found;
}
