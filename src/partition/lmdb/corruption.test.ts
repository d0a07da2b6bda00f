import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hasValidHeader, isNew } from './corruption.ts';
import { openLmdb } from './engine.ts';

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
    expect(hasValidHeader(location)).toBe(true);
    truncateSync(file(), 8_192);
    expect(hasValidHeader(location)).toBe(false);
    writeFileSync(file(), Buffer.alloc(100_000, 7));
    expect(hasValidHeader(location)).toBe(false);
  });
});
