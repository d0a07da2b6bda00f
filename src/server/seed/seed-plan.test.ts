import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
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

describe('The files of a share', () => {
  const planned = async (files: Record<string, string>, inFolder: readonly string[] = []) => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const name of inFolder) writeFileSync(join(folder, name), name);
    return (await planSeed({ shares: { docs: { folder, files } } })).children.map(({ node }) => node.path.join('.'));
  };

  it.each([
    ['notes/today.txt', 'NOTES/Today.TXT', 'NOTES/Today.TXT and notes/today.txt are one name in a share'],
    ['x', 'x.', 'x. and x are one name in a share'],
    ['a', 'a/b', 'a/b is below a, which is a file'],
    ['a/b', 'A', 'A is a directory of another file'],
  ])('are not %s and %s at once', async (one, other, fault) => {
    await expect(planned({ [one]: '', [other]: '' })).rejects.toThrow(fault);
  });

  it('of a folder have names that a share can have, each of them once', async () => {
    await expect(planned({}, ['aux'])).rejects.toThrow('aux is no name of a file');
    await expect(planned({}, ['a.txt', 'A.TXT'])).rejects.toThrow('are one name in a share');
  });

  it('that are listed come before those of the folder', async () => {
    expect(await planned({ 'A.TXT': 'listed' }, ['a.txt', 'b.txt'])).toEqual([
      'shares.docs.files.A.TXT',
      'shares.docs.folder',
    ]);
  });
});
