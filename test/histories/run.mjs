/**
 * npm run test:histories [-- --postgres] [--queue] [--minutes 5]: histories of sixteen clients, of blobs or of queues, on one
 * process with its own store, or on three that share PostgreSQL.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: { postgres: { type: 'boolean' }, queue: { type: 'boolean' }, minutes: { type: 'string' } },
});
const minutes = Number(values.minutes ?? 2);
if (!(minutes >= 0)) throw new Error(`--minutes ${values.minutes} is no number of minutes.`);
const file = `${values.queue ? 'queue-' : ''}${values.postgres ? 'postgres' : 'histories'}.test.ts`;
// Of blobs, only the histories on PostgreSQL have a long form.
const isLong = values.postgres || values.queue;
const { status } = spawnSync(
  process.execPath,
  [join(root, 'node_modules/vitest/vitest.mjs'), 'run', `test/histories/${file}`],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...(isLong ? { HOLDFAST_HISTORIES_MINUTES: String(minutes) } : {}) },
  },
);
process.exitCode = status ?? 1;
