/** Rows of the Blob service that both servers run. */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { GROUPS, nameOf } from './blob-loops.mjs';
import { spread } from './measure.mjs';
import { clientsOf, count, crowdRow, pairRow, withPair } from './pairs.mjs';
import { runScript, startServer } from './servers.mjs';

export const startStage = {
  titles: ['Start to first answer', 'Private memory at start'],
  async run(bench) {
    const samples = [];
    for (let round = 0; round < bench.rounds; round++) {
      const sample = {};
      for (const kind of ['holdfast', 'azurite']) {
        const server = await startServer(kind, bench.newFolder());
        await pause(500);
        sample[kind] = { milliseconds: server.startMilliseconds, megabytes: server.privateMegabytes() };
        await server.stop();
      }
      samples.push(sample);
    }
    bench.add({
      title: 'Start to first answer',
      meaning: 'from the start of the process on an empty folder to the answer to a signed List Containers',
      ...valuesOf(samples, 'milliseconds', 'ms'),
    });
    bench.add({
      title: 'Private memory at start',
      meaning: 'half a second after that answer; Private_Clean and Private_Dirty of smaps_rollup',
      ...valuesOf(samples, 'megabytes', 'MB'),
    });
  },
};

export const putStage = {
  titles: [1, 16, 64].map((clients) => `Put Blob 1 KiB, ${clientsOf(clients)}`),
  async run(bench) {
    await withPair(bench, async (pair) => {
      await createContainers(bench, pair, 'put');
      for (const clients of [1, 16, 64]) {
        await pairRow(bench, pair, {
          title: `Put Blob 1 KiB, ${clientsOf(clients)}`,
          meaning: 'one container, a new name with each write; the folder is empty before the first row',
          spec: () => ({ loop: 'put', container: 'put', clients, run: bench.unique() }),
        });
      }
    });
  },
};

export const oneBlobStage = {
  titles: ['writes under its lease', 'If-Match counter', 'lease as mutex'].map((end) => `One blob against 64, ${end}`),
  async run(bench) {
    const loops = {
      underLease: 'every write carries the lease id that all clients share, and succeeds; rate = writes',
      ifMatchCounter:
        'Get Blob, then Put Blob with If-Match and the number one higher; 412 = try again; rate = answers; no update lost',
      leaseCounter:
        'acquire (409 = try again), Get Blob, Put Blob with lease and If-Match, release; rate = answers; no update lost',
    };
    await withPair(bench, async (pair) => {
      await createContainers(bench, pair, 'one');
      for (const [at, [loop, meaning]] of Object.entries(loops).entries()) {
        await crowdRow(bench, pair, {
          title: oneBlobStage.titles[at],
          meaning: `64 clients, blobs of 1 KiB; ${meaning}`,
          thing: 'blob',
          spec: (blobs) => ({ loop, container: 'one', blobs, run: bench.unique() }),
        });
      }
    });
  },
};

const BATCH = 256;

export const batchStage = {
  titles: [`Blob Batch, delete of ${BATCH}`],
  async run(bench) {
    await withPair(bench, async (pair) => {
      await createContainers(bench, pair, 'batch');
      await pairRow(bench, pair, {
        title: batchStage.titles[0],
        meaning: `one client deletes ${BATCH} blobs of 1 KiB by one request; ratio of the p50; the rate and CPU have in them the Puts before it`,
        field: 'p50',
        spec: () => ({
          ...{ loop: 'deleteBatch', container: 'batch', clients: 1, parts: BATCH, parallel: 16, stepsMin: 5 },
          run: bench.unique(),
        }),
        // A round has too few batches for V8 to compile what they need.
        warmUp: (spec) => ({ ...spec, stepsMin: 16 }),
      });
    });
  },
};

/** Get, list and memory over a folder that was filled before the servers started. */
export function filledStage(blobs) {
  const gets = blobs === 10_000 ? [1, 16, 64] : [];
  const getTitles = gets.map((clients) => `Get Blob 1 KiB, ${clientsOf(clients)}`);
  const listTitle = `List page of 5,000 among ${count(blobs)} blobs`;
  const memoryTitle = `Private memory with ${count(blobs)} blobs`;
  return {
    titles: [...getTitles, listTitle, memoryTitle],
    async run(bench) {
      bench.say(`filling ${count(blobs)} blobs`);
      const folders = { holdfast: bench.newFolder(), azurite: bench.newFolder() };
      await runScript('fill-holdfast.mjs', [folders.holdfast, 'blobs', 'filled', blobs]);
      await fillAzurite(bench, folders.azurite, blobs);
      await withPair(
        bench,
        async (pair) => {
          for (const [at, clients] of gets.entries()) {
            await pairRow(bench, pair, {
              title: getTitles[at],
              meaning: `one container with ${count(blobs)} blobs, names by chance`,
              spec: () => ({ loop: 'get', container: 'filled', clients, keys: blobs }),
            });
          }
          await pairRow(bench, pair, {
            title: listTitle,
            meaning: 'one client, maxresults=5000, page after page by marker, then from the beginning',
            spec: () => ({ loop: 'list', container: 'filled', clients: 1, stepsMin: 2 }),
          });
          const sample = {};
          for (const [kind, server] of Object.entries(pair)) sample[kind] = { megabytes: server.privateMegabytes() };
          bench.add({
            title: memoryTitle,
            meaning: `the folder filled before the start, then the rows above; private as at start`,
            ...valuesOf([sample], 'megabytes', 'MB'),
          });
        },
        folders,
      );
    },
  };
}

const TAGGED = 100_000;

export const tagStage = {
  titles: [`Find Blobs by Tags, ${count(TAGGED / GROUPS)} of ${count(TAGGED)}`],
  async run(bench) {
    const folders = { holdfast: bench.newFolder(), azurite: bench.newFolder() };
    await runScript('fill-holdfast.mjs', [folders.holdfast, 'tagged', 'filled', TAGGED]);
    await fillAzurite(bench, folders.azurite, TAGGED, 'tagged');
    await withPair(
      bench,
      (pair) =>
        pairRow(bench, pair, {
          title: tagStage.titles[0],
          meaning: 'one client, one container, one tag of each blob with 100 values, another value with each search',
          spec: () => ({ loop: 'findTagged', groups: GROUPS, clients: 1, run: bench.unique(), stepsMin: 2 }),
        }),
      folders,
    );
  },
};

const MEBIBYTE = 1 << 20;
const large = {
  put: 'Put Blob 1 MiB, 16 clients',
  get: 'Get Blob 1 MiB, 16 clients',
  upload: 'Upload of 256 MiB, blocks of 8 MiB, 4 at a time',
  download: 'Download of 256 MiB',
  copy: 'Copy Blob of 256 MiB within the account, 64 clients',
  commit: 'Put Block List of 10,000 blocks',
};

/** About as many bytes as a row of large writes fills, of both servers together. */
const WRITTEN_BYTES = 6 * 2 ** 30;

/**
 * On a virtual machine, memory that was unused for a while belongs to the host again, and getting a page back costs ten times as much as writing
 * it, for `dd` too. Pages that are written and removed first are there for both.
 */
function warmMemory(bench) {
  const file = join(bench.newFolder(), 'warm');
  const piece = Buffer.alloc(8 * MEBIBYTE, 1);
  const descriptor = openSync(file, 'w');
  for (let left = Math.min(WRITTEN_BYTES, freemem() / 2); left > 0; left -= piece.length) writeSync(descriptor, piece);
  closeSync(descriptor);
  rmSync(file);
}

export const largeStage = {
  titles: Object.values(large),
  async run(bench) {
    await withPair(bench, async (pair) => {
      await createContainers(bench, pair, 'large');
      const common = { container: 'large', clients: 16 };
      const each = async (spec) => {
        for (const server of Object.values(pair)) await bench.order(server, spec);
      };
      if (bench.wanted(large.put)) warmMemory(bench);
      await pairRow(bench, pair, {
        title: large.put,
        meaning: 'one container, a new name with each write',
        spec: () => ({ ...common, loop: 'putLarge', bytes: MEBIBYTE, run: bench.unique() }),
      });
      const keys = 64;
      const fill = { ...common, loop: 'putLarge', bytes: MEBIBYTE, run: 'get', milliseconds: 0, stepsMin: keys / 16 };
      if (bench.wanted(large.get)) await each(fill);
      await pairRow(bench, pair, {
        title: large.get,
        meaning: `${keys} blobs, one after another`,
        spec: () => ({ ...common, loop: 'getLarge', keys, run: 'get' }),
      });
      const transfer = { container: 'large', clients: 1, bytes: 256 * MEBIBYTE, blockBytes: 8 * MEBIBYTE, parallel: 4 };
      const upload = { ...transfer, loop: 'upload', run: 'up', stepsMin: 1 };
      if (bench.wanted(large.upload)) warmMemory(bench);
      await pairRow(bench, pair, {
        title: large.upload,
        meaning: 'Put Block over four connections, then Put Block List; an operation is all of it',
        spec: () => ({ ...upload, run: bench.unique() }),
      });
      if (bench.wanted(large.download) || bench.wanted(large.copy)) await each({ ...upload, milliseconds: 0 });
      await pairRow(bench, pair, {
        title: large.download,
        meaning: 'Get Blob of what was uploaded so, over one connection',
        spec: () => ({ container: 'large', clients: 1, loop: 'getLarge', keys: 1, run: 'up' }),
      });
      await pairRow(bench, pair, {
        title: large.copy,
        meaning: 'what was uploaded so, onto a new name with each copy; complete when it is answered',
        spec: () => ({
          container: 'large',
          clients: 64,
          loop: 'copy',
          source: 'up-0',
          run: bench.unique(),
          stepsMin: 1,
        }),
      });
      const list = { container: 'large', run: 'list', blocks: 10_000 };
      if (bench.wanted(large.commit)) {
        await each({ ...list, loop: 'stage', clients: 16, milliseconds: 0, stepsMin: list.blocks / 16 });
      }
      await pairRow(bench, pair, {
        title: large.commit,
        meaning: 'blocks of 1 KiB that are committed again and again, each time in the opposite order',
        spec: () => ({ ...list, loop: 'commit', clients: 1 }),
      });
    });
  },
};

export async function fillAzurite(bench, folder, blobs, what = 'blobs') {
  const server = await startServer('azurite', folder);
  try {
    await createContainers(bench, { server }, 'filled');
    const put = { method: 'PUT', path: `/filled/${nameOf(0)}`, headers: { 'x-ms-blob-type': 'BlockBlob' } };
    await bench.request(server, { ...put, body: 'x'.repeat(1_024) }, 201);
  } finally {
    await server.stop();
  }
  await runScript('fill-azurite.mjs', [folder, what, 'filled', blobs]);
}

export async function createContainers(bench, servers, container) {
  for (const server of Object.values(servers)) {
    await bench.request(server, { method: 'PUT', path: `/${container}`, query: { restype: 'container' } }, 201);
  }
}

function valuesOf(samples, field, unit) {
  const of = (kind) => spread(samples.map((sample) => sample[kind][field]));
  return { unit, value: of('holdfast'), azurite: of('azurite'), samples };
}
