/** Rows that only Holdfast runs: it is compared with itself. */
import { setTimeout as pause } from 'node:timers/promises';
import { interleave, measure, ratioOf, spread, summary } from './measure.mjs';
import { count } from './pairs.mjs';
import { short } from './report.mjs';
import { runScript, startServer } from './servers.mjs';

export const flatStage = {
  titles: ['List page, among 100,000 against 10,000'],
  async run(bench) {
    const folder = bench.newFolder();
    const containers = { '10,000': 'few', '100,000': 'many' };
    bench.say('filling both sizes');
    for (const [blobs, container] of Object.entries(containers)) {
      await runScript('fill-holdfast.mjs', [folder, 'blobs', container, blobs.replace(',', '')]);
    }
    const server = await startServer('holdfast', folder);
    try {
      const sides = { '10,000': server, '100,000': server };
      const spec = (side) => ({ loop: 'list', container: containers[side], clients: 1, stepsMin: 4 });
      const samples = await interleave(bench, sides, spec);
      bench.add({
        title: flatStage.titles[0],
        meaning: 'two containers of one server, page after page of 5,000; the time of a page, how much it grows',
        unit: 'x',
        value: ratioOf(samples, '100,000', '10,000', 'p50'),
        loopP99: summary(samples, '100,000').loopP99,
        details: `${summary(samples, '10,000').p50.toFixed(1)} ms against ${summary(samples, '100,000').p50.toFixed(1)} ms`,
        samples,
      });
    } finally {
      await server.stop();
      bench.removeFolder(folder);
    }
  },
};

/** Copies share the bytes of their source, so its size does not matter. */
export const copyStage = {
  titles: ['Copy Blob, of 256 MiB against 1 MiB'],
  async run(bench) {
    const folder = bench.newFolder();
    const server = await startServer('holdfast', folder);
    const container = 'copies';
    try {
      await bench.request(server, { method: 'PUT', path: `/${container}`, query: { restype: 'container' } }, 201);
      const blockBytes = 1 << 20;
      for (const megabytes of [1, 256]) {
        const upload = {
          loop: 'upload',
          run: `up-${megabytes}`,
          bytes: megabytes * blockBytes,
          blockBytes,
          parallel: 1,
        };
        await bench.order(server, { ...upload, container, clients: 1, milliseconds: 0, stepsMin: 1 });
      }
      const spec = (side) => ({ loop: 'copy', container, clients: 1, source: `up-${side}-0`, run: bench.unique() });
      await sizesRow(bench, server, {
        title: copyStage.titles[0],
        meaning: 'one client, within an account, onto a new name with each copy; the time of a copy, how much it grows',
        sizes: ['1', '256'],
        spec,
      });
    } finally {
      await server.stop();
      bench.removeFolder(folder);
    }
  },
};

/** One operation of one server on a small blob, and on a large one. */
export async function sizesRow(bench, server, { title, meaning, sizes: [small, large], spec }) {
  const samples = await interleave(bench, { [small]: server, [large]: server }, spec);
  bench.add({
    title,
    meaning,
    unit: 'x',
    value: ratioOf(samples, large, small, 'p50'),
    loopP99: summary(samples, large).loopP99,
    details: `${summary(samples, small).p50.toFixed(1)} ms against ${summary(samples, large).p50.toFixed(1)} ms`,
    samples,
  });
}

export const deleteStage = {
  titles: ['Delete Container, answered', 'Delete Container, p99 of Put Blob while the sweeper runs'],
  async run(bench) {
    const blobs = bench.quick ? 100_000 : 1_000_000;
    const folder = bench.newFolder();
    bench.say(`filling ${count(blobs)} blobs for Delete Container`);
    await runScript('fill-holdfast.mjs', [folder, 'blobs', 'filled', blobs]);
    const server = await startServer('holdfast', folder);
    try {
      const container = (name, method, query = {}) => ({
        method,
        path: `/${name}`,
        query: { restype: 'container', ...query },
      });
      await bench.request(server, container('beside', 'PUT'), 201);
      const put = () => ({ loop: 'put', container: 'beside', clients: 16, run: bench.unique() });
      const { load, rounds, milliseconds } = bench;
      await measure(load, server, { ...put(), milliseconds });
      const without = [];
      for (let round = 0; round < rounds; round++) {
        without.push(await measure(load, server, { ...put(), milliseconds }));
      }

      bench.say('Delete Container');
      const { milliseconds: answered } = await bench.request(server, container('filled', 'DELETE'), 202);
      const again = await bench.request(server, container('filled', 'PUT'), 201);
      const list = await bench.request(server, container('filled', 'GET', { comp: 'list' }), 200);
      if (list.body.includes('<Blob>')) throw new Error('the new container holds blobs of the deleted one');
      const deleted = performance.now();
      const swept = [];
      for (let round = 0; round < rounds; round++) {
        swept.push(await measure(load, server, { ...put(), milliseconds }));
      }
      const sweptSeconds = (performance.now() - deleted) / 1_000;
      const left = Number(await runScript('fill-holdfast.mjs', [folder, '--deletions']));
      const progress =
        left === 0
          ? 'THE SWEEPER WAS DONE BEFORE THE ROUNDS WERE'
          : `swept beside the writes: ${Math.round((blobs - left) / sweptSeconds)} blobs/s`;
      const loopP99 = Math.max(...swept.map((sample) => sample.loopP99));
      bench.add({
        title: 'Delete Container, answered',
        meaning: `a container with ${count(blobs)} blobs; the name is free at once: creating it again took ${again.milliseconds.toFixed(1)} ms`,
        unit: 'ms',
        value: spread([answered]),
        samples: [{ answered, createdAgain: again.milliseconds }],
      });
      const p99 = (samples) => spread(samples.map((sample) => sample.p99));
      bench.add({
        title: 'Delete Container, p99 of Put Blob while the sweeper runs',
        meaning: `16 clients write new blobs to another container, before the deletion and while ${count(blobs)} blobs are swept`,
        unit: 'x',
        value: spread(swept.map((sample) => sample.p99 / p99(without).median)),
        loopP99,
        details: `p99 ${p99(without).median.toFixed(1)} ms without, ${p99(swept).median.toFixed(1)} ms with; writes ${rate(without)}/s without, ${rate(swept)}/s with; ${progress}`,
        samples: { without, swept, left },
      });
    } finally {
      await server.stop();
      bench.removeFolder(folder);
    }
  },
};

function rate(samples) {
  return Math.round(spread(samples.map((sample) => sample.opsPerSecond)).median);
}

export const growthStage = {
  titles: ['Put Blob', 'Get Blob'].map((operation) => `${operation} at 1,000,000 blobs against 1,000`),
  deep: true,
  async run(bench) {
    const fill = (folder, blobs) => runScript('fill-holdfast.mjs', [folder, 'blobs', 'filled', blobs]);
    await withSizes(bench, fill, async (sides) => {
      for (const [title, loop] of [
        [growthStage.titles[1], 'get'],
        [growthStage.titles[0], 'overwrite'],
      ]) {
        await growthRow(bench, sides, {
          title,
          meaning: '64 clients, 1 KiB, existing names by chance; the time of an operation, how much it grows',
          spec: (keys) => ({ loop, container: 'filled', clients: 64, keys }),
        });
      }
    });
  },
};

/** Two servers side by side, one with a thousand times as much as the other. `fill` gets each folder before its server starts. */
export async function withSizes(bench, fill, body) {
  const folders = [];
  const sides = {};
  try {
    for (const size of [1_000, 1_000_000]) {
      bench.say(`filling ${count(size)}`);
      const folder = bench.newFolder();
      folders.push(folder);
      await fill(folder, size);
      sides[count(size)] = await startServer('holdfast', folder);
    }
    await pause(500);
    await body(sides);
  } finally {
    for (const server of Object.values(sides)) await server.stop();
    for (const folder of folders) bench.removeFolder(folder);
  }
}

export async function growthRow(bench, sides, { title, meaning, spec }) {
  if (!bench.wanted(title)) return;
  bench.say(title);
  const samples = await interleave(bench, sides, (side) => spec(Number(side.replaceAll(',', ''))));
  const [few, many] = Object.keys(sides);
  const cost = ratioOf(samples, many, few, 'cpuMillisecondsPerOperation');
  const [rateOfFew, rateOfMany] = [few, many].map((side) => summary(samples, side).opsPerSecond.median);
  bench.add({
    title,
    meaning,
    unit: 'x',
    value: ratioOf(samples, few, many),
    loopP99: summary(samples, many).loopP99,
    details: `${short(rateOfFew)}/s against ${short(rateOfMany)}/s; CPU time grows ${cost.median.toFixed(2)}x`,
    samples,
  });
}
