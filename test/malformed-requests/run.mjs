/**
 * npm run test:malformed-requests [-- --service file --count 1000000 --seed 1 --lmdb | --seed 1 --case 5]: recorded requests of
 * our own tests, mutated and signed again, to a server in memory or in a folder. With --case one of them, and its answer.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { check } from '../../dist/index.js';
import { play, printable, replay } from './play.mjs';

const { values } = parseArgs({
  options: {
    service: { type: 'string', default: 'blob' },
    count: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    first: { type: 'string', default: '0' },
    case: { type: 'string' },
    lmdb: { type: 'boolean', default: false },
  },
});
const service = values.service === 'file' ? 'file' : 'blob';
const seed = Number(values.seed);
const folder = values.lmdb ? mkdtempSync(join(tmpdir(), 'holdfast-malformed-')) : undefined;
process.on('exit', () => folder && rmSync(folder, { recursive: true, force: true }));
const location = folder && join(folder, 'data');

if (values.case === undefined) process.exitCode = await playMany();
else await showOne(Number(values.case));

async function playMany() {
  const began = Date.now();
  console.log(`--seed ${seed}`);
  const { faults, done, seen, memory, output } = await play({
    ...{ seed, service, count: Number(values.count), first: Number(values.first), location },
    onProgress: (sent) => {
      if (sent % 50_000 === 0) console.log(`${sent} requests in ${Math.round((Date.now() - began) / 1_000)} s`);
    },
  });
  const mebibytes = memory.map((bytes) => Math.round(bytes / 2 ** 20));
  console.log(`${done} requests; memory at most ${Math.max(...mebibytes)} MiB, at the end ${mebibytes.at(-1)} MiB`);
  const often = [...seen].sort(([, one], [, other]) => other - one);
  console.log(often.map(([word, times]) => `${times} ${word}`).join(', '));
  for (const { number, what, how, request } of faults) {
    console.log(`\nfault: ${what}`);
    if (number !== undefined)
      console.log(
        `npm run test:malformed-requests -- --service ${service} --seed ${seed} --case ${number}\n${how?.join('; ')}\n${request}`,
      );
  }
  if (faults.length > 0) console.log(`\nthe server's log:\n${output}`);
  if (location) {
    const { findings } = await check(location);
    for (const finding of findings) console.log(`check: ${JSON.stringify(finding)}`);
    if (findings.length > 0) return 1;
  }
  return faults.length === 0 ? 0 : 1;
}

/** @param {number} number */
async function showOne(number) {
  const { one, answer, what, output } = await replay({ seed, number, service, location });
  console.log(`${one.how.join('; ')}\n\n${printable(one.bytes)}\n`);
  if (answer) {
    console.log(answer.status);
    for (const [name, value] of answer.headers) console.log(`${name}: ${value}`);
    console.log(`\n${printable(answer.body).slice(0, 2_000)}`);
  }
  console.log(what === undefined ? 'Nothing is wrong.' : `fault: ${what}\n${output}`);
}
