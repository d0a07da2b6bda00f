import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeFolderLister } from './folder-names.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

describe('The names in a folder', () => {
  let folder: string;
  const reads: (readonly string[])[] = [];
  let list: () => Promise<readonly string[]>;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
    folder = mkdtempSync(join(tmpdir(), 'holdfast-names-'));
    reads.length = 0;
    list = makeFolderLister(folder, (names) => reads.push(names));
  });
  afterEach(() => {
    vi.useRealTimers();
    rmSync(folder, { recursive: true });
  });
  const make = (name: string) => writeFileSync(join(folder, name), '');
  const names = async () => [...(await list())].sort();

  it('are read a few times, and then not as long as nothing changes', async () => {
    make('1-1');
    await mkdir(join(folder, '1-2'));
    for (let look = 0; look < 25; look++) {
      expect(await names()).toEqual(['1-1']);
      vi.advanceTimersByTime(2 * SECOND);
    }
    expect(reads.length).toBeLessThan(5);
    // Once a minute, whatever the modification time.
    vi.advanceTimersByTime(MINUTE);
    const before = reads.length;
    await names();
    expect(reads.length).toBe(before + 1);
  });

  it('are current after every change', async () => {
    for (let look = 0; look < 10; look++) {
      make(`1-${look}`);
      expect(await names()).toHaveLength(look + 1);
      vi.advanceTimersByTime(20 * SECOND);
      expect(await names()).toHaveLength(look + 1);
    }
    rmSync(join(folder, '1-3'));
    expect(await names()).not.toContain('1-3');
  });

  it('are read again while another change could have the same time', async () => {
    const changed = new Date(1_700_000_000_000);
    make('1-1');
    await utimes(folder, changed, changed);
    expect(await names()).toEqual(['1-1']);
    make('1-2');
    // In the same tick of the file system's clock.
    await utimes(folder, changed, changed);
    expect(await names()).toEqual(['1-1', '1-2']);
  });
});
