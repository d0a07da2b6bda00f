import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { key, put } from '../conformance/harness.ts';
import { openPartition } from '../transact.ts';
import { CorruptionError, hasValidHeader, isNew } from './corruption.ts';
import { openLmdb } from './engine.ts';

describe('The corruption check of a start', () => {
  let location: string;
  const file = () => join(location, 'data.mdb');
  beforeEach(() => {
    location = mkdtempSync(join(tmpdir(), 'holdfast-damage-'));
  });
  afterEach(() => rmSync(location, { recursive: true, force: true }));

  it('treats an empty folder as new', () => {
    expect(isNew(location)).toBe(true);
  });

  it('accepts what was stored, and refuses a file that was cut to half a page or overwritten', async () => {
    await (await openLmdb({ location })).close();
    expect(isNew(location)).toBe(false);
    expect(hasValidHeader(location)).toBe(true);
    truncateSync(file(), 8_192);
    expect(hasValidHeader(location)).toBe(false);
    writeFileSync(file(), Buffer.alloc(100_000, 7));
    expect(hasValidHeader(location)).toBe(false);
  });

  it('finds a file that is shorter than it was at the last checkpoint, where LMDB would end the process', async () => {
    for (let i = 0; i < 3; i++) {
      const engine = await openLmdb({ location, checkpointBytes: 100_000 });
      const partition = openPartition(engine);
      for (let row = 0; row < 40; row++) await put(partition, key('row', i, row), 'x'.repeat(10_000));
      await engine.close();
    }
    expect(hasValidHeader(location)).toBe(true);
    truncateSync(file(), statSync(file()).size / 2);
    expect(hasValidHeader(location)).toBe(false);
    await expect(openLmdb({ location })).rejects.toThrow(CorruptionError);
  });
});
