/**
 * npm run test:large [-- --space --gib 5 --rounds 5 | --memory --gib 20 | --disk | --slow | --smb | --races] [--seed 1]: minutes of large blobs, in a
 * folder on this disk.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { disk } from './disk.mjs';
import { memory } from './memory.mjs';
import { slowClients } from './slow-clients.mjs';
import { smb } from './smb.mjs';
import { space } from './space.mjs';

const DISK_SECONDS = 15;
const SMB_GIB = 4;
const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: {
    space: { type: 'boolean' },
    memory: { type: 'boolean' },
    disk: { type: 'boolean' },
    slow: { type: 'boolean' },
    smb: { type: 'boolean' },
    races: { type: 'boolean' },
    gib: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
});
const all = !values.space && !values.memory && !values.disk && !values.slow && !values.smb && !values.races;
const gib = Number(values.gib);
const seed = Number(values.seed);
const print = (/** @type {string} */ line) => console.log(line);

const cache = fileURLToPath(new URL('.cache', import.meta.url));
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, 'run-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

/** @type {string[]} */
const faults = [];
print(`--seed ${seed}`);
if (all || values.space) {
  print(`\nSpace: ${gib} GiB are written and mostly deleted in ${values.rounds} rounds`);
  faults.push(...(await space({ location: join(folder, 'space'), gib, rounds: Number(values.rounds), seed, print })));
  rmSync(join(folder, 'space'), { recursive: true, force: true });
}
if (all || values.memory) {
  print(`\nMemory: ${gib} GiB up and down`);
  faults.push(...(await memory({ location: join(folder, 'memory'), gib, seed, print })));
}
if (all || values.disk) {
  print(`\nA disk image: random writes, and a snapshot in each of ${DISK_SECONDS} seconds`);
  faults.push(...(await disk({ location: join(folder, 'disk'), seconds: DISK_SECONDS, seed, print })));
  rmSync(join(folder, 'disk'), { recursive: true, force: true });
}
if (all || values.slow) {
  print('\nSlow clients: 1,000 with their headers and 1,000 with their bodies');
  faults.push(...(await slowClients({ location: join(folder, 'slow'), print })));
}
if (all || values.smb) {
  print(`\nSMB: more than ${SMB_GIB} GiB by smbclient and over REST`);
  faults.push(...(await smb({ location: join(folder, 'smb'), gib: SMB_GIB, seed, print })));
  rmSync(join(folder, 'smb'), { recursive: true, force: true });
}
if (all || values.races) {
  print('\nRaces, for longer than in npm test');
  const words = ['run', 'test/races/torn-reads.test.ts', 'test/races/blocks.test.ts'];
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...words], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, HOLDFAST_RACE_LENGTH: '10' },
  });
  if (status !== 0) faults.push('a race was lost');
}
for (const fault of faults.slice(0, 20)) print(`fault: ${fault}`);
print(faults.length === 0 ? '\nAll is well.' : `\n${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
