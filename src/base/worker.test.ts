import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { workerFile } from './worker.ts';

const root = new URL('../../', import.meta.url).href;

it('finds the worker of a compiled module beside it', () => {
  const url = workerFile(`${root}dist/partition/lmdb.js`, './lmdb-writer.ts');
  expect(url.href).toBe(`${root}dist/partition/lmdb-writer.js`);
});

it('finds the worker of a module that runs from its source in dist', () => {
  const url = workerFile(`${root}src/partition/lmdb.ts`, './lmdb-writer.ts');
  expect(fileURLToPath(url)).toBe(fileURLToPath(`${root}dist/partition/lmdb-writer.js`));
});
