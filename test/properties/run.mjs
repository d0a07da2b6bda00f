/**
 * npm run test:properties [-- --rounds 5 --seed 7 --only <part of a path>]: the test files with properties, each round with another seed. `npm test`
 * always takes the same one.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const SEEDS = 2 ** 31;
const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seed: { type: 'string' },
    only: { type: 'string', default: '' },
  },
});
const rounds = Number(values.rounds);
const first = Number(values.seed ?? Math.floor(Math.random() * SEEDS));
if (!(rounds >= 1)) throw new Error(`--rounds ${values.rounds} is no number of rounds.`);
if (!Number.isInteger(first)) throw new Error(`--seed ${values.seed} is no whole number.`);

const files = ['src', 'test']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  )
  .filter((file) => file.endsWith('.test.ts') && file.includes(values.only))
  .filter((file) => readFileSync(join(root, file), 'utf8').includes("from 'fast-check'"));

const failed = [];
for (let seed = first; seed < first + rounds; seed++) {
  console.log(`seed ${seed}`);
  const { status, signal } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--reporter=dot', ...files],
    { cwd: root, stdio: 'inherit', env: { ...process.env, HOLDFAST_PROPERTY_SEED: String(seed) } },
  );
  if (signal) break;
  if (status !== 0) failed.push(seed);
}
if (failed.length > 0) {
  console.log(`failed with ${failed.map((seed) => `--rounds 1 --seed ${seed}`).join(', ')}`);
  process.exitCode = 1;
}
