/** Rows of the File service: no peer has it, so they are compared with our own blobs, and with themselves at other sizes. */
import { interleave, ratioOf, summary } from './measure.mjs';
import { clientsOf } from './pairs.mjs';
import { short } from './report.mjs';
import { runScript, startServer } from './servers.mjs';

const KEYS = 1_000;
const LARGE = { bytes: 256 << 20, rangeBytes: 4 << 20, parallel: 4 };

const smallRows = [1, 16, 64].flatMap((clients) =>
  [
    { title: 'Create File with 4 KiB', peer: 'Put Blob', loop: 'putSmall' },
    { title: 'Get File of 4 KiB', peer: 'Get Blob', loop: 'getSmall' },
    { title: 'Delete File of 4 KiB', peer: 'Delete Blob', loop: 'deleteSmall', field: 'p50' },
  ].map(({ title, peer, ...row }) => ({ title: `${title}, ${clientsOf(clients)}, against ${peer}`, clients, ...row })),
);
const uploadTitle = 'Upload of 256 MiB in ranges of 4 MiB, 4 at a time, against blocks';
const downloadTitle = 'Download of a file of 256 MiB, against a blob';

/** Files and blobs of one server, in turns. */
export const fileStage = {
  titles: [...smallRows.map(({ title }) => title), uploadTitle, downloadTitle],
  async run(bench) {
    const folder = bench.newFolder();
    const server = await startServer('holdfast', folder);
    const sides = { files: server, blobs: server };
    const own = (side) => ({
      of: side,
      service: side === 'files' ? 'file' : 'blob',
      parent: 'small',
      run: bench.unique(),
    });
    try {
      await makeParents(bench, server, 'small');
      for (const side of Object.keys(sides))
        await bench.order(server, {
          ...own(side),
          loop: 'fillSmall',
          keys: KEYS,
          clients: 1,
          milliseconds: 0,
          stepsMin: KEYS,
        });
      for (const { title, clients, loop, field } of smallRows) {
        await sideRow(bench, sides, { title, field, spec: (side) => ({ ...own(side), loop, clients, keys: KEYS }) });
      }
      await sideRow(bench, sides, {
        title: uploadTitle,
        field: 'p50',
        spec: (side) => ({ ...own(side), ...LARGE, ...largeLoop(side), clients: 1 }),
      });
      const down = (side) => ({
        service: own(side).service,
        loop: 'getLarge',
        container: 'small',
        run: `down-${side}`,
        keys: 1,
        clients: 1,
      });
      if (!bench.wanted(downloadTitle)) return;
      for (const side of Object.keys(sides))
        await bench.order(server, {
          ...own(side),
          ...LARGE,
          ...largeLoop(side),
          run: `down-${side}`,
          clients: 1,
          milliseconds: 0,
        });
      await sideRow(bench, sides, { title: downloadTitle, field: 'p50', spec: down });
    } finally {
      await server.stop();
      bench.removeFolder(folder);
    }
  },
};

const largeLoop = (side) =>
  side === 'files' ? { loop: 'uploadFile' } : { loop: 'upload', container: 'small', blockBytes: LARGE.rangeBytes };

const listTitle = 'List page of 5,000 files, among 1,000,000 against 10,000';
const renameTitle = 'Rename of a directory with 1,000,000 files below, against 10,000';

export const fileGrowthStage = {
  titles: [listTitle, renameTitle],
  long: true,
  async run(bench) {
    const folder = bench.newFolder();
    const sizes = { '10,000': 10_000, '1,000,000': 1_000_000 };
    for (const [side, size] of Object.entries(sizes)) {
      bench.say(`filling ${side} files`);
      await runScript('fill-holdfast.mjs', [folder, 'files', `files-${size}`, size]);
    }
    const server = await startServer('holdfast', folder);
    const sides = Object.fromEntries(Object.keys(sizes).map((side) => [side, server]));
    const common = (side) => ({ service: 'file', clients: 1, stepsMin: 4, parent: `files-${sizes[side]}` });
    try {
      const grows = 'one client; the time of a request, how much it grows';
      await growth(bench, sides, {
        title: listTitle,
        meaning: grows,
        spec: (side) => ({ ...common(side), loop: 'listFiles', parent: `${common(side).parent}/filled` }),
      });
      await growth(bench, sides, {
        title: renameTitle,
        meaning: grows,
        spec: (side) => ({ ...common(side), loop: 'renameDirectory', directory: 'filled' }),
      });
    } finally {
      await server.stop();
      bench.removeFolder(folder);
    }
  },
};

async function makeParents(bench, server, name) {
  await bench.request(server, { method: 'PUT', path: `/${name}`, query: { restype: 'container' } }, 201);
  await bench.request(server, { service: 'file', method: 'PUT', path: `/${name}`, query: { restype: 'share' } }, 201);
}

/** @param field a time that is compared in place of the rate */
async function sideRow(bench, sides, { title, field, spec }) {
  if (!bench.wanted(title)) return;
  bench.say(title);
  const samples = await interleave(bench, sides, spec);
  const [files, blobs] = ['files', 'blobs'].map((side) => summary(samples, side));
  bench.add({
    title,
    meaning: 'files and blobs of one server, interleaved; the rate of the files as a part of that of the blobs',
    unit: 'x',
    value: field ? ratioOf(samples, 'blobs', 'files', field) : ratioOf(samples, 'files', 'blobs'),
    loopP99: files.loopP99,
    details: `${short(files.opsPerSecond.median)}/s (${files.p50.toFixed(2)} ms) against ${short(blobs.opsPerSecond.median)}/s (${blobs.p50.toFixed(2)} ms); CPU ${files.cpuMillisecondsPerOperation.toFixed(3)} against ${blobs.cpuMillisecondsPerOperation.toFixed(3)} ms`,
    samples,
  });
}

async function growth(bench, sides, { title, meaning, spec }) {
  if (!bench.wanted(title)) return;
  bench.say(title);
  const samples = await interleave(bench, sides, spec);
  const [few, many] = Object.keys(sides);
  bench.add({
    title,
    meaning,
    unit: 'x',
    value: ratioOf(samples, many, few, 'p50'),
    loopP99: summary(samples, many).loopP99,
    details: `${summary(samples, few).p50.toFixed(2)} ms at ${few} against ${summary(samples, many).p50.toFixed(2)} ms at ${many}`,
    samples,
  });
}
