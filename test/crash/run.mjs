/** npm run test:crash -- --rounds 50 --seed 1 [--power-cuts] */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { newLoopDisk } from '../support/loop-disk.mjs';
import { crash } from './rounds.mjs';

const DISK_MEGABYTES = 4_096;

const { values } = parseArgs({
  options: { rounds: { type: 'string' }, seed: { type: 'string' }, 'power-cuts': { type: 'boolean' } },
});
const rounds = Number(values.rounds ?? 50);
const seed = Number(values.seed ?? Date.now() % 2 ** 31);
console.log(`${rounds} rounds, --seed ${seed}`);

const disk = values['power-cuts'] ? await newLoopDisk(DISK_MEGABYTES) : undefined;
const location = disk?.location ?? mkdtempSync(join(tmpdir(), 'holdfast-crash-'));
const result = await crash({ location, rounds, seed, end: disk?.cutPower, onRound: (line) => console.log(line) });
for (const fault of result.faults) console.log(`fault: ${fault}`);
console.log(`${result.rounds} rounds, ${result.acknowledged} acknowledged, ${result.faults.length} lost or wrong`);
if (result.faults.length > 0) console.log(`The folder is kept: ${location}`);
else if (disk) disk.remove();
else rmSync(location, { recursive: true, force: true });
process.exitCode = result.faults.length === 0 ? 0 : 1;
