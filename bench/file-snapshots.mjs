/** Rows of share snapshots: of shares of two sizes, and reads of a snapshot beside reads of its share. */
import { nameOf } from './blob-loops.mjs';
import { headerIn } from './http-client.mjs';
import { interleave, ratioOf, summary } from './measure.mjs';
import { runScript, startServer } from './servers.mjs';

const takeTitle = 'Snapshot Share of 1,000,000 files, against 1,000';
const readTitle = 'Get File of 4 KiB at the 200th snapshot, against the share';
const FIELD = 'cpuMillisecondsPerOperation';
const KEYS = 1_000;
const SNAPSHOTS = 200;
const SHARE = 'snapshots';

/** By the CPU time of the server, which a busy machine does not change. */
async function ratioRow(bench, sides, { title, meaning, spec }) {
  bench.say(title);
  const samples = await interleave(bench, sides, spec);
  const [base, other] = Object.keys(sides);
  const [of, against] = [other, base].map((side) => summary(samples, side));
  bench.add({
    title,
    meaning,
    unit: 'x',
    value: ratioOf(samples, other, base, FIELD),
    loopP99: of.loopP99,
    details: `CPU ${of[FIELD].toFixed(3)} ms (${other}) against ${against[FIELD].toFixed(3)} ms (${base}); p50 ${of.p50.toFixed(2)} against ${against.p50.toFixed(2)} ms`,
    samples,
  });
}

export const shareSnapshotStage = {
  titles: [takeTitle],
  long: true,
  async run(bench) {
    const sizes = { '1,000': 1_000, '1,000,000': 1_000_000 };
    const sides = {};
    const folders = [];
    try {
      // A server for each: one that deletes thousands of snapshots of two shares between checkpoints is slower with the second.
      for (const [side, size] of Object.entries(sizes)) {
        bench.say(`filling ${side} files`);
        const folder = bench.newFolder();
        folders.push(folder);
        await runScript('fill-holdfast.mjs', [folder, 'files', `files-${size}`, size]);
        sides[side] = await startServer('holdfast', folder);
      }
      await ratioRow(bench, sides, {
        title: takeTitle,
        meaning: 'one client; a snapshot is taken and deleted; the CPU time of both, how much it grows',
        spec: (side) => ({
          service: 'file',
          clients: 1,
          stepsMin: 4,
          loop: 'snapshotShare',
          parent: `files-${sizes[side]}`,
        }),
      });
    } finally {
      for (const server of Object.values(sides)) await server.stop();
      for (const folder of folders) bench.removeFolder(folder);
    }
  },
};

/** Each file has changed before some snapshot, and every second one after the last. */
export const shareSnapshotReadStage = {
  titles: [readTitle],
  async run(bench) {
    const folder = bench.newFolder();
    const server = await startServer('holdfast', folder);
    const fill = { of: 'files', service: 'file', parent: SHARE, loop: 'fillSmall', clients: 1, milliseconds: 0 };
    const take = { service: 'file', method: 'PUT', path: `/${SHARE}`, query: { restype: 'share', comp: 'snapshot' } };
    try {
      await bench.request(
        server,
        { service: 'file', method: 'PUT', path: `/${SHARE}`, query: { restype: 'share' } },
        201,
      );
      await bench.order(server, { ...fill, keys: KEYS, stepsMin: KEYS });
      let snapshot;
      for (let taken = 0; taken < SNAPSHOTS; taken++) {
        const change = { service: 'file', method: 'PUT', query: { comp: 'metadata' } };
        for (let i = 0; i < KEYS / SNAPSHOTS; i++)
          await bench.request(server, { ...change, path: `/${SHARE}/${nameOf((taken * KEYS) / SNAPSHOTS + i)}` }, 200);
        snapshot = headerIn((await bench.request(server, take, 201)).head, 'x-ms-snapshot');
      }
      await bench.order(server, { ...fill, keys: KEYS / 2, stepsMin: KEYS / 2 });
      const common = { service: 'file', parent: SHARE, loop: 'getSmall', keys: KEYS, clients: 16 };
      await ratioRow(
        bench,
        { share: server, snapshot: server },
        {
          title: readTitle,
          meaning:
            '16 clients; half of the files have changed since; the CPU time of a read of the snapshot, against the share',
          spec: (side) => (side === 'share' ? common : { ...common, snapshot }),
        },
      );
    } finally {
      await server.stop();
      bench.removeFolder(folder);
    }
  },
};
