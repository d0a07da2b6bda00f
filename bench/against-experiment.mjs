/** Rows beside the experiment from which the targets come, on this machine and in the same minute: docs/adr/0024. */
import { createContainers } from './against-azurite.mjs';
import { interleave, ratioOf, summary } from './measure.mjs';
import { clientsOf, withPair } from './pairs.mjs';
import { createQueues, pairSpec, putRows } from './queues.mjs';
import { fillTable, readRows, writeRows } from './tables.mjs';

const KEYS = 1_000;
const ENTITIES = 10_000;
const behind = (title) => `${title}, against the experiment`;

const blobRows = (bench) =>
  ['put', 'get'].flatMap((loop) =>
    [1, 64].map((clients) => ({
      title: `${loop === 'put' ? 'Put' : 'Get'} Blob 1 KiB, ${clientsOf(clients)}`,
      spec: () => ({ loop, container: 'filled', clients, keys: KEYS, run: bench.unique() }),
    })),
  );
const pairs = { title: 'Queue get + delete, depth 10', field: 'p50', spec: () => pairSpec };
const largePut = (bench) => ({
  title: 'Put Blob 1 MiB, 16 clients',
  spec: () => ({ loop: 'putLarge', container: 'filled', clients: 16, bytes: 1 << 20, run: bench.unique() }),
});
const rowsOf = (bench) => [
  ...blobRows(bench),
  largePut(bench),
  ...writeRows(bench),
  readRows(ENTITIES)[0],
  // Before the Puts, which make the queue deep.
  pairs,
  ...putRows,
];

export const experimentStage = {
  titles: rowsOf({}).map(({ title }) => behind(title)),
  async run(bench) {
    await withPair(
      bench,
      async (pair) => {
        await createContainers(bench, pair, 'filled');
        for (const server of Object.values(pair)) await fill(bench, server);
        for (const row of rowsOf(bench)) await experimentRow(bench, pair, row);
      },
      { holdfast: bench.newFolder(), experiment: bench.newFolder() },
    );
  },
};

async function fill(bench, server) {
  const blobs = { loop: 'fill', container: 'filled', clients: 16, keys: KEYS };
  await bench.order(server, { ...blobs, milliseconds: 0, stepsMin: Math.ceil(KEYS / 16) });
  await fillTable(bench, server, ENTITIES);
  await createQueues(bench, server, 'filled');
  await bench.order(server, { ...putRows[0].spec(), clients: 1, milliseconds: 0, stepsMin: 10 });
}

async function experimentRow(bench, pair, { title, spec, field }) {
  if (!bench.wanted(behind(title))) return;
  bench.say(behind(title));
  const samples = await interleave(bench, pair, spec);
  const sides = { Holdfast: summary(samples, 'holdfast'), experiment: summary(samples, 'experiment') };
  bench.add({
    title: behind(title),
    meaning: 'what Holdfast reaches of what the experiment reaches; the floor is the share that the targets had in it',
    unit: 'x',
    value: field ? ratioOf(samples, 'experiment', 'holdfast', field) : ratioOf(samples, 'holdfast', 'experiment'),
    cpuRatio: ratioOf(samples, 'experiment', 'holdfast', 'cpuMillisecondsPerOperation'),
    loopP99: sides.Holdfast.loopP99,
    details: Object.entries(sides)
      .map(([name, { opsPerSecond, p50 }]) => `${name} ${Math.round(opsPerSecond.median)}/s (p50 ${p50.toFixed(2)} ms)`)
      .join('; '),
    samples,
  });
}
