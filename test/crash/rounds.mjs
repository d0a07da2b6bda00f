/** Rounds of: several clients write, the server is killed at a random moment, and everything acknowledged must be there. */
import { setTimeout as pause } from 'node:timers/promises';
import { extentBytes } from '../support/extent-usage.mjs';
import { randomOf } from '../support/random.mjs';
import { checkFolder, launch, startServer } from '../support/server-process.mjs';
import { connect, connectToTables } from '../support/signed-client.mjs';
import { newCounter } from './counter.mjs';
import { newFileWriter } from './file-writer.mjs';
import { newTableWriter } from './table-writer.mjs';
import { newWriter } from './writer.mjs';

const WRITERS = 6;
const TABLE_WRITERS = 3;
const FILE_WRITERS = 3;
const COUNTERS = 2;
const IN_A_HURRY = { imports: [new URL('./in-a-hurry.mjs', import.meta.url).href] };
/** @typedef {ReturnType<typeof connect>} Client */
/** @typedef {{ verify: (client: Client) => Promise<string[]>, removeAll: (client: Client) => Promise<unknown> }} Part */

/** Lines in the log of a server that no crash excuses. */
const COMPLAINT = /^\S+ (?:ERROR|FATAL|WARN(?! +slow request))/m;

/** How a server's life ends. @typedef {(server: Awaited<ReturnType<typeof startServer>>) => Promise<unknown>} End */

/**
 * @param {{ location: string, rounds: number, seed: number, end?: End, onRound?: (line: string) => void }} options
 * @returns {Promise<{ rounds: number, acknowledged: number, faults: string[] }>}
 */
export async function crash({ location, rounds, seed, end = (server) => server.kill('SIGKILL'), onRound = () => {} }) {
  const random = randomOf(seed);
  const writers = Array.from({ length: WRITERS }, (_, number) => newWriter(number));
  const tableWriters = Array.from({ length: TABLE_WRITERS }, (_, number) => newTableWriter(number));
  const fileWriters = Array.from({ length: FILE_WRITERS }, (_, number) => newFileWriter(number));
  const counter = newCounter();
  /** @type {string[]} */
  const faults = [];
  const acknowledged = () =>
    [counter, ...writers, ...tableWriters, ...fileWriters].reduce((sum, part) => sum + part.acknowledged(), 0);
  let server = await startServer(location, IN_A_HURRY);
  await withClient(connect(server.origin), counter.create);

  let round = 0;
  try {
    while (round < rounds && faults.length === 0) {
      round++;
      const alive = random.below(2_000);
      faults.push(...(await writeUntilKilled(server, alive)));
      const mebibytes = Math.round((await extentBytes(location)) / 2 ** 20);
      await judge('after the kill');
      if (random.chance(0.3)) await killWhileItStarts(random.below(400));

      // Now and then just as users run it.
      server = await startServer(location, random.chance(0.8) ? IN_A_HURRY : {});
      const beside = judge('beside the server');
      faults.push(...(await ofEach(({ verify }) => verify)).flat());
      await beside;
      onRound(
        `round ${round}: killed after ${alive} ms, ${mebibytes} MiB of extents, ${acknowledged()} acknowledged, ${faults.length} faults`,
      );
    }
    if (faults.length === 0) faults.push(...(await leaks()));
  } finally {
    await server.kill('SIGKILL');
  }
  return { rounds: round, acknowledged: acknowledged(), faults };

  /** @param {typeof server} server @param {number} alive */
  async function writeUntilKilled(server, alive) {
    let isOver = false;
    const keeps = random.chance(0.5);
    await withClient(connect(server.origin), (client) => client.setRetention(keeps ? 1 : undefined));
    const clients = Array.from({ length: WRITERS + COUNTERS }, () => connect(server.origin));
    const work = clients.map((client, at) => {
      const writer = writers[at];
      return writer
        ? writer.write(client, randomOf(random.below(2 ** 31)), { keeps, isOver: () => isOver })
        : counter.count(client, () => isOver);
    });
    for (const writer of tableWriters) {
      const client = tableClient(server);
      clients.push(client);
      work.push(writer.write(client, randomOf(random.below(2 ** 31)), () => isOver));
    }
    for (const writer of fileWriters) {
      const client = fileClient(server);
      clients.push(client);
      work.push(writer.write(client, randomOf(random.below(2 ** 31)), () => isOver));
    }
    const all = Promise.allSettled(work);
    await pause(alive);
    isOver = true;
    await end(server);
    const failures = (await all).flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
    for (const client of clients) client.close();
    return [...failures, ...complaints(server)];
  }

  /** Everything is deleted: not a byte and not a row may stay. */
  async function leaks() {
    await ofEach(({ removeAll }) => removeAll);
    faults.push(...complaints(server));
    await server.kill('SIGKILL');
    server = await startServer(location);
    const end = Date.now() + 60_000;
    for (;;) {
      const bytes = await extentBytes(location);
      const { code, text } = await checkFolder(location);
      if (code !== 0) return [`holdfast check at the end: ${text}`];
      // The account, the epoch and the properties of the service.
      if (bytes === 0 && text.startsWith('3 rows:')) return complaints(server);
      if (Date.now() > end) return [`though all was deleted, ${bytes} bytes of extents stay, and ${text}`];
      await pause(250);
    }
  }

  /** Runs the same action on all writers, each with a client of the server. @template T @param {(part: Part) => (client: Client) => Promise<T>} act */
  function ofEach(act) {
    const ofBlobs = [counter, ...writers].map((part) => withClient(connect(server.origin), act(part)));
    const ofTables = tableWriters.map((part) => withClient(tableClient(server), act(part)));
    const ofFiles = fileWriters.map((part) => withClient(fileClient(server), act(part)));
    return Promise.all([...ofBlobs, ...ofTables, ...ofFiles]);
  }

  /** @param {string} when */
  async function judge(when) {
    const { code, text } = await checkFolder(location);
    if (code !== 0) faults.push(`holdfast check ${when}: ${text}`);
  }

  /** @param {number} milliseconds */
  async function killWhileItStarts(milliseconds) {
    const starting = launch(location, IN_A_HURRY);
    await pause(milliseconds);
    await starting.kill('SIGKILL');
  }
}

/** @param {{ stdout: () => string }} server */
function complaints(server) {
  const found = COMPLAINT.exec(server.stdout());
  return found ? [`the server logged ${server.stdout().slice(found.index, found.index + 2_000)}`] : [];
}

/** @param {Awaited<ReturnType<typeof startServer>>} server */
function tableClient(server) {
  return connectToTables(/** @type {string} */ (server.origins().Table));
}

/** @param {Awaited<ReturnType<typeof startServer>>} server */
function fileClient(server) {
  return connect(/** @type {string} */ (server.origins().File));
}

/**
 * @template T
 * @param {Client} client
 * @param {(client: Client) => Promise<T>} body
 */
async function withClient(client, body) {
  try {
    return await body(client);
  } finally {
    client.close();
  }
}
