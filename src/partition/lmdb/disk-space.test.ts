import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SpaceGuard } from './disk-space.ts';

const MIB = 1 << 20;
const disk = vi.hoisted(() => ({ freeBytes: 0, isFull: false }));

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  return {
    ...fs,
    statfsSync: () => ({ bsize: 4096, blocks: (1 << 30) / 4096, bavail: disk.freeBytes / 4096 }),
    writeSync: (...words: Parameters<typeof fs.writeSync>) => {
      if (disk.isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      return fs.writeSync(...words);
    },
  };
});

/** A disk of 1 GiB, whose watermark is 64 MiB, with a store of 8 MiB. */
describe('The space guard', () => {
  let folder: string;
  let free: number;
  const file = () => join(folder, 'data.mdb');
  const guard = () => new SpaceGuard(file(), () => ({ end: 8 * MIB, free }));
  const hasReserve = () => existsSync(join(folder, 'ballast'));

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-space-'));
    writeFileSync(file(), Buffer.alloc(8 * MIB));
    disk.isFull = false;
    free = 0;
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('checks a disk with gigabytes to spare at intervals only', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const space = guard();
    disk.freeBytes = 9 * 1024 * MIB;
    expect(space.hasSpaceFor(MIB, 'any')).toBe(true);
    disk.freeBytes = 0;
    expect(space.hasSpaceFor(MIB, 'any')).toBe(true);
    vi.advanceTimersByTime(51);
    expect(space.hasSpaceFor(MIB, 'any')).toBe(false);
    vi.useRealTimers();
  });

  it('lets the store grow by itself while there is ample space, and writes its reserve file', () => {
    disk.freeBytes = 512 * MIB;
    expect(guard().hasSpaceFor(MIB, 'any')).toBe(true);
    expect(statSync(file()).size).toBe(8 * MIB);
    expect(hasReserve()).toBe(true);
  });

  it('fills the file with zeros ahead of its use when space gets low', () => {
    disk.freeBytes = 100 * MIB;
    expect(guard().hasSpaceFor(3 * MIB, 'any')).toBe(true);
    expect(statSync(file()).size).toBeGreaterThanOrEqual(11 * MIB);
  });

  it('refuses writes below the watermark, but not those that free space', () => {
    disk.freeBytes = 65 * MIB;
    expect(guard().hasSpaceFor(2 * MIB, 'any')).toBe(false);
    expect(statSync(file()).size).toBe(8 * MIB);
    expect(guard().hasSpaceFor(2 * MIB, 'frees')).toBe(true);
    expect(statSync(file()).size).toBeGreaterThanOrEqual(10 * MIB);
  });

  it('accepts writes for which deleted rows have left room, down to half of the watermark', () => {
    disk.freeBytes = 60 * MIB;
    expect(guard().hasSpaceFor(MIB, 'any')).toBe(false);
    free = 4 * MIB;
    expect(guard().hasSpaceFor(MIB, 'any')).toBe(true);
    disk.freeBytes = 30 * MIB;
    expect(guard().hasSpaceFor(MIB, 'any')).toBe(false);
  });

  it('deletes its reserve file when the disk is full, and writes it again later', () => {
    disk.freeBytes = 512 * MIB;
    const space = guard();
    space.hasSpaceFor(0, 'any');
    disk.freeBytes = 0;
    expect(space.hasSpaceFor(MIB, 'any')).toBe(false);
    expect(hasReserve()).toBe(false);
    disk.freeBytes = 512 * MIB;
    space.hasSpaceFor(0, 'any');
    expect(hasReserve()).toBe(true);
  });

  it('refuses when the disk turns out to be full after all', () => {
    disk.freeBytes = 100 * MIB;
    disk.isFull = true;
    expect(guard().hasSpaceFor(MIB, 'any')).toBe(false);
    expect(guard().hasSpaceFor(MIB, 'frees')).toBe(false);
    expect(hasReserve()).toBe(false);
  });
});
