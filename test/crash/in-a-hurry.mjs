/**
 * For `node --import`: extents and segments of the log are small, and the collector hardly pauses. Work that takes hours and gigabytes otherwise takes
 * a second and what a test can write, so that a kill interrupts it.
 */
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

/** By file of build: what stands there, and what stands there instead. @type {Record<string, [RegExp, string][]>} */
const changes = {
  'partition/lmdb/layers.js': [[/(const CHECKPOINT_BYTES = )[^;]+/, '$1 200 << 10']],
  'extents/slotted-extents.js': [[/(const EXTENT_BYTES_MAX = )[^;]+/, '$1 8 << 20']],
  'content/gc/collector.js': [[/(const EVERY_MILLISECONDS = )[^;]+/, '$1 50']],
  'content/gc/policy.js': [
    [/(const RATIO_MAX = )[^;]+/, '$1 1'],
    [/(slackBytes: )[\d <]+/, '$1 256 << 10'],
    [/(sealBytesMin: )[\d <]+/, '$1 256 << 10 '],
  ],
};

/** @type {import('node:module').LoadHook} */
export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context);
  const changed = Object.entries(changes).find(([file]) => url.endsWith(`/build/${file}`));
  if (!changed) return loaded;
  let source = Buffer.from(/** @type {Uint8Array} */ (loaded.source)).toString();
  for (const [what, instead] of changed[1]) {
    if (!what.test(source)) throw new Error(`${what} is not in ${url}.`);
    source = source.replace(what, instead);
  }
  return { ...loaded, source };
}

if (isMainThread) register(import.meta.url);
