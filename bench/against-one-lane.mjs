/** What the four lanes of MD5 are worth to a user: the same server with one lane. docs/adr/0012. */
import { createContainers } from './against-azurite.mjs';
import { interleave, ratioOf, summary } from './measure.mjs';
import { withPair } from './pairs.mjs';

const title = 'Put Blob 1 MiB, 16 clients, four lanes of MD5 against one';

export const oneLaneStage = {
  titles: [title],
  async run(bench) {
    await withPair(
      bench,
      async (pair) => {
        await createContainers(bench, pair, 'large');
        bench.say(title);
        const spec = { loop: 'putLarge', container: 'large', clients: 16, bytes: 1 << 20 };
        const samples = await interleave(bench, pair, () => ({ ...spec, run: bench.unique() }));
        const sides = { 'four lanes': summary(samples, 'holdfast'), 'one lane': summary(samples, 'oneLane') };
        bench.add({
          title,
          meaning: 'CPU time per operation with one lane, as a multiple of that with four',
          unit: 'x',
          value: ratioOf(samples, 'oneLane', 'holdfast', 'cpuMillisecondsPerOperation'),
          loopP99: sides['four lanes'].loopP99,
          details: Object.entries(sides)
            .map(
              ([name, { opsPerSecond, cpuMillisecondsPerOperation }]) =>
                `${name} ${Math.round(opsPerSecond.median)}/s (${cpuMillisecondsPerOperation.toFixed(2)} ms of CPU)`,
            )
            .join('; '),
          samples,
        });
      },
      { holdfast: bench.newFolder(), oneLane: bench.newFolder() },
    );
  },
};
