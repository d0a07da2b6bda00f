import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readFolder } from './seed-content.ts';
import type { SeedNode } from './seed-node.ts';

it('The files of a folder are also those that links lead to, but not those in folders that links lead to', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'below'));
  writeFileSync(join(folder, 'below', 'a.txt'), 'a');
  symlinkSync(join(folder, 'below', 'a.txt'), join(folder, 'link.txt'));
  symlinkSync(join(folder, 'absent'), join(folder, 'broken.txt'));
  symlinkSync(folder, join(folder, 'below', 'up'));
  const node = { text: () => folder } as SeedNode;
  expect(readFolder(node, '/', []).map(({ name, source }) => [name, source.length])).toEqual([
    ['below/a.txt', 1],
    ['link.txt', 1],
  ]);
});
