/** npm run test:malformed-packets [-- --count 1000000 --seed 1 --first 0]: recorded packets of SMB clients, mutated, to a server in memory. */
import { parseArgs } from 'node:util';
import { play } from './play.mjs';

const LOG_CHARACTERS = 3_000;
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    first: { type: 'string', default: '0' },
  },
});
const began = Date.now();
console.log(`--seed ${values.seed}`);
const { faults, done, seen, memory, output } = await play({
  ...{ seed: Number(values.seed), count: Number(values.count), first: Number(values.first) },
  onProgress: (sent) => {
    if (sent % 50_000 === 0) console.log(`${sent} packets in ${Math.round((Date.now() - began) / 1_000)} s`);
  },
});
const mebibytes = memory.map((bytes) => Math.round(bytes / 2 ** 20));
console.log(`${done} packets; memory at most ${Math.max(...mebibytes)} MiB, at the end ${mebibytes.at(-1)} MiB`);
const byTimes = [...seen].sort(([, one], [, other]) => other - one);
console.log(byTimes.map(([word, times]) => `${times} ${word}`).join(', '));
for (const { number, what, how, packet } of faults) {
  console.log(`\nfault: ${what}`);
  if (number !== undefined)
    console.log(`--seed ${values.seed} --first ${number} --count 1\n${how?.join('; ')}\n${packet}`);
}
if (faults.length > 0) console.log(`\nthe end of the server's log:\n${output.slice(-LOG_CHARACTERS)}`);
process.exitCode = faults.length === 0 ? 0 : 1;
