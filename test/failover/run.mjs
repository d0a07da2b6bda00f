/** npm run test:failover [-- --rounds 3]: PostgreSQL fails over to its standby under three servers with sixteen clients. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({ options: { rounds: { type: 'string' } } });
const rounds = Number(values.rounds ?? 3);
if (!(Number.isInteger(rounds) && rounds > 0)) throw new Error(`--rounds ${values.rounds} is no number of rounds.`);
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/anomalies/failover.test.ts'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, HOLDFAST_FAILOVER_ROUNDS: String(rounds) },
});
process.exitCode = status ?? 1;
