import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { get, key, put } from '../conformance/harness.ts';
import type { Key } from '../keys.ts';
import { openPartition } from '../transact.ts';
import { openLmdb } from './engine.ts';
import { Generation } from './overlay.ts';
import { Wal } from './wal.ts';
import { encodeRecord } from './wal-record.ts';

/** The syncs of the log in their order, and how a blocking one behaves. */
const disk = vi.hoisted(() => ({ syncs: [] as ('blocking' | 'pool')[], milliseconds: 0, error: undefined as unknown }));

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  return {
    ...fs,
    fdatasync: (file: number, done: (error: Error | null) => void) => {
      disk.syncs.push('pool');
      fs.fdatasync(file, done);
    },
    fdatasyncSync: (file: number) => {
      disk.syncs.push('blocking');
      if (disk.error) throw disk.error;
      fs.fdatasyncSync(file);
      now += disk.milliseconds;
    },
  };
});

let now = 0;

beforeEach(() => {
  Object.assign(disk, { syncs: [], milliseconds: 0.1, error: undefined });
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-wal-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A log whose head is durable already. */
async function openWal() {
  const wal = new Wal(newFolder(), { next: 1 });
  const append = (isAlone = true): Promise<Error | null> => {
    const generation = new Generation();
    generation.write('key' as Key, 1n, Buffer.from('value'));
    return new Promise((done) => wal.append(encodeRecord(generation.written, undefined), isAlone, done));
  };
  await append();
  disk.syncs = [];
  return { wal, append };
}

describe('The sync of a record', () => {
  it('is on the main thread for a lone writer, and in the pool for others', async () => {
    const { wal, append } = await openWal();
    await append();
    await append(false);
    await append();
    expect(disk.syncs).toEqual(['blocking', 'pool', 'blocking']);
    wal.close();
  });

  it('is in the pool after a long one, the more often the longer that was', async () => {
    const { wal, append } = await openWal();
    for (const milliseconds of [2, 5]) {
      disk.milliseconds = milliseconds;
      await append();
      disk.milliseconds = 0.1;
      for (let i = 0; i < milliseconds * 20; i++) await append();
      const pooled = Array.from({ length: milliseconds * 20 - 1 }, () => 'pool');
      expect(disk.syncs.splice(0)).toEqual(['blocking', ...pooled, 'blocking']);
    }
    wal.close();
  });

  it('fails as one in the pool does: the record is not durable', async () => {
    const { wal, append } = await openWal();
    const before = wal.bytes;
    disk.error = Object.assign(new Error('no'), { code: 'EIO' });
    expect(await append()).toBe(disk.error);
    expect(wal.bytes).toBe(before);
    wal.close();
  });
});

describe('A writer is alone', () => {
  async function open() {
    const engine = await openLmdb({ location: newFolder() });
    const partition = openPartition(engine);
    await put(partition, key('first'), '1');
    disk.syncs = [];
    return { engine, partition };
  }

  it('if no other commit waits and hardly anyone reads', async () => {
    const { partition } = await open();
    for (let i = 0; i < 5; i++) await put(partition, key('a'), `${i}`);
    expect(disk.syncs).toEqual(['blocking', 'blocking', 'blocking', 'blocking', 'blocking']);
    await partition.close();
  });

  it('but not beside others that write, or read', async () => {
    const { partition } = await open();
    await Promise.all(['a', 'b', 'c'].map((name) => put(partition, key(name), '1')));
    expect(disk.syncs).not.toContain('blocking');
    disk.syncs = [];
    for (let i = 0; i < 3; i++) {
      for (let k = 0; k < 3; k++) await get(partition, key('a'));
      await put(partition, key('a'), `${i}`);
    }
    expect(disk.syncs).toEqual(['pool', 'pool', 'pool']);
    await partition.close();
  });

  it('if its sync fails, the outcome is unknown and the engine is broken, as in the pool', async () => {
    const { engine, partition } = await open();
    disk.error = Object.assign(new Error('no'), { code: 'EIO' });
    await expect(put(partition, key('a'), '1')).rejects.toMatchObject({ name: 'OutcomeUnknown' });
    expect(engine.isBroken?.()).toBe(true);
    disk.error = undefined;
    await expect(put(partition, key('a'), '2')).rejects.toMatchObject({ name: 'Unavailable' });
    await partition.close();
  });
});
