/** Rows at one client, beside the limit that this machine sets to any server on node:http: docs/adr/0008. */
import { createContainers } from './against-azurite.mjs';
import { interleave, ratioOf, summary } from './measure.mjs';
import { withPair } from './pairs.mjs';

const titles = {
  put: 'Put Blob 1 KiB, 1 client, against the limit',
  get: 'Get Blob 1 KiB, 1 client, against the limit',
};
const KEYS = 1_000;

export const limitStage = {
  titles: Object.values(titles),
  async run(bench) {
    await withPair(
      bench,
      async (pair) => {
        await createContainers(bench, pair, 'filled');
        for (const server of Object.values(pair)) {
          const spec = {
            loop: 'fill',
            container: 'filled',
            clients: 16,
            keys: KEYS,
            milliseconds: 0,
            stepsMin: KEYS / 16,
          };
          await bench.order(server, spec);
        }
        for (const [loop, title] of Object.entries(titles)) {
          if (!bench.wanted(title)) continue;
          bench.say(title);
          const samples = await interleave(bench, pair, () => ({
            loop,
            container: 'filled',
            clients: 1,
            keys: KEYS,
            run: bench.unique(),
          }));
          const sides = { Holdfast: summary(samples, 'holdfast'), limit: summary(samples, 'limit') };
          bench.add({
            title,
            meaning:
              'one client; the rate of Holdfast as a share of that of the limit, a server that decides and keeps nothing',
            unit: 'x',
            value: ratioOf(samples, 'holdfast', 'limit'),
            loopP99: sides.Holdfast.loopP99,
            details: Object.entries(sides)
              .map(
                ([name, { opsPerSecond, p50 }]) =>
                  `${name} ${Math.round(opsPerSecond.median)}/s (p50 ${p50.toFixed(2)} ms)`,
              )
              .join('; '),
            samples,
          });
        }
      },
      { holdfast: bench.newFolder(), limit: bench.newFolder() },
    );
  },
};
