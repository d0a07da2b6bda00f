/** npm run bench [-- --quick | --deep | --postgres | --stalls | --smb] [--only <pattern>]; see README.md. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installAzurite } from '../scripts/azurite.mjs';
import {
  batchStage,
  filledStage,
  largeStage,
  oneBlobStage,
  putStage,
  startStage,
  tagStage,
} from './against-azurite.mjs';
import { experimentStage } from './against-experiment.mjs';
import { limitStage } from './against-limit.mjs';
import { oneLaneStage } from './against-one-lane.mjs';
import { shareSnapshotReadStage, shareSnapshotStage } from './file-snapshots.mjs';
import { fileGrowthStage, fileStage } from './files.mjs';
import { copyStage, deleteStage, flatStage, growthStage } from './holdfast-only.mjs';
import { appendStage, pageRangesStage, pageSnapshotStage, putPageStage } from './in-place.mjs';
import { order } from './measure.mjs';
import { postgresMarkdown, postgresSettings, postgresStage } from './on-postgres.mjs';
import { depthStage, queueGrowthStage, queueStage } from './queues.mjs';
import { judge, markdown } from './report.mjs';
import { endAll, kinds, startLoad } from './servers.mjs';
import { runSmbBench } from './smb.mjs';
import { snapshotListStage, snapshotSizeStage, snapshotStage } from './snapshots.mjs';
import { runStalls } from './stalls.mjs';
import { tableGrowthStage, tableReadStage, tableWriteStage } from './tables.mjs';

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    deep: { type: 'boolean', default: false },
    postgres: { type: 'boolean', default: false },
    stalls: { type: 'boolean', default: false },
    smb: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
});
const here = fileURLToPath(new URL('.', import.meta.url));
// On the disk of the project: a temporary folder is memory on some machines.
const data = join(here, '.cache', `data-${process.pid}`);
const began = performance.now();

process.on('exit', () => {
  endAll();
  rmSync(data, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

const azuriteVersion = flags.postgres || flags.stalls || flags.smb ? undefined : installAzurite();
mkdirSync(data, { recursive: true });
const load = startLoad();
const rows = [];
const left = [];
let folders = 0;
let names = 0;

const bench = {
  load,
  quick: flags.quick,
  rounds: flags.quick ? 3 : 5,
  milliseconds: flags.quick ? 600 : 1_500,
  wanted: (title) => title.toLowerCase().includes(flags.only.toLowerCase()),
  say: (text) => console.log(`[${((performance.now() - began) / 1_000).toFixed(0).padStart(4)} s] ${text}`),
  unique: () => `run-${names++}`,
  newFolder() {
    const folder = join(data, String(folders++));
    mkdirSync(folder);
    return folder;
  },
  removeFolder: (folder) => rmSync(folder, { recursive: true, force: true }),
  order: (server, spec) => order(load, server, spec),
  /** One request that must be answered with this status. */
  async request(server, spec, status) {
    const answer = await bench.order(server, spec);
    if (answer.status !== status) throw new Error(`${spec.method} ${spec.path}: ${answer.status} ${answer.body}`);
    return answer;
  },
  add(row) {
    if (bench.wanted(row.title)) rows.push(judge(row));
  },
};

if (flags.smb) {
  await runSmbBench(bench, join(here, flags.quick ? '.cache' : 'results', 'smb.md'));
  process.exit();
}
if (flags.stalls) {
  await runStalls(bench, join(here, flags.only === '' ? 'results' : '.cache', 'stalls.md'));
  process.exit();
}
const environment = {
  date: new Date().toISOString(),
  commit: commit(),
  machine: `${cpus().length} x ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}`,
  node: process.version,
  'load before': loadavg()[0].toFixed(2),
  ...(flags.postgres
    ? postgresSettings
    : {
        Holdfast: kinds.holdfast.settings,
        Azurite: `${azuriteVersion}; ${kinds.azurite.settings}`,
        'the limit': kinds.limit.settings,
        'the experiment': kinds.experiment.settings,
      }),
  client:
    'one process of its own for both, raw sockets with keep-alive, a connection per client, SharedKey, requests of the rows of 1 and 4 KiB signed and encoded before the clock runs',
  rounds: `${bench.rounds} of ${bench.milliseconds} ms per side, interleaved, behind a warm-up; medians, and the spread of the rounds; CPU is that of the server's process with all its threads`,
};
if (loadavg()[0] > 0.5)
  console.log(`The machine is busy (load ${loadavg()[0].toFixed(2)}): numbers will not be worth much.`);

const againstOthers = [
  startStage,
  putStage,
  limitStage,
  experimentStage,
  oneBlobStage,
  batchStage,
  snapshotStage,
  appendStage,
  putPageStage,
  pageRangesStage,
  pageSnapshotStage,
  snapshotListStage,
  filledStage(10_000),
  filledStage(100_000),
  tagStage,
  largeStage,
  oneLaneStage,
  flatStage,
  copyStage,
  snapshotSizeStage,
  deleteStage,
  growthStage,
  tableWriteStage,
  tableReadStage,
  tableGrowthStage,
  queueStage,
  ...[10, 13_000, 100_000].map(depthStage),
  queueGrowthStage,
  fileStage,
  fileGrowthStage,
  shareSnapshotReadStage,
  shareSnapshotStage,
];
let failure;
for (const stage of flags.postgres ? [postgresStage] : againstOthers) {
  if (!stage.titles.some(bench.wanted)) continue;
  if (stage.deep && !flags.deep) {
    left.push(`${stage.titles.join('; ')} (needs --deep)`);
    continue;
  }
  if (stage.long && flags.quick) {
    left.push(`${stage.titles.join('; ')} (not with --quick)`);
    continue;
  }
  bench.say(`${stage.titles[0]} ...`);
  try {
    await stage.run(bench);
  } catch (error) {
    failure = error;
    left.push(`${stage.titles[0]} (failed), and the rows after it`);
    break;
  }
}
if (flags.quick && !flags.postgres && deleteStage.titles.some(bench.wanted)) {
  left.push('Delete Container with 1,000,000 blobs (not with --quick; here 100,000)');
}
await load.stop();

const text = flags.postgres ? postgresMarkdown({ environment, rows }) : markdown({ environment, rows, left });
console.log(`\n${text}`);
// A run of some rows is for development, or stopped at an error; results are of all rows.
const kind = flags.quick ? 'quick' : flags.deep ? 'deep' : 'default';
const isPart = failure !== undefined || flags.only !== '' || (flags.postgres && flags.quick);
const file = isPart ? join('.cache', 'part') : join('results', flags.postgres ? 'postgres' : kind);
mkdirSync(join(here, 'results'), { recursive: true });
writeFileSync(join(here, `${file}.md`), text);
writeFileSync(join(here, `${file}.json`), `${JSON.stringify({ environment, left, rows }, rounded, 1)}\n`);
bench.say(`written to ${join('bench', file)}.{md,json}`);
if (failure) throw failure;

function commit() {
  try {
    const git = (...words) =>
      execFileSync('git', words, { cwd: here, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return git('rev-parse', '--short', 'HEAD').trim() + (git('status', '--porcelain', '../src') ? ' with changes' : '');
  } catch {
    return 'none';
  }
}

/** Nanoseconds of a millisecond are noise. */
function rounded(_name, value) {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
}
