import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openMemory } from '../partition/memory/engine.ts';
import { openPartition } from '../partition/transact.ts';
import { claimExtents } from './shared-extents.ts';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-shared-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const newStore = () => openPartition(openMemory());

describe('The extents folder of a shared store', () => {
  it('is claimed once, by the first process', async () => {
    const store = newStore();
    const folder = join(newFolder(), 'deep');
    await Promise.all(Array.from({ length: 8 }, () => claimExtents(store, folder)));
    expect(readdirSync(folder)).toEqual(['holdfast-store.json']);
    await claimExtents(store, folder);
  });

  it('is refused without its marker, as when it is not mounted', async () => {
    const store = newStore();
    await claimExtents(store, newFolder());
    const other = newFolder();
    await expect(claimExtents(store, other)).rejects.toThrow('are not in');
    expect(readdirSync(other)).toEqual([]);
  });

  it('is refused if it is that of another store, or has bytes of unknown origin', async () => {
    const folder = newFolder();
    await claimExtents(newStore(), folder);
    writeFileSync(join(folder, '12-1'), 'bytes');
    await expect(claimExtents(newStore(), folder)).rejects.toThrow('of another store');
    const store = newStore();
    await claimExtents(store, newFolder());
    await expect(claimExtents(store, folder)).rejects.toThrow('of another store');
    const strange = newFolder();
    writeFileSync(join(strange, '12-1'), 'bytes');
    await expect(claimExtents(newStore(), strange)).rejects.toThrow('of another store');
    expect(readFileSync(join(folder, '12-1'), 'utf8')).toBe('bytes');
  });

  it('is refused in one line if it cannot be made', async () => {
    const file = join(newFolder(), 'file');
    writeFileSync(file, '');
    await expect(claimExtents(newStore(), join(file, 'below'))).rejects.toThrow('choose another by --extents');
  });

  it('is refused if its marker cannot be read', async () => {
    const folder = newFolder();
    for (const text of ['', '{', '{"format":2,"store":"x"}', 'null']) {
      writeFileSync(join(folder, 'holdfast-store.json'), text);
      await expect(claimExtents(newStore(), folder)).rejects.toThrow('is damaged, or was written by a newer');
    }
  });
});
