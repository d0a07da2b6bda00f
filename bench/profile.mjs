/** node bench/profile.mjs put|get|list|insert|batch|consume|append|putPage|... [clients]: where the CPU time of Holdfast goes under one loop. */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileLoops } from './file-loops.mjs';
import { createAppendBlob, createPageBlob } from './in-place-loops.mjs';
import { measure } from './measure.mjs';
import { queueLoops } from './queue-loops.mjs';
import { endAll, runScript, startLoad, startServer } from './servers.mjs';
import { tableLoops } from './table-loops.mjs';

/** And messages, and entities. */
const BLOBS = 10_000;
const MILLISECONDS = 4_000;
const FUNCTIONS = 40;

const [loop = 'get', clientsText = /list|query/.test(loop) ? '1' : '64'] = process.argv.slice(2);
const clients = Number(clientsText);
const service = loop in tableLoops ? 'table' : loop in queueLoops ? 'queue' : loop in fileLoops ? 'file' : 'blob';
const folder = join(fileURLToPath(new URL('.', import.meta.url)), '.cache', `profile-${process.pid}`);
const profiles = join(folder, 'profiles');
const data = join(folder, 'data');
process.on('exit', () => {
  endAll();
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

mkdirSync(data, { recursive: true });
await runScript('fill-holdfast.mjs', [
  data,
  { blob: 'blobs', queue: 'messages', table: 'entities', file: 'files' }[service],
  'filled',
  BLOBS,
]);
const server = await startServer('holdfast', data, [
  '--cpu-prof',
  '--cpu-prof-interval=500',
  `--cpu-prof-dir=${profiles}`,
]);
const load = startLoad();
const large = { bytes: 1 << 20, keys: 16, run: 'large' };
const more = { ...(/Counter|Lease/.test(loop) ? { blobs: 1 } : {}), ...(/Large/.test(loop) ? large : {}) };
/** Of each run: what append and page blobs need. */
const inPlace = (run) =>
  ({
    append: { appendBlobs: 1, prepare: [createAppendBlob(`/filled/${run}-0`)] },
    putPage: { bytes: 2 ** 30, prepare: [createPageBlob(`/filled/${run}`, 2 ** 30)] },
  })[loop];
const tree = { of: 'files', parent: loop === 'renameDirectory' ? 'filled' : 'filled/filled', directory: 'filled' };
const place = { container: 'filled', queue: 'filled', table: 'filled', partitions: 10, ...tree };
const spec = { service, loop, ...place, clients, keys: BLOBS, run: 'profiled', milliseconds: MILLISECONDS, ...more };
if (loop === 'getSmall')
  await measure(load, server, { ...spec, loop: 'fillSmall', clients: 1, milliseconds: 0, stepsMin: BLOBS });
await measure(load, server, { ...spec, run: 'warm-up', ...inPlace('warm-up') });
const from = microseconds();
const result = await measure(load, server, { ...spec, ...inPlace(spec.run) });
const to = microseconds();
await load.stop();
await server.stop();
const { opsPerSecond, cpuMillisecondsPerOperation } = result;
console.log(
  `${loop}, ${clients} clients: ${Math.round(opsPerSecond)}/s, ${cpuMillisecondsPerOperation.toFixed(3)} ms CPU each`,
);
for (const file of readdirSync(profiles)) print(JSON.parse(readFileSync(join(profiles, file), 'utf8')));

/** The clock of the profiles. */
function microseconds() {
  return Number(process.hrtime.bigint() / 1_000n);
}

/** Self time by function, as a share of the time that was not idle, between the end of the warm-up and the end of the load. */
function print({ nodes, samples, timeDeltas, startTime }) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const times = new Map();
  let busy = 0;
  let now = startTime;
  for (const [at, id] of samples.entries()) {
    now += timeDeltas[at];
    if (now < from || now > to) continue;
    const { functionName, url, lineNumber } = byId.get(id).callFrame;
    if (functionName === '(idle)' || functionName === '(program)') continue;
    const place = url === '' ? '' : ` ${url.replace(/^.*\/(?=dist\/|node_modules\/)/, '')}:${lineNumber + 1}`;
    const name = `${functionName || '(anonymous)'}${place}`;
    times.set(name, (times.get(name) ?? 0) + timeDeltas[at]);
    busy += timeDeltas[at];
  }
  const writes = [...times.keys()].some((name) => name.includes('checkpoint-worker'));
  console.log(`\n${writes ? 'writer thread' : 'main thread'}: ${Math.round(busy / 1_000)} ms busy`);
  for (const [name, time] of [...times].sort((a, b) => b[1] - a[1]).slice(0, FUNCTIONS)) {
    console.log(`${((time / busy) * 100).toFixed(1).padStart(6)} %  ${name}`);
  }
}
