/** Fault injection in node:fs: a disk that is full, writes partially, or loses names. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { chunkName, readWhole, writeChunk } from './conformance.ts';
import { NoSpace } from './extents.ts';
import { openLocalExtents } from './local.ts';

const MIB = 1 << 20;
const disk = vi.hoisted(() => ({
  freeBytes: 1 << 30,
  looks: 0,
  writeMax: 0,
  fault: undefined as 'ENOSPC' | 'EDQUOT' | 'EIO' | undefined,
  steps: [] as string[],
}));

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const { promisify } = await import('node:util');
  const whole = promisify(fs.writev);
  return {
    ...fs,
    // For promisify, as the real function has it.
    writev: Object.assign(() => {}, {
      async [promisify.custom](...[descriptor, pieces, position]: Parameters<typeof whole>) {
        if (disk.fault) throw Object.assign(new Error('injected'), { code: disk.fault });
        if (disk.writeMax === 0) return whole(descriptor, pieces, position);
        return whole(descriptor, [Buffer.concat(pieces as Uint8Array[]).subarray(0, disk.writeMax)], position);
      },
    }),
    fdatasync(descriptor: number, done: (error: Error | null) => void) {
      disk.steps.push('data');
      fs.fdatasync(descriptor, done);
    },
  };
});

vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof import('node:fs/promises')>();
  return {
    ...fs,
    async statfs() {
      disk.looks++;
      return { bsize: 4096, blocks: 1 << 21, bavail: Math.floor(disk.freeBytes / 4096) };
    },
    async open(...words: Parameters<typeof fs.open>) {
      disk.steps.push('folder');
      return fs.open(...words);
    },
  };
});

async function opened() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-extents-'));
  const extents = await openLocalExtents({ folder, epoch: 7n });
  onTestFinished(async () => {
    await extents.close();
    await rm(folder, { recursive: true, force: true });
  });
  return extents;
}

describe('Extents on a disk with faults', () => {
  beforeEach(() => Object.assign(disk, { freeBytes: 1 << 30, looks: 0, writeMax: 0, fault: undefined, steps: [] }));

  it('continue after a partial write', async () => {
    const extents = await opened();
    disk.writeMax = 777;
    const chunk = await writeChunk(extents, chunkName(1), randomBytes(200_000), [50_000, 3]);
    expect((await readWhole(extents, chunk)).equals(chunk.bytes)).toBe(true);
  });

  it.each(['ENOSPC', 'EDQUOT'] as const)(
    'answer %s with NoSpace, when an extent is made and when it is written',
    async (code) => {
      const extents = await opened();
      disk.fault = code;
      await expect(extents.begin(chunkName(1), 10)).rejects.toThrow(NoSpace);
      disk.fault = undefined;
      const writer = await extents.begin(chunkName(1), 10);
      disk.fault = code;
      await expect(writer.write([randomBytes(10)])).rejects.toThrow(NoSpace);
      disk.fault = undefined;
      await writeChunk(extents, chunkName(2), randomBytes(10));
    },
  );

  it('pass other errors on unchanged', async () => {
    const extents = await opened();
    const writer = await extents.begin(chunkName(1), 10);
    disk.fault = 'EIO';
    await expect(writer.write([randomBytes(10)])).rejects.toMatchObject({ code: 'EIO' });
  });

  it('leave 128 MiB free, for new chunks and for late bytes', async () => {
    disk.freeBytes = 256 * MIB;
    const extents = await opened();
    const slow = await extents.begin(chunkName(1), 8 * MIB);
    disk.freeBytes = 130 * MIB;
    await expect(extents.begin(chunkName(2), 5 * MIB)).rejects.toThrow(NoSpace);
    await slow.write([randomBytes(MIB)]);
    disk.freeBytes = 128 * MIB;
    const rest = async () => {
      for (let i = 0; i < 7; i++) await slow.write([randomBytes(MIB)]);
    };
    await expect(rest()).rejects.toThrow(NoSpace);
    expect(extents.isLowOnSpace()).toBe(true);
    disk.freeBytes = 144 * MIB;
    await writeChunk(extents, chunkName(3), randomBytes(8 * MIB), [MIB]);
    expect(extents.isLowOnSpace()).toBe(false);
  });

  it('let copies that free space use half of that', async () => {
    const extents = await opened();
    disk.freeBytes = 74 * MIB;
    await expect(extents.begin(chunkName(1), 8 * MIB)).rejects.toThrow(NoSpace);
    const copy = await extents.begin(chunkName(1), 8 * MIB, 'frees');
    for (let i = 0; i < 8; i++) await copy.write([randomBytes(MIB)]);
    await copy.finish();
    disk.freeBytes = 66 * MIB;
    await expect(extents.begin(chunkName(2), 8 * MIB, 'frees')).rejects.toThrow(NoSpace);
  });

  it('call statfs at most once in a few MiB', async () => {
    const extents = await opened();
    for (let n = 0; n < 160; n++) await writeChunk(extents, chunkName(n), randomBytes(100_000), [1000]);
    expect(disk.looks).toBeLessThanOrEqual(6);
  });

  it('sync data and, for a new extent, its name before a chunk is finished', async () => {
    const extents = await opened();
    disk.steps = [];
    const writers = await Promise.all([1, 2, 3].map((n) => extents.begin(chunkName(n), 10)));
    for (const writer of writers) await writer.write([randomBytes(10)]);
    expect(disk.steps).toEqual([]);
    await writers[0]!.finish();
    expect(disk.steps.toSorted()).toEqual(['data', 'folder']);
    await writers[1]!.finish();
    expect(disk.steps.toSorted()).toEqual(['data', 'data', 'folder']);
    await extents.seal(writers[0]!.place.extent);
    await writeChunk(extents, chunkName(4), randomBytes(10));
    expect(disk.steps.toSorted()).toEqual(['data', 'data', 'data', 'folder', 'folder']);
  });
});
