/**
 * npm run test:postgres [-- vitest's arguments]: all end-to-end tests and races on three processes that share PostgreSQL. `npm test`
 * leaves out those that take long there.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const words = ['run', '-t', 'on PostgreSQL', 'test/end-to-end', 'test/races', ...process.argv.slice(2)];
const { status } = spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...words], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, HOLDFAST_TEST_ON_POSTGRES: 'everything' },
});
process.exitCode = status ?? 1;
