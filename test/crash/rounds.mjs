/** Rounds of: several clients write, the server is killed at a random moment, and everything acknowledged must be there. */
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from './client.mjs';
import { newCounter } from './counter.mjs';
import { randomOf } from './random.mjs';
import { checkFolder, launch, startServer } from './server.mjs';
import { newWriter } from './writer.mjs';

const WRITERS = 6;
const COUNTERS = 2;

/**
 * @param {{ location: string, rounds: number, seed: number, onRound?: (line: string) => void }} options
 * @returns {Promise<{ rounds: number, acknowledged: number, faults: string[] }>}
 */
export async function crash({ location, rounds, seed, onRound = () => {} }) {
  const random = randomOf(seed);
  const writers = Array.from({ length: WRITERS }, (_, number) => newWriter(number));
  const counter = newCounter();
  /** @type {string[]} */
  const faults = [];
  const acknowledged = () => writers.reduce((sum, writer) => sum + writer.acknowledged(), counter.acknowledged());
  let server = await startServer(location);
  await withClient(server.origin, counter.create);

  let round = 0;
  try {
    while (round < rounds && faults.length === 0) {
      round++;
      const alive = random.below(800);
      faults.push(...(await writeUntilKilled(server, alive)));
      await judge('after the kill');
      if (random.chance(0.3)) await killWhileItStarts(random.below(400));

      server = await startServer(location);
      const beside = judge('beside the server');
      for (const part of [counter, ...writers]) faults.push(...(await withClient(server.origin, part.verify)));
      await beside;
      onRound(`round ${round}: killed after ${alive} ms, ${acknowledged()} acknowledged, ${faults.length} faults`);
    }
  } finally {
    await server.kill('SIGKILL');
  }
  return { rounds: round, acknowledged: acknowledged(), faults };

  /** @param {typeof server} server @param {number} alive */
  async function writeUntilKilled(server, alive) {
    let isOver = false;
    const clients = Array.from({ length: WRITERS + COUNTERS }, () => connect(server.origin));
    const work = clients.map((client, at) => {
      const writer = writers[at];
      return writer
        ? writer.write(client, randomOf(random.below(2 ** 31)), () => isOver)
        : counter.count(client, () => isOver);
    });
    const all = Promise.allSettled(work);
    await pause(alive);
    isOver = true;
    await server.kill('SIGKILL');
    const failures = (await all).flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
    for (const client of clients) client.close();
    return failures;
  }

  /** @param {string} when */
  async function judge(when) {
    const { code, text } = await checkFolder(location);
    if (code !== 0) faults.push(`holdfast check ${when}: ${text}`);
  }

  /** @param {number} milliseconds */
  async function killWhileItStarts(milliseconds) {
    const starting = launch(location);
    await pause(milliseconds);
    await starting.kill('SIGKILL');
  }
}

/**
 * @template T
 * @param {string} origin
 * @param {(client: ReturnType<typeof connect>) => Promise<T>} body
 */
async function withClient(origin, body) {
  const client = connect(origin);
  try {
    return await body(client);
  } finally {
    client.close();
  }
}
