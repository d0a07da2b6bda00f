import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { workerFile } from './worker.ts';

const root = new URL('../../', import.meta.url).href;

it.each(['build/partition/lmdb.js', 'dist/main.js'])('finds the worker of %s beside it', (file) => {
  const url = workerFile(`${root}${file}`, './lmdb-writer.ts');
  expect(url.href).toBe(new URL('lmdb-writer.js', `${root}${file}`).href);
});

it('finds the worker of a module that runs from its source in build', () => {
  const url = workerFile(`${root}src/partition/lmdb.ts`, './lmdb-writer.ts');
  expect(fileURLToPath(url)).toBe(fileURLToPath(`${root}build/partition/lmdb-writer.js`));
});
