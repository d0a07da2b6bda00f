/** Rows of append and page blobs. */
import { createContainers } from './against-azurite.mjs';
import { createAppendBlob, createPageBlob } from './in-place-loops.mjs';
import { interleave, ratioOf, summary } from './measure.mjs';
import { clientsOf, count, pairRow, withPair } from './pairs.mjs';

const MEBIBYTE = 2 ** 20;
const GIBIBYTE = 2 ** 30;
const TEBIBYTE = 2 ** 40;

const appends = [
  { title: 'Append Block 1 KiB, 1 client', clients: 1, appendBlobs: 1 },
  { title: 'Append Block 1 KiB, 16 clients on one blob', clients: 16, appendBlobs: 1 },
  { title: 'Append Block 1 KiB, 64 clients on 64 blobs', clients: 64, appendBlobs: 64 },
];

export const appendStage = {
  titles: appends.map(({ title }) => title),
  async run(bench) {
    await withPair(bench, async (pair) => {
      await createContainers(bench, pair, 'appends');
      for (const { title, clients, appendBlobs } of appends) {
        await pairRow(bench, pair, {
          title,
          meaning: 'new blobs in each round; a blob takes 50,000 appends',
          spec() {
            const run = bench.unique();
            const blobs = Array.from({ length: appendBlobs }, (_, at) => createAppendBlob(`/appends/${run}-${at}`));
            return { loop: 'append', container: 'appends', clients, appendBlobs, run, prepare: blobs };
          },
        });
      }
    });
  },
};

const pageTitles = [1, 16].map((clients) => `Put Page 4 KiB, ${clientsOf(clients)}`);

export const putPageStage = {
  titles: pageTitles,
  async run(bench) {
    await withPair(bench, async (pair) => {
      await createContainers(bench, pair, 'pages');
      for (const clients of [1, 16]) {
        await pairRow(bench, pair, {
          title: `Put Page 4 KiB, ${clientsOf(clients)}`,
          meaning: 'one blob of 1 GiB, a new one in each round, at any place of it',
          spec() {
            const run = bench.unique();
            const prepare = [createPageBlob(`/pages/${run}`, GIBIBYTE)];
            return { loop: 'putPage', container: 'pages', clients, bytes: GIBIBYTE, run, prepare };
          },
        });
      }
    });
  },
};

const RANGES = 100_000;
const FILLERS = 64;
/** Each of Azurite's writes looks at all ranges that are there: 100,000 would take hours. */
const LISTS = { holdfast: 1, azurite: 20 };

export const pageRangesStage = {
  titles: [`Get Page Ranges of ${count(RANGES)} ranges`],
  async run(bench) {
    await withPair(bench, async (pair) => {
      await createContainers(bench, pair, 'pages');
      for (const [kind, server] of Object.entries(pair)) {
        const ranges = RANGES / LISTS[kind];
        bench.say(`${count(ranges)} writes to ${kind}`);
        await bench.order(server, {
          ...{ loop: 'fillPages', container: 'pages', run: 'listed', bytes: 512, every: 1_024, clients: FILLERS },
          ...{ milliseconds: 0, stepsMin: Math.ceil(ranges / FILLERS), writes: ranges },
          prepare: [createPageBlob('/pages/listed', ranges * 1_024)],
        });
      }
      await pairRow(bench, pair, {
        title: pageRangesStage.titles[0],
        meaning:
          'one client; every other page of a blob is written; an operation is the whole list, of which Holdfast and Azure send pages; Azurite lists a blob of 5,000 ranges twenty times',
        spec: (kind) => ({
          ...{ loop: 'pageRanges', container: 'pages', run: 'listed', clients: 1, stepsMin: 2 },
          ...{ ranges: RANGES / LISTS[kind], lists: LISTS[kind] },
        }),
      });
    });
  },
};

const written = { '1MiB': MEBIBYTE, '1GiB': GIBIBYTE };
const snapshotTitle = 'Snapshot Blob of 8 TiB with 1 GiB written, 1 client';
const flatTitle = 'Snapshot Blob of 8 TiB, with 1 GiB written against 1 MiB';

export const pageSnapshotStage = {
  titles: [snapshotTitle, flatTitle],
  async run(bench) {
    await withPair(bench, async (pair) => {
      await createContainers(bench, pair, 'pages');
      for (const [run, bytes] of Object.entries(written)) {
        const writes = Math.max(1, bytes / (4 * MEBIBYTE));
        await each(bench, pair, {
          ...{ loop: 'fillPages', container: 'pages', run, bytes: bytes / writes, every: GIBIBYTE, clients: 1 },
          ...{ milliseconds: 0, stepsMin: writes, prepare: [createPageBlob(`/pages/${run}`, 8 * TEBIBYTE)] },
        });
      }
      const spec = (source) => ({ loop: 'snapshot', container: 'pages', clients: 1, source });
      await pairRow(bench, pair, {
        title: snapshotTitle,
        meaning: 'one blob, of which every request takes a snapshot; writes of 4 MiB, one in each GiB',
        spec: () => spec('1GiB'),
      });
      if (!bench.wanted(flatTitle)) return;
      const samples = await interleave(bench, { '1MiB': pair.holdfast, '1GiB': pair.holdfast }, spec);
      bench.add({
        title: flatTitle,
        meaning: 'one client; the time of a snapshot, how much it grows',
        unit: 'x',
        value: ratioOf(samples, '1GiB', '1MiB', 'p50'),
        loopP99: summary(samples, '1GiB').loopP99,
        details: `${summary(samples, '1MiB').p50.toFixed(2)} ms against ${summary(samples, '1GiB').p50.toFixed(2)} ms`,
        samples,
      });
    });
  },
};

async function each(bench, pair, spec) {
  for (const server of Object.values(pair)) await bench.order(server, spec);
}
