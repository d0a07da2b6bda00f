/**
 * npm run test:histories [-- --postgres] [--queue | --files] [--minutes 5]: histories of sixteen clients, of blobs, queues or files, on
 * one process with its own store, or on three that share PostgreSQL.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: {
    postgres: { type: 'boolean' },
    queue: { type: 'boolean' },
    files: { type: 'boolean' },
    minutes: { type: 'string' },
  },
});
const minutes = Number(values.minutes ?? 2);
if (!(minutes >= 0)) throw new Error(`--minutes ${values.minutes} is no number of minutes.`);
if (values.files && values.queue) throw new Error('--files and --queue are two histories.');
const of = values.queue ? 'queue-' : values.files ? 'file-' : '';
const file = `${of}${values.postgres ? 'postgres' : 'histories'}.test.ts`;
// Of blobs and files, only the histories on PostgreSQL have a long form.
const isLong = values.postgres || values.queue;
const { status } = spawnSync(
  process.execPath,
  [
    ...[join(root, 'node_modules/vitest/vitest.mjs'), 'run', `test/histories/${file}`],
    // Renames and snapshots concern all files of a share.
    ...(values.files ? ['test/histories/tree-histories.test.ts'] : []),
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...(isLong ? { HOLDFAST_HISTORIES_MINUTES: String(minutes) } : {}) },
  },
);
process.exitCode = status ?? 1;
