import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { compiledWorkerUrl } from './worker-url.ts';

const root = new URL('../../', import.meta.url).href;

it.each(['build/partition/lmdb/checkpoint.js', 'dist/index.js'])('finds the worker of %s beside it', (file) => {
  const url = compiledWorkerUrl(`${root}${file}`, './checkpoint-worker.ts');
  expect(url.href).toBe(new URL('checkpoint-worker.js', `${root}${file}`).href);
});

it('finds the worker of a module that runs from its source in build', () => {
  const url = compiledWorkerUrl(`${root}src/partition/lmdb/checkpoint.ts`, './checkpoint-worker.ts');
  expect(fileURLToPath(url)).toBe(fileURLToPath(`${root}build/partition/lmdb/checkpoint-worker.js`));
});
