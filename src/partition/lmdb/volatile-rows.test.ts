import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { bytes, get, key, put, readEngine, rowText, times } from '../conformance/harness.ts';
import { type Key, type Part, volatileKey, volatileKeysUnder } from '../keys.ts';
import { OutcomeUnknown, type Partition, Unavailable } from '../partition.ts';
import { openPartition } from '../transact.ts';
import { type LmdbOptions, openLmdb } from './engine.ts';
import { dataFile } from './files.ts';
import { openLmdbReadOnly } from './read-only.ts';
import { VolatileRows } from './volatile-rows.ts';
import { RECORDS_AT, SLOTS, segmentFile } from './wal.ts';

const disk = vi.hoisted(() => ({
  syncs: 0,
  failure: undefined as { call: string; code: string } | undefined,
  /** Syncs that wait to be begun; undefined: none waits. */
  held: undefined as (() => void)[] | undefined,
}));

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const failing = (call: string): Error | undefined =>
    disk.failure?.call === call ? Object.assign(new Error(disk.failure.code), { code: disk.failure.code }) : undefined;
  return {
    ...fs,
    writeSync: (file: number, written: Uint8Array, offset: number, length: number, position?: number) => {
      const error = failing('write');
      if (error && position !== undefined && position >= RECORDS_AT) throw error;
      return fs.writeSync(file, written, offset, length, position);
    },
    fdatasync: (file: number, done: (error: Error | null) => void) => {
      disk.syncs++;
      const error = failing('sync');
      if (error) setImmediate(done, error);
      else if (disk.held) disk.held.push(() => fs.fdatasync(file, done));
      else fs.fdatasync(file, done);
    },
    fdatasyncSync: (file: number) => {
      disk.syncs++;
      const error = failing('sync');
      if (error) throw error;
      fs.fdatasyncSync(file);
    },
  };
});

const MARKER = 'a value that is in no file';
const open = (...parts: Part[]): Key => volatileKey(['open', ...parts]);
const OPENS = volatileKeysUnder(['open']);

async function openStore(options: Omit<LmdbOptions, 'location'> = {}) {
  const location = mkdtempSync(join(tmpdir(), 'holdfast-volatile-'));
  const engine = await openLmdb({ location, ...options });
  onTestFinished(async () => {
    disk.failure = undefined;
    for (const begin of disk.held ?? []) begin();
    disk.held = undefined;
    await engine.close();
    rmSync(location, { recursive: true, force: true });
  });
  return { location, engine, partition: openPartition(engine) };
}

const openFile = (partition: Partition, id: number) =>
  partition.transact(key('file'), async (tx) => {
    tx.put(key('file', id), bytes(id));
    tx.put(open(id), bytes(MARKER));
  });

describe('Volatile rows', () => {
  it('are in no file, neither while the store is open nor after checkpoints', async () => {
    const { location, engine, partition } = await openStore({ checkpointBytes: 2_000 });
    for (let id = 0; id < 100; id++) {
      await openFile(partition, id);
      await put(partition, open('alone', id), MARKER);
    }
    for (const file of [...SLOTS.map((slot) => segmentFile(location, slot)), dataFile(location)])
      expect(readFileSync(file).includes(MARKER)).toBe(false);
    const readOnly = openLmdbReadOnly(location);
    expect(await readEngine(readOnly, (at) => at.scan(OPENS, { limit: 1 }))).toEqual([]);
    expect(rowText(await readEngine(readOnly, (at) => at.get(key('file', 99))))).toBe('99');
    await readOnly.close();
    expect(await readEngine(engine, (at) => at.scan(OPENS, { limit: 300 }))).toHaveLength(200);
  });

  it('need no record of the log and no sync', async () => {
    // The clock is reserved in the log as time passes.
    const { engine, partition } = await openStore({ monotonic: () => 0n });
    await put(partition, key('checked'), 1);
    const [syncs, { walBytes }] = [disk.syncs, engine.figures!()];
    for (let id = 0; id < 300; id++) {
      await partition.transact(open(id), async (tx) => {
        await tx.get(key('checked'));
        tx.put(open(id), bytes(id));
        if (id > 0) tx.remove(open(id - 1));
      });
    }
    expect([disk.syncs, engine.figures!().walBytes]).toEqual([syncs, walBytes]);
  });

  it('of a commit that the disk has no room for are not written', async () => {
    const { partition } = await openStore();
    await openFile(partition, 1);
    disk.failure = { call: 'write', code: 'ENOSPC' };
    const refused = partition.transact(key('file'), async (tx) => {
      tx.put(key('file', 2), bytes(2));
      tx.put(open(1), bytes('changed'));
      tx.put(open(2), bytes(MARKER));
      tx.put(open('two', 'new'), bytes(MARKER));
    });
    await expect(refused).rejects.toThrow(Unavailable);
    await put(partition, open(3), 'alone');
    disk.failure = undefined;
    const rows = await partition.read((at) => at.scan(OPENS, { limit: 9 }));
    expect(rows.map(rowText)).toEqual([MARKER, 'alone']);
    await openFile(partition, 2);
    expect(await get(partition, open(2))).toBe(MARKER);
  });

  it('of a commit whose sync failed are never visible, and later commits are refused', async () => {
    const { partition } = await openStore();
    await openFile(partition, 1);
    disk.failure = { call: 'sync', code: 'EIO' };
    await expect(openFile(partition, 2)).rejects.toThrow(OutcomeUnknown);
    await expect(put(partition, open(3), 'alone')).rejects.toThrow(Unavailable);
    expect(partition.isBroken()).toBe(true);
    const rows = await partition.read((at) => at.scan(OPENS, { limit: 9 }));
    expect(rows.map(rowText)).toEqual([MARKER]);
  });

  it('are not decided while a group of logged rows is in flight, whose rows could still be lost', async () => {
    const { partition } = await openStore({ monotonic: () => 0n });
    await openFile(partition, 1);
    const held: (() => void)[] = [];
    disk.held = held;
    // The sync of a writer with readers beside it is in the pool.
    for (let i = 0; i < 3; i++) await get(partition, open(1));
    const logged = openFile(partition, 2);
    while (held.length === 0) await new Promise(setImmediate);
    let isDecided = false;
    const alone = put(partition, open(3), 'alone').then(() => {
      isDecided = true;
    });
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    const shown = async () => (await partition.read((at) => at.scan(OPENS, { limit: 9 }))).map(rowText);
    expect([isDecided, await shown()]).toEqual([false, [MARKER]]);
    disk.held = undefined;
    for (const begin of held) begin();
    await Promise.all([logged, alone]);
    expect(await shown()).toEqual([MARKER, MARKER, 'alone']);
  });

  it('that were removed leave nothing behind once no snapshot shows them', () => {
    const rows = new VolatileRows();
    const all = volatileKeysUnder([]);
    let group = 0;
    const write = (oldest: number, ...writes: [Key, string | undefined][]): number => {
      rows.beginGroup(++group, oldest);
      for (const [at, value] of writes) rows.write(at, BigInt(group), value === undefined ? undefined : bytes(value));
      rows.endGroup();
      return group;
    };
    const shown = (at: number) => [...rows.rowsIn(all, at, false)].map(rowText);
    for (let i = 1; i < 1_000; i++) write(group, [open(i), 'open'], [open(i - 1), undefined]);
    const held = write(group, [open(999), 'changed'], [open('never there'), undefined]);
    write(held, [open(999), 'changed again']);
    write(held, [open(999), undefined]);
    expect([held, held + 1, group].map(shown)).toEqual([['changed'], ['changed again'], []]);
    expect(rows.hasAny(all)).toBe(true);
    write(held);
    expect(shown(held)).toEqual(['changed']);
    write(group);
    expect(rows.hasAny(all)).toBe(false);
  });

  it('do not keep the event loop from other work, however many commits follow one another', async () => {
    // Nothing else waits for the disk: the clock is reserved in the log as time passes.
    const { partition } = await openStore({ monotonic: () => 0n });
    await put(partition, key('logged'), 1);
    let isOver = false;
    let turns = 0;
    const counting = (async () => {
      while (!isOver) {
        await new Promise(setImmediate);
        turns++;
      }
    })();
    await Promise.all(
      times(8, async (client) => {
        for (let i = 0; i < 500; i++) await put(partition, open(client), i);
      }),
    );
    isOver = true;
    await counting;
    expect(turns).toBeGreaterThanOrEqual(30);
  });
});
