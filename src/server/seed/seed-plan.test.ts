import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { planSeed } from './seed-plan.ts';

it('A file whose name is listed among the blobs is not planned: two steps for one blob would race', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ['a.txt', 'b.txt']) writeFileSync(join(folder, name), name);
  const { children } = await planSeed({ containers: { photos: { folder, blobs: { 'a.txt': 'listed' } } } });
  expect(children.map(({ node }) => node.path.join('.'))).toEqual([
    'containers.photos.blobs.a.txt',
    'containers.photos.folder',
  ]);
});
