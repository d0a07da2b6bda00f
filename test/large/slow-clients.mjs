/** Two thousand clients that hardly move, half in their headers and half in their bodies, beside a small load that must not notice. */
import { readFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { startServer } from '../support/server-process.mjs';
import { connect } from '../support/signed-client.mjs';
import { startSteadyLoad } from './steady.mjs';

const EACH = 1_000;
const PHASE_MILLISECONDS = 20_000;
const PHASES = 3;
/** Each sends one byte in so long. */
const BYTE_EVERY_MILLISECONDS = 5_000;
/** The time limit of the server, and a margin. */
const HEADERS_CUT_SECONDS = 20 + 10;
const BODY_CUT_SECONDS = 120 + 30;
const EACH_BYTES_MAX = 64 * 1024;

/**
 * @param {{ location: string, print: (line: string) => void }} options
 * @returns {Promise<string[]>} what is wrong
 */
export async function slowClients({ location, print }) {
  const server = await startServer(location, { flags: ['--log-level', 'warn'] });
  const end = () => server.signal('SIGKILL');
  process.once('exit', end);
  const client = connect(server.origin);
  await client.createContainer('small');
  const steady = startSteadyLoad(server.origin, 'small');
  /** @type {string[]} */
  const faults = [];
  /** @type {number[]} */
  const quiet = [];
  /** @type {number[]} */
  const beside = [];
  let rssQuiet = 0;
  let rssBeside = 0;
  try {
    await measured();
    for (let phase = 0; phase < PHASES; phase++) {
      quiet.push((await measured()).p99);
      rssQuiet = Math.max(rssQuiet, rssOf(server.pid));
      const slow = startSlow(server.origin, true);
      await slow.connected();
      beside.push((await measured()).p99);
      rssBeside = Math.max(rssBeside, rssOf(server.pid));
      slow.vanish();
    }
    print(`p99 without them ${quiet.map(milliseconds).join(', ')}, with them ${beside.map(milliseconds).join(', ')}`);
    print(`rss without them ${megabytes(rssQuiet)}, with them ${megabytes(rssBeside)}`);
    if (meanOf(beside) >= 2 * meanOf(quiet)) faults.push('the p99 of others is doubled');
    if (rssBeside - rssQuiet > 2 * EACH * EACH_BYTES_MAX) faults.push('they cost too much memory');

    const cut = startSlow(server.origin, false);
    await cut.connected();
    await pause(HEADERS_CUT_SECONDS * 1_000);
    print(`after ${HEADERS_CUT_SECONDS} s ${cut.left('headers')} are left that are slow with their headers`);
    if (cut.left('headers') > 0) faults.push('clients that are slow with their headers are not cut');
    await pause((BODY_CUT_SECONDS - HEADERS_CUT_SECONDS) * 1_000);
    print(`after ${BODY_CUT_SECONDS} s ${cut.left('body')} are left that are slow with their bodies`);
    if (cut.left('body') > 0) faults.push('clients that are slow with their bodies are not cut');
    cut.vanish();
  } catch (error) {
    faults.push(String(error));
  }
  await steady.stop();
  client.close();
  if (faults.length > 0) print(server.stdout() + server.stderr());
  const { code } = await server.kill('SIGTERM');
  process.off('exit', end);
  if (code !== 0) faults.push(`the server ended with ${code}`);
  return faults;

  async function measured() {
    await steady.figures();
    await pause(PHASE_MILLISECONDS);
    const figures = await steady.figures();
    faults.push(...figures.faults.slice(0, 3));
    return figures;
  }
}

/**
 * @param {string} origin
 * @param {boolean} again whether a disconnected client reconnects
 */
function startSlow(origin, again) {
  const { hostname, port } = new URL(origin);
  const client = connect(origin);
  /** @type {Record<'headers' | 'body', Set<{ write(text: string): unknown, destroy(): unknown }>>} */
  const held = { headers: new Set(), body: new Set() };
  let vanished = false;

  function holdHeaders() {
    if (vanished) return;
    const socket = connectSocket(Number(port), hostname);
    socket.on('error', () => {});
    socket.on('connect', () => {
      held.headers.add(socket);
      socket.write('GET / HTTP/1.1\r\nHost: x\r\nx-ms-meta-a: ');
    });
    socket.resume().on('close', () => {
      held.headers.delete(socket);
      if (again) holdHeaders();
    });
  }

  /** @param {number} number */
  function holdBody(number) {
    if (vanished) return;
    const headers = { 'x-ms-blob-type': 'BlockBlob', 'content-length': String(1 << 20) };
    /** @type {import('node:http').ClientRequest | undefined} */
    let request;
    const onRequest = (/** @type {import('node:http').ClientRequest} */ outgoing) => {
      request = outgoing;
      held.body.add(outgoing);
      outgoing.write('x');
    };
    const over = () => {
      if (request) held.body.delete(request);
      if (again) holdBody(number);
    };
    client.send('PUT', `/small/slow-${number}`, { headers, onRequest }).then(over, over);
  }

  const timer = setInterval(() => {
    for (const one of [...held.headers, ...held.body]) one.write('x');
  }, BYTE_EVERY_MILLISECONDS);

  return {
    async connected() {
      for (let number = 0; number < EACH; number++) {
        holdHeaders();
        holdBody(number);
        if (number % 50 === 49) await pause(50);
      }
      while (held.headers.size < EACH * 0.9 || held.body.size < EACH * 0.9) await pause(50);
    },
    /** @param {'headers' | 'body'} kind */
    left: (kind) => held[kind].size,
    vanish() {
      vanished = true;
      clearInterval(timer);
      for (const one of [...held.headers, ...held.body]) one.destroy();
      client.close();
    },
  };
}

/** 0 where there is no /proc. @param {number} pid */
function rssOf(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
  } catch {
    return 0;
  }
}

const meanOf = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const milliseconds = (/** @type {number} */ value) => `${value.toFixed(1)} ms`;
const megabytes = (/** @type {number} */ bytes) => `${Math.round(bytes / 1e6)} MB`;
