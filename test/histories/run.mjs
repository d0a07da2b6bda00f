/**
 * npm run test:histories [-- --postgres] [--minutes 5]: histories of sixteen clients, on one process with its own store, or on
 * three that share PostgreSQL.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({ options: { postgres: { type: 'boolean' }, minutes: { type: 'string' } } });
const minutes = Number(values.minutes ?? 2);
if (!(minutes >= 0)) throw new Error(`--minutes ${values.minutes} is no number of minutes.`);
const files = values.postgres ? ['test/histories/postgres.test.ts'] : ['test/histories/histories.test.ts'];
const { status } = spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...files], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, ...(values.postgres ? { HOLDFAST_HISTORIES_MINUTES: String(minutes) } : {}) },
});
process.exitCode = status ?? 1;
