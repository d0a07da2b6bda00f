/** Rows of the Queue service: against Azurite, and how it grows. */
import { growthRow, withSizes } from './holdfast-only.mjs';
import { interleave, spread } from './measure.mjs';
import { clientsOf, count, crowdRow, pairRow, withPair } from './pairs.mjs';
import { short } from './report.mjs';
import { runScript, startServer } from './servers.mjs';

const shape = 'messages of 1 KiB';

export const putRows = [16, 64].map((clients) => ({
  title: `Queue put, ${clientsOf(clients)}`,
  meaning: `one queue; ${shape}`,
  spec: () => ({ service: 'queue', loop: 'putMessage', queue: 'filled', clients }),
}));

const pairTitle = (depth) => `Queue get + delete, depth ${count(depth)}`;
export const pairSpec = { service: 'queue', loop: 'getAndDelete', queue: 'filled', clients: 1 };
/** The code is warm before, and the queue as deep as it was. */
const consuming = { service: 'queue', loop: 'consume', queue: 'warm', clients: 64 };
const pairMeaning = (depth) =>
  `one client takes and deletes one of ${count(depth)} ${shape}; ratio of the p50; the rate and CPU have in them the Put that replaces it`;

export const crowd = {
  title: 'Queue, 64 consumers of one against 64 queues',
  meaning: `64 clients put, get and delete ${shape}, each an operation; what a consumer is given, no other is given too`,
  queues: Array.from({ length: 64 }, (_, number) => `crowd-${number}`),
  thing: 'queue',
  spec: (queues) => ({ ...consuming, queue: 'crowd', queues }),
};

export async function createQueues(bench, server, ...queues) {
  for (const queue of queues) await bench.request(server, { service: 'queue', method: 'PUT', path: `/${queue}` }, 201);
}

export const queueStage = {
  titles: [...putRows.map((row) => row.title), crowd.title],
  async run(bench) {
    await withPair(bench, async (pair) => {
      for (const server of Object.values(pair)) await createQueues(bench, server, 'filled', ...crowd.queues);
      // Before the Puts: Azurite scans every message of all queues.
      await crowdRow(bench, pair, crowd);
      for (const row of putRows) await pairRow(bench, pair, row);
    });
  },
};

/** Azurite scans all messages: one pair of servers for each depth. */
export function depthStage(depth) {
  return {
    titles: [pairTitle(depth)],
    async run(bench) {
      const folders = { holdfast: bench.newFolder(), azurite: bench.newFolder() };
      await runScript('fill-holdfast.mjs', [folders.holdfast, 'messages', 'filled', depth]);
      await fillAzurite(bench, folders.azurite, depth);
      await withPair(
        bench,
        async (pair) => {
          for (const server of Object.values(pair)) await createQueues(bench, server, 'warm');
          await pairRow(bench, pair, {
            title: pairTitle(depth),
            meaning: pairMeaning(depth),
            field: 'p50',
            spec: () => pairSpec,
            warmUp: (_spec, side) => (side === 'holdfast' || depth < 100 ? consuming : undefined),
          });
        },
        folders,
      );
    },
  };
}

async function fillAzurite(bench, folder, depth) {
  const server = await startServer('azurite', folder);
  try {
    await createQueues(bench, server, 'filled');
    await bench.order(server, { ...putRows[0].spec(), clients: 1, milliseconds: 0 });
  } finally {
    await server.stop();
  }
  await runScript('fill-azurite.mjs', [folder, 'messages', 'filled', depth]);
}

const growthTitle = 'Queue put, get and delete at 1,000,000 messages against 1,000';

export const queueGrowthStage = {
  titles: [pairTitle(1_000_000), growthTitle],
  long: true,
  async run(bench) {
    const fill = (folder, depth) => runScript('fill-holdfast.mjs', [folder, 'messages', 'filled', depth]);
    await withSizes(bench, fill, async (sides) => {
      await growthRow(bench, sides, {
        title: growthTitle,
        meaning:
          '64 consumers of one queue, each of the three an operation; the time of an operation, how much it grows',
        spec: () => ({ ...consuming, queue: 'filled' }),
      });
      if (!bench.wanted(pairTitle(1_000_000))) return;
      bench.say(pairTitle(1_000_000));
      const samples = await interleave(bench, sides, () => pairSpec);
      const of = (side) => spread(samples.map((sample) => sample[side].p50));
      bench.add({
        title: pairTitle(1_000_000),
        meaning: `${pairMeaning(1_000_000)}; Azurite is not asked, as its time grows with the depth: one operation would take most of a minute`,
        unit: 'ms',
        value: of('1,000,000'),
        details: `at depth 1,000: ${short(of('1,000').median)} ms`,
        samples,
      });
    });
  },
};
