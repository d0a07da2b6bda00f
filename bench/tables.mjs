/** Rows of the Table service: against Azurite, and how it grows. */
import { setTimeout as pause } from 'node:timers/promises';
import { growthRow, withSizes } from './holdfast-only.mjs';
import { measure, spread } from './measure.mjs';
import { clientsOf, count, pairRow, withPair } from './pairs.mjs';
import { short } from './report.mjs';
import { runScript, startLoad } from './servers.mjs';
import { ENTITIES_A_BATCH, ENTITIES_A_PARTITION } from './table-loops.mjs';

const ENTITIES = 100_000;
/** Azurite writes its whole database five seconds after a change: that is no cost of a Get. */
const SAVED_MILLISECONDS = 8_000;
const shape = 'entities of seven properties, 380 bytes as JSON, partitions of 1,000';
const filled = { service: 'table', table: 'filled' };

export const writeRows = (bench) => [
  ...[1, 16, 64].map((clients) => ({
    title: `Table insert, ${clientsOf(clients)}`,
    meaning: `one table, 100 partitions, a new RowKey with each; ${shape}`,
    spec: () => ({ ...filled, loop: 'insert', clients, partitions: 100, run: bench.unique() }),
  })),
  {
    title: 'Table batch of 100, 16 clients',
    meaning: `entity group transactions that insert 100 ${shape}; an operation is a transaction`,
    spec: () => ({ ...filled, loop: 'batch', clients: 16, run: bench.unique() }),
  },
];

export const readRows = (entities) => [
  {
    title: 'Table get entity, 64 clients',
    meaning: `by PartitionKey and RowKey, by chance among ${count(entities)}; ${shape}`,
    spec: () => ({ ...filled, loop: 'getEntity', clients: 64, keys: entities }),
  },
  {
    title: `Table query of 1,000 among ${count(entities)}`,
    meaning: 'one client, $filter=PartitionKey eq ..., a partition by chance; an operation is the page with all of it',
    spec: () => ({ ...filled, loop: 'queryPartition', clients: 1, keys: entities, stepsMin: 4 }),
  },
];

/** By requests, a hundred entities at a time. */
export async function fillTable(bench, server, entities) {
  const body = '{"TableName":"filled"}';
  const headers = { 'content-type': 'application/json', accept: 'application/json;odata=minimalmetadata' };
  await bench.request(server, { service: 'table', method: 'POST', path: '/Tables', headers, body }, 201);
  if (entities === 0) return;
  const batches = entities / ENTITIES_A_BATCH;
  const spec = { ...filled, loop: 'batch', run: 'filled', batches };
  await bench.order(server, { ...spec, clients: 16, milliseconds: 0, stepsMin: Math.ceil(batches / 16) });
}

const stageOf = (titlesOf, entities) => ({
  titles: titlesOf({}).map((row) => row.title),
  async run(bench) {
    await withPair(bench, async (pair) => {
      if (entities > 0) bench.say(`filling ${count(entities)} entities`);
      for (const server of Object.values(pair)) await fillTable(bench, server, entities);
      if (entities > 0) await pause(SAVED_MILLISECONDS);
      for (const row of titlesOf(bench)) await pairRow(bench, pair, row);
    });
  },
});

export const tableWriteStage = stageOf(writeRows, 0);
export const tableReadStage = stageOf(() => readRows(ENTITIES), ENTITIES);

const growing = {
  getEntity: 'Table get entity at 1,000,000 entities against 1,000',
  queryPartition: 'Table query of 1,000 at 1,000,000 entities against 1,000',
  insert: 'Table insert at 1,000,000 entities against 1,000',
};
const besideTitle = 'Table insert beside a query of 1,000,000 that finds nothing';

export const tableGrowthStage = {
  titles: [...Object.values(growing), besideTitle],
  deep: true,
  async run(bench) {
    const fill = (folder, entities) => runScript('fill-holdfast.mjs', [folder, 'entities', 'filled', entities]);
    await withSizes(bench, fill, async (sides) => {
      for (const [loop, title] of Object.entries(growing)) {
        await growthRow(bench, sides, {
          title,
          meaning: `${loop === 'queryPartition' ? 'one client' : '64 clients'}, keys by chance; the time of an operation, how much it grows${loop === 'insert' ? '; the smaller table grows with the inserts of the rounds' : ''}`,
          spec: (keys) => ({
            ...filled,
            loop,
            keys,
            clients: loop === 'queryPartition' ? 1 : 64,
            partitions: keys / ENTITIES_A_PARTITION,
            run: bench.unique(),
          }),
        });
      }
      if (bench.wanted(besideTitle)) await besideQuery(bench, sides['1,000,000']);
    });
  },
};

/** The query comes from a load of its own, and is in the middle of a page when the writers begin and when they end. */
async function besideQuery(bench, server) {
  bench.say(besideTitle);
  const { load, rounds, milliseconds } = bench;
  const write = () =>
    measure(load, server, {
      ...filled,
      loop: 'insert',
      clients: 64,
      partitions: 1_000,
      run: bench.unique(),
      milliseconds,
    });
  const other = startLoad();
  const samples = [];
  const query = { passes: 0, operations: 0, elapsed: 0 };
  try {
    await write();
    for (let round = 0; round < rounds; round++) {
      const without = await write();
      const asked = other.run({ ...filled, ports: server.ports.table, loop: 'queryNothing', clients: 1, milliseconds });
      const beside = await write();
      const { passes = 0, operations, elapsed } = await asked;
      query.passes += passes;
      query.operations += operations;
      query.elapsed += elapsed;
      samples.push({ without, beside });
    }
  } finally {
    await other.stop();
  }
  const of = (side, field) => spread(samples.map((sample) => sample[side][field])).median;
  const text = (side) =>
    `p99 ${short(of(side, 'p99'))} ms, ${short(of(side, 'opsPerSecond'))}/s, longest delay of the loop ${short(of(side, 'loopMax'))} ms`;
  bench.add({
    title: besideTitle,
    meaning:
      '64 clients insert, with and without a client that asks for a property that no entity has; the p99 of the inserts, how much it grows',
    unit: 'x',
    value: spread(samples.map(({ without, beside }) => beside.p99 / without.p99)),
    loopP99: of('beside', 'loopP99'),
    details: `without: ${text('without')}; with: ${text('beside')}; the query: ${query.operations} pages and ${query.passes} whole passes in ${short(query.elapsed / 1_000)} s`,
    samples,
  });
}
