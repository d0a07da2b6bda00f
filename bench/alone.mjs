/** Rows that only Holdfast runs: it is held against itself. */
import { setTimeout as pause } from 'node:timers/promises';
import { interleave, measure, ratioOf, spread, summary } from './measure.mjs';
import { runScript, startServer } from './servers.mjs';

const count = (number) => number.toLocaleString('en');

export const flatStage = {
  titles: ['List page, among 100,000 against 10,000'],
  async run(bench) {
    const [few, many] = [bench.remembered(10_000), bench.remembered(100_000)];
    if (!few || !many) return;
    bench.add({
      title: 'List page, among 100,000 against 10,000',
      meaning: 'the median time of a page from the two rows above: how much it grows',
      unit: 'x',
      value: spread([many.sides.holdfast.p50 / few.sides.holdfast.p50]),
      azurite: spread([many.sides.azurite.p50 / few.sides.azurite.p50]),
    });
  },
};

export const deleteStage = {
  titles: ['Delete Container, answered', 'Delete Container, p99 of Put Blob while the sweeper runs'],
  async run(bench) {
    const blobs = bench.deep ? 1_000_000 : 100_000;
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
      const swept = [];
      for (let round = 0; round < rounds; round++) {
        const left = Number(await runScript('fill.mjs', [folder, '--trash']));
        if (left === 0) break;
        swept.push({ ...(await measure(load, server, { ...put(), milliseconds })), blobsLeft: left });
      }
      if (swept.length > 1 && Number(await runScript('fill.mjs', [folder, '--trash'])) === 0) swept.pop();
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
        details: `p99 ${p99(without).median.toFixed(1)} ms without, ${p99(swept)?.median.toFixed(1)} ms with; writes ${rate(without)}/s without, ${rate(swept)}/s with; swept while writing: ${sweepRate(swept)} blobs/s`,
        samples: { without, swept },
      });
    } finally {
      await server.stop();
      bench.removeFolder(folder);
    }
  },
};

function rate(samples) {
  return Math.round(spread(samples.map((sample) => sample.opsPerSecond))?.median ?? 0);
}

function sweepRate(samples) {
  if (samples.length < 2) return '?';
  const elapsed = samples.slice(0, -1).reduce((sum, sample) => sum + sample.elapsed, 0);
  return Math.round(((samples[0].blobsLeft - samples.at(-1).blobsLeft) / elapsed) * 1_000);
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
