/** Rows that only Holdfast runs: it is held against itself. */
import { setTimeout as pause } from 'node:timers/promises';
import { interleave, measure, ratioOf, spread, summary } from './measure.mjs';
import { runScript, startServer } from './servers.mjs';

const count = (number) => number.toLocaleString('en');

export const flatStage = {
  titles: ['List page, among 100,000 against 10,000'],
  async run(bench) {
    const folder = bench.newFolder();
    const containers = { '10,000': 'few', '100,000': 'many' };
    bench.say('filling both sizes');
    for (const [blobs, container] of Object.entries(containers)) {
      await runScript('fill.mjs', [folder, container, blobs.replace(',', '')]);
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

export const deleteStage = {
  titles: ['Delete Container, answered', 'Delete Container, p99 of Put Blob while the sweeper runs'],
  async run(bench) {
    const blobs = bench.quick ? 100_000 : 1_000_000;
    const folder = bench.newFolder();
    bench.say(`filling ${count(blobs)} blobs for Delete Container`);
    await runScript('fill.mjs', [folder, 'filled', blobs]);
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
      const left = Number(await runScript('fill.mjs', [folder, '--trash']));
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
    const folders = {};
    const sides = {};
    try {
      for (const blobs of [1_000, 1_000_000]) {
        bench.say(`filling ${count(blobs)} blobs for growth`);
        folders[blobs] = bench.newFolder();
        await runScript('fill.mjs', [folders[blobs], 'filled', blobs]);
        sides[count(blobs)] = await startServer('holdfast', folders[blobs]);
      }
      await pause(500);
      for (const [title, loop] of [
        [growthStage.titles[1], 'get'],
        [growthStage.titles[0], 'overwrite'],
      ]) {
        if (!bench.wanted(title)) continue;
        bench.say(title);
        const spec = (side) => ({ loop, container: 'filled', clients: 64, keys: Number(side.replaceAll(',', '')) });
        const samples = await interleave(bench, sides, spec);
        const cost = ratioOf(samples, '1,000,000', '1,000', 'cpuMillisecondsPerOperation');
        const few = summary(samples, '1,000');
        const many = summary(samples, '1,000,000');
        bench.add({
          title,
          meaning: '64 clients, 1 KiB, existing names by chance; the time of an operation, how much it grows',
          unit: 'x',
          value: ratioOf(samples, '1,000', '1,000,000'),
          loopP99: many.loopP99,
          details: `${Math.round(few.opsPerSecond.median)}/s against ${Math.round(many.opsPerSecond.median)}/s; CPU time grows ${cost.median.toFixed(2)}x`,
          samples,
        });
      }
    } finally {
      for (const server of Object.values(sides)) await server.stop();
      for (const folder of Object.values(folders)) bench.removeFolder(folder);
    }
  },
};
