/** Blobs come and most of them go, round by round: their space must come back while the server answers others. */

import { bound, settle } from '../support/extent-usage.mjs';
import { randomOf } from '../support/random.mjs';
import { checkFolder, startServer } from '../support/server-process.mjs';
import { connect } from '../support/signed-client.mjs';
import { newBlobs } from './blobs.mjs';
import { startSteadyLoad } from './steady.mjs';

const GIB = 2 ** 30;
const WRITERS = 4;
const DELETED = 0.9;
const SLOWEST_MILLISECONDS = 10_000;

/**
 * @param {{ location: string, gib: number, rounds: number, seed: number, print: (line: string) => void }} options
 * @returns {Promise<string[]>} what is wrong
 */
export async function space({ location, gib, rounds, seed, print }) {
  const server = await startServer(location, { flags: ['--log-level', 'warn'] });
  const end = () => server.signal('SIGKILL');
  process.once('exit', end);
  const client = connect(server.origin);
  await client.createContainer('small');
  await client.createContainer('large');
  const steady = startSteadyLoad(server.origin, 'small');
  const random = randomOf(seed);
  const writers = Array.from({ length: WRITERS }, (_, number) =>
    newBlobs(connect(server.origin), `large/${number}`, randomOf(random.below(2 ** 31))),
  );
  /** @type {string[]} */
  const faults = [];
  try {
    for (let round = 1; round <= rounds && faults.length === 0; round++) await oneRound(round);
  } catch (error) {
    faults.push(String(error));
  }
  await steady.stop();
  client.close();
  for (const writer of writers) writer.close();
  if (faults.length > 0) print(server.stdout() + server.stderr());
  const { code } = await server.kill('SIGTERM');
  process.off('exit', end);
  if (code !== 0) faults.push(`the server ended with ${code}`);
  const checked = await checkFolder(location);
  print(checked.text.trim());
  if (checked.code !== 0) faults.push('holdfast check found something');
  return faults;

  /** @param {number} round */
  async function oneRound(round) {
    const started = performance.now();
    const share = (gib * GIB) / rounds / WRITERS;
    await Promise.all(writers.map((writer) => writer.write(share)));
    await Promise.all(writers.map((writer) => writer.remove(DELETED)));
    const seconds = (performance.now() - started) / 1000;
    const beside = await steady.figures();
    const live = writers.reduce((sum, writer) => sum + writer.live(), 0);
    const { bytes, seconds: waited, settled } = await settle(location, live);
    await Promise.all(writers.map((writer) => writer.verify()));
    const after = await steady.figures();
    const requests = writers.map((writer) => writer.figures());
    const slowest = Math.max(beside.slowest, after.slowest, ...requests.map((figures) => figures.slowest));

    print(
      `round ${round}: ${mebibytes((gib * GIB) / rounds)} written in ${seconds.toFixed(1)} s, extents ${mebibytes(bytes)}` +
        ` for ${mebibytes(live)} live (${(bytes / live).toFixed(2)} x, at most ${mebibytes(bound(live))})` +
        ` after ${waited.toFixed(1)} s`,
    );
    print(`  beside it ${spelled(beside)}; then ${spelled(after)}; slowest of all ${Math.round(slowest)} ms`);
    faults.push(...beside.faults, ...after.faults, ...requests.flatMap((figures) => figures.faults));
    if (!settled) faults.push(`round ${round}: the extents take more than ${mebibytes(bound(live))} after a minute`);
    if (slowest > SLOWEST_MILLISECONDS) faults.push(`round ${round}: a request took ${Math.round(slowest)} ms`);
  }
}

/** @param {import('./steady.mjs').Figures} figures */
function spelled({ count, p50, p99 }) {
  return `${count} small requests, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
}

/** @param {number} bytes */
function mebibytes(bytes) {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
