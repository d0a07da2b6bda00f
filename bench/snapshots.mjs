/** Rows of Snapshot Blob: both servers, and Holdfast with itself. */
import { createContainers, fillAzurite } from './against-azurite.mjs';
import { SNAPSHOTS_EACH } from './blob-loops.mjs';
import { sizesRow } from './holdfast-only.mjs';
import { clientsOf, count, pairRow, withPair } from './pairs.mjs';
import { runScript, startServer } from './servers.mjs';

const CONTAINER = 'snapshots';
/** By the length of the blob. The large one is one block that its list names again and again: Snapshot Blob reads none of its bytes. */
const SOURCES = {
  '1 KiB': { loop: 'putLarge', bytes: 1 << 10 },
  '1 GiB': { loop: 'repeatBlock', blockBytes: 8 << 20, blocks: 128 },
};
const CLIENTS = [1, 16];
const titleOf = (size, clients) => `Snapshot Blob of ${size}, ${clientsOf(clients)}`;
const sourceOf = (size) => size.replace(' ', '-');

async function prepare(bench, server, size) {
  const spec = { ...SOURCES[size], container: CONTAINER, run: sourceOf(size) };
  await bench.order(server, { ...spec, clients: 1, milliseconds: 0 });
}

const snapshotSpec = (size, clients) => ({
  loop: 'snapshot',
  container: CONTAINER,
  clients,
  source: `${sourceOf(size)}-0`,
});

export const snapshotStage = {
  titles: Object.keys(SOURCES).flatMap((size) => CLIENTS.map((clients) => titleOf(size, clients))),
  async run(bench) {
    await withPair(bench, async (pair) => {
      await createContainers(bench, pair, CONTAINER);
      for (const size of Object.keys(SOURCES)) {
        for (const server of Object.values(pair)) await prepare(bench, server, size);
        for (const clients of CLIENTS) {
          await pairRow(bench, pair, {
            title: titleOf(size, clients),
            meaning: 'one blob, of which every request takes a snapshot',
            spec: () => snapshotSpec(size, clients),
          });
        }
      }
    });
  },
};

const SNAPSHOTS = 100_000;

export const snapshotListStage = {
  titles: [`List page of 5,000 among ${count(SNAPSHOTS)} snapshots`],
  async run(bench) {
    const folders = { holdfast: bench.newFolder(), azurite: bench.newFolder() };
    const rows = SNAPSHOTS + SNAPSHOTS / SNAPSHOTS_EACH;
    bench.say(`filling ${count(SNAPSHOTS)} snapshots`);
    await runScript('fill-holdfast.mjs', [folders.holdfast, 'snapshots', 'filled', rows]);
    await fillAzurite(bench, folders.azurite, rows, 'snapshots');
    await withPair(
      bench,
      (pair) =>
        pairRow(bench, pair, {
          title: snapshotListStage.titles[0],
          meaning: `${SNAPSHOTS_EACH} snapshots of each blob; one client, maxresults=5000, page after page by marker, then from the beginning`,
          spec: () => ({ loop: 'list', container: 'filled', include: 'snapshots', clients: 1, stepsMin: 2 }),
        }),
      folders,
    );
  },
};

export const snapshotSizeStage = {
  titles: ['Snapshot Blob, of 1 GiB against 1 KiB'],
  async run(bench) {
    const server = await startServer('holdfast', bench.newFolder());
    try {
      await createContainers(bench, { server }, CONTAINER);
      for (const size of Object.keys(SOURCES)) await prepare(bench, server, size);
      await sizesRow(bench, server, {
        title: snapshotSizeStage.titles[0],
        meaning: 'one client; the time of a snapshot, how much it grows',
        sizes: Object.keys(SOURCES),
        spec: (size) => snapshotSpec(size, 1),
      });
    } finally {
      await server.stop();
    }
  },
};
