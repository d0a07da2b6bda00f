import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { Key } from '../keys.ts';
import { Generation } from './overlay.ts';
import { RECORDS_AT, Wal } from './wal.ts';
import { encodeRecord } from './wal-record.ts';

const calls = vi.hoisted((): (string | number)[] => []);

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  return {
    ...fs,
    writeSync: (file: number, bytes: Uint8Array, offset: number, length: number, position?: number) => {
      // Preallocation, before a file has its name, writes without a position.
      if (position !== undefined) calls.push(position);
      return fs.writeSync(file, bytes, offset, length, position);
    },
    fdatasync: (file: number, done: (error: Error | null) => void) => {
      calls.push('sync');
      fs.fdatasync(file, done);
    },
  };
});

it('The head of a segment is on disk before its first record is written, so that a record without its head is corruption', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-wal-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const append = (): Promise<unknown> => {
    const generation = new Generation();
    generation.write('key' as Key, 1n, Buffer.from('value'));
    return new Promise((done) => wal.append(encodeRecord(generation.written, undefined), false, done));
  };
  const wal = new Wal(folder, { next: 1 });
  for (let segment = 0; segment < 2; segment++) {
    expect(await append()).toBeNull();
    const second = RECORDS_AT + wal.bytes;
    expect(await append()).toBeNull();
    wal.rotate();
    expect(calls.splice(0)).toEqual([0, 'sync', RECORDS_AT, 'sync', second, 'sync', 0]);
    calls.push(0);
  }
  wal.close();
});
