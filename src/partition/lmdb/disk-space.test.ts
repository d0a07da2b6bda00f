import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { guardSpace, LOW_SPACE } from './disk-space.ts';

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
  const guard = () => guardSpace(file(), () => ({ end: 8 * MIB, free }));
  const ballast = () => existsSync(join(folder, 'ballast'));

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-space-'));
    writeFileSync(file(), Buffer.alloc(8 * MIB));
    disk.isFull = false;
    free = 0;
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('looks at a disk with gigabytes to spare only now and then', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const space = guard();
    disk.freeBytes = 9 * 1024 * MIB;
    expect(space.lowSpaceFor(MIB, 'any')).toBeUndefined();
    disk.freeBytes = 0;
    expect(space.lowSpaceFor(MIB, 'any')).toBeUndefined();
    vi.advanceTimersByTime(51);
    expect(space.lowSpaceFor(MIB, 'any')).toBe(LOW_SPACE);
    vi.useRealTimers();
  });

  it('lets the store grow by itself while there is plenty of space, and loads its ballast', () => {
    disk.freeBytes = 512 * MIB;
    expect(guard().lowSpaceFor(MIB, 'any')).toBeUndefined();
    expect(statSync(file()).size).toBe(8 * MIB);
    expect(ballast()).toBe(true);
  });

  it('fills the file with zeros ahead of its use when space gets short', () => {
    disk.freeBytes = 100 * MIB;
    expect(guard().lowSpaceFor(3 * MIB, 'any')).toBeUndefined();
    expect(statSync(file()).size).toBeGreaterThanOrEqual(11 * MIB);
  });

  it('refuses writes below the watermark, but not those that free space', () => {
    disk.freeBytes = 65 * MIB;
    expect(guard().lowSpaceFor(2 * MIB, 'any')?.message).toContain('nearly full');
    expect(statSync(file()).size).toBe(8 * MIB);
    expect(guard().lowSpaceFor(2 * MIB, 'frees')).toBeUndefined();
    expect(statSync(file()).size).toBeGreaterThanOrEqual(10 * MIB);
  });

  it('takes writes for which deleted rows have left room, down to half of the watermark', () => {
    disk.freeBytes = 60 * MIB;
    expect(guard().lowSpaceFor(MIB, 'any')).toBeDefined();
    free = 4 * MIB;
    expect(guard().lowSpaceFor(MIB, 'any')).toBeUndefined();
    disk.freeBytes = 30 * MIB;
    expect(guard().lowSpaceFor(MIB, 'any')).toBeDefined();
  });

  it('gives its ballast up when the disk is full, and takes it again later', () => {
    disk.freeBytes = 512 * MIB;
    const space = guard();
    space.lowSpaceFor(0, 'any');
    disk.freeBytes = 0;
    expect(space.lowSpaceFor(MIB, 'any')).toBeDefined();
    expect(ballast()).toBe(false);
    disk.freeBytes = 512 * MIB;
    space.lowSpaceFor(0, 'any');
    expect(ballast()).toBe(true);
  });

  it('refuses when the disk turns out to be full after all', () => {
    disk.freeBytes = 100 * MIB;
    disk.isFull = true;
    expect(guard().lowSpaceFor(MIB, 'any')).toBeDefined();
    expect(guard().lowSpaceFor(MIB, 'frees')).toBeDefined();
    expect(ballast()).toBe(false);
  });
});
