/** npm run bench -- --postgres: the same work on PostgreSQL beside LMDB, for orientation: there are no targets. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import pg from 'pg';
import { createContainers } from './against-azurite.mjs';
import { interleave, ratioOf, summary } from './measure.mjs';
import { clientsOf, count } from './pairs.mjs';
import { createQueues, crowd, pairSpec, putRows } from './queues.mjs';
import { cpu, side, spreadText, table } from './report.mjs';
import { kinds, startServer } from './servers.mjs';
import { fillTable, readRows, writeRows } from './tables.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const LMDB = 'LMDB';
const ONE = 'PostgreSQL, one process';
const THREE = 'PostgreSQL, three processes';
const BLOBS = 5_000;
const ENTITIES = 10_000;
const DEPTH = 1_000;

const rowsOf = (bench) => [
  ...[1, 16, 64].map((clients) => ({
    title: `Put Blob 1 KiB, ${clientsOf(clients)}`,
    meaning: 'one container, a new name with each write',
    spec: () => ({ loop: 'put', container: 'put', clients, run: bench.unique() }),
  })),
  ...[1, 16, 64].map((clients) => ({
    title: `Get Blob 1 KiB, ${clientsOf(clients)}`,
    meaning: `one container with ${count(BLOBS)} blobs, names by chance`,
    spec: () => ({ loop: 'get', container: 'filled', clients, keys: BLOBS }),
  })),
  {
    title: 'List page of 5,000',
    meaning: 'one client, the whole of that container in one page',
    spec: () => ({ loop: 'list', container: 'filled', clients: 1, stepsMin: 2 }),
  },
  {
    title: 'Overwrite of one blob, 64 clients',
    meaning: 'Put Blob of 1 KiB without conditions, always the same name',
    spec: () => ({ loop: 'overwrite', container: 'put', clients: 64, keys: 1 }),
  },
  ...writeRows(bench),
  ...readRows(ENTITIES),
  ...putRows,
  {
    title: `Queue get + delete, depth ${count(DEPTH)}`,
    meaning: 'one client; the rate and CPU have in them the Put that replaces what was taken',
    spec: () => ({ ...pairSpec, queue: 'deep' }),
  },
  ...[1, 64].map((queues) => ({
    title: `Queue, 64 consumers of ${queues === 1 ? 'one queue' : `${queues} queues`}`,
    meaning: crowd.meaning,
    spec: () => crowd.spec(queues),
  })),
];

export const postgresStage = {
  titles: rowsOf({}).map((row) => row.title),
  async run(bench) {
    const ending = [];
    try {
      const cluster = await startPostgres(bench.newFolder());
      ending.push(() => cluster.drop());
      const start = async (kind, folder, flags) => {
        const server = await startServer(kind, folder, [], flags);
        ending.push(() => server.stop());
        return server;
      };
      const sides = { [LMDB]: together([await start('holdfast', bench.newFolder())]) };
      for (const [name, database, processes] of [
        [ONE, 'one', 1],
        [THREE, 'three', 3],
      ]) {
        await createDatabase(cluster.url, database);
        const extents = bench.newFolder();
        const flags = ['--partition', cluster.urlOf({ database })];
        const servers = [];
        while (servers.length < processes) servers.push(await start('postgres', extents, flags));
        sides[name] = together(servers);
      }
      bench.say('filling');
      const fill = {
        loop: 'fill',
        container: 'filled',
        clients: 50,
        keys: BLOBS,
        milliseconds: 0,
        stepsMin: BLOBS / 50,
      };
      for (const container of ['put', 'filled']) await createContainers(bench, sides, container);
      for (const server of Object.values(sides)) {
        await bench.order(server, fill);
        await fillTable(bench, server, ENTITIES);
        await createQueues(bench, server, 'filled', 'deep', ...crowd.queues);
        await bench.order(server, {
          ...putRows[0].spec(),
          queue: 'deep',
          milliseconds: 0,
          stepsMin: Math.ceil(DEPTH / 16),
        });
      }
      for (const row of rowsOf(bench)) await measureRow(bench, sides, row);
    } finally {
      for (const end of ending.reverse()) await end();
    }
  },
};

async function measureRow(bench, sides, { title, meaning, spec }) {
  if (!bench.wanted(title)) return;
  bench.say(title);
  const samples = await interleave(bench, sides, spec);
  const summaries = Object.fromEntries(Object.keys(sides).map((name) => [name, summary(samples, name)]));
  const ratios = { [ONE]: ratioOf(samples, ONE, LMDB), [THREE]: ratioOf(samples, THREE, ONE) };
  bench.add({ title, meaning, sides: summaries, ratios, samples });
}

/** Several processes as if they were one server; clients are spread over them. */
function together(servers) {
  return {
    ports: Object.fromEntries(
      Object.keys(servers[0].ports).map((service) => [service, servers.flatMap((server) => server.ports[service])]),
    ),
    async sample() {
      const samples = await Promise.all(servers.map((server) => server.sample()));
      const most = (field) => Math.max(...samples.map((sample) => sample[field]));
      const cpuMilliseconds = samples.reduce((sum, sample) => sum + sample.cpuMilliseconds, 0);
      return { cpuMilliseconds, loopP99: most('loopP99'), loopMax: most('loopMax') };
    },
  };
}

/** The tests' own, with fsync, on the disk of the project. */
async function startPostgres(folder) {
  const built = join(here, '.cache', 'cluster');
  mkdirSync(built, { recursive: true });
  writeFileSync(join(built, 'package.json'), '{ "type": "module" }\n');
  const tsc = join(here, '../node_modules/typescript/bin/tsc');
  const source = join(here, '../test/support/postgres-cluster.ts');
  const options = '--ignoreConfig --module nodenext --target es2023 --types node --skipLibCheck --outDir'.split(' ');
  const { status } = spawnSync(process.execPath, [tsc, ...options, built, source], { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error('test/support/postgres-cluster.ts could not be built');
  const { missing, startCluster } = await import(pathToFileURL(join(built, 'postgres-cluster.js')).href);
  if (missing) throw new Error(missing);
  process.env.TMPDIR = folder;
  const cluster = await startCluster({
    fsync: true,
    settings: { unix_socket_directories: '', shared_buffers: '512MB' },
  });
  const [made] = readdirSync(folder);
  const pid = Number(readFileSync(join(folder, made, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
  const end = () => process.kill(pid, 'SIGQUIT');
  process.once('exit', end);
  return {
    ...cluster,
    async drop() {
      process.off('exit', end);
      await cluster.drop();
    },
  };
}

async function createDatabase(url, database) {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`create database ${database}`);
  await client.end();
}

export const postgresSettings = {
  LMDB: kinds.holdfast.settings,
  PostgreSQL: `${kinds.postgres.settings}; a server of the tests on the same machine, with fsync, checksums, without a standby`,
  CPU: 'that of the Holdfast processes, without that of PostgreSQL',
};

export function postgresMarkdown({ environment, rows }) {
  const heads = [LMDB, ONE, THREE].flatMap((name) => [`${name}, ops/s (p50/p99 ms)`, 'CPU ms/op']);
  return [
    '# Bench on PostgreSQL',
    '',
    'For orientation: no row has a target.',
    '',
    ...Object.entries(environment).map(([name, value]) => `- ${name}: ${value}`),
    '',
    ...table(
      ['row', ...heads, 'one process against LMDB', 'three against one'],
      rows.map(({ title, sides, ratios }) => [
        title,
        ...[LMDB, ONE, THREE].flatMap((name) => [side(sides[name]), cpu(sides[name])]),
        ...[ONE, THREE].map((name) => spreadText(ratios[name], 'x')),
      ]),
    ),
    '',
    '## What the rows mean',
    '',
    ...rows.map((row) => `- **${row.title}**: ${row.meaning}.`),
    '',
  ].join('\n');
}
