import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openLmdb } from './lmdb.ts';
import { isNew, looksSound } from './lmdb-damage.ts';

describe('The first look at the rows', () => {
  let location: string;
  const file = () => join(location, 'data.mdb');
  beforeEach(() => {
    location = mkdtempSync(join(tmpdir(), 'holdfast-damage-'));
  });
  afterEach(() => rmSync(location, { recursive: true, force: true }));

  it('takes an empty folder for new', () => {
    expect(isNew(location)).toBe(true);
  });

  it('finds what was stored sound, and a file cut to half a page or overwritten not', async () => {
    await (await openLmdb({ location })).close();
    expect(isNew(location)).toBe(false);
    expect(looksSound(location)).toBe(true);
    truncateSync(file(), 8_192);
    expect(looksSound(location)).toBe(false);
    writeFileSync(file(), Buffer.alloc(100_000, 7));
    expect(looksSound(location)).toBe(false);
  });
});
