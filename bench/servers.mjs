/** Starts, asks and ends the two servers. Everything listens on 127.0.0.1 only. */
import { fork, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { azuriteMain } from '../scripts/azurite.mjs';
import { connect, maker } from './http-client.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const SERVICES = ['blob', 'queue', 'table'];
/** Azurite has no shares. */
const OWN_SERVICES = [...SERVICES, 'file'];
const oneLane = new URL('one-lane.mjs', import.meta.url).href;
const children = new Set();

const portFlags = (ports) => Object.entries(ports).flatMap(([service, port]) => [`--${service}Port`, String(port)]);
const holdfast = [here('../dist/bin/holdfast.js'), 'start', '--silent'];

export const kinds = {
  holdfast: {
    title: 'Holdfast',
    settings: 'dist/bin/holdfast.js start --silent, otherwise default: LMDB, fdatasync before each answer',
    services: OWN_SERVICES,
    command: (location, ports) => [...holdfast, '--location', location, ...portFlags(ports)],
  },
  oneLane: {
    title: 'Holdfast with one lane of MD5',
    settings: 'as Holdfast, with one-lane.mjs loaded',
    services: OWN_SERVICES,
    command: (location, ports) => ['--import', oneLane, ...holdfast, '--location', location, ...portFlags(ports)],
  },
  postgres: {
    title: 'Holdfast on PostgreSQL',
    settings: 'dist/bin/holdfast.js start --silent --partition postgres://... --extents <folder>',
    services: OWN_SERVICES,
    command: (location, ports) => [...holdfast, '--extents', location, ...portFlags(ports)],
  },
  azurite: {
    title: 'Azurite',
    settings:
      'azurite --silent --skipApiVersionCheck --disableTelemetry, otherwise default: all services in one process, on disk, no fsync',
    services: SERVICES,
    command: (location, ports) => [
      ...[azuriteMain, '--silent', '--skipApiVersionCheck', '--disableTelemetry'],
      ...['--location', location, ...portFlags(ports)],
    ],
  },
  experiment: {
    title: 'The experiment',
    settings:
      'experiment.mjs: node:http, an HMAC per request, lmdb with fdatasync before each answer, and nothing else',
    services: SERVICES,
    command: (location, ports) => [
      here('experiment.mjs'),
      location,
      ...SERVICES.map((service) => String(ports[service])),
    ],
  },
  limit: {
    title: 'The limit',
    settings: 'limit.mjs: bare node:http with the same answers; a Put is a write and an fdatasync',
    services: ['blob'],
    command: (location, ports) => [here('limit.mjs'), location, String(ports.blob)],
  },
};

/** Resolves once all its services answer; `startMilliseconds` is how long it took to the answer to a signed List Containers. */
export async function startServer(kind, location, nodeFlags = [], flags = []) {
  // At the same time, so that no two are the same.
  const found = await Promise.all(kinds[kind].services.map(async (service) => [service, await freePort()]));
  const ports = Object.fromEntries(found);
  const logFile = `${location}.log`;
  const log = openSync(logFile, 'a');
  const started = performance.now();
  const words = [...kinds[kind].command(location, ports), ...flags];
  const probe = ['--import', new URL('probe.mjs', import.meta.url).href];
  const child = spawn(process.execPath, [...probe, ...nodeFlags, ...words], {
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  track(child);
  let exited;
  child.once('exit', (code, signal) => {
    exited = `${kinds[kind].title} ended (${signal ?? code}): ${readFileSync(logFile, 'utf8').slice(-2_000)}`;
  });
  const until = async (answered) => {
    while (!(await answered())) {
      if (exited) throw new Error(exited);
      if (performance.now() - started > 120_000) throw new Error(`${kinds[kind].title} does not answer`);
      await pause(4);
    }
  };
  await until(() => answers(ports.blob, { query: { comp: 'list' } }, '/'));
  const startMilliseconds = performance.now() - started;
  if (ports.queue) await until(() => answers(ports.queue, { query: { comp: 'list' } }, '/'));
  if (ports.table) await until(() => answers(ports.table, { service: 'table', headers: acceptJson }, '/Tables'));
  return {
    kind,
    /** By service, for orders to the load. */
    ports: Object.fromEntries(Object.entries(ports).map(([service, port]) => [service, [port]])),
    startMilliseconds,
    /** Since the last call, but for the CPU time, which is that since its start. */
    sample: () => ask(child, 'sample'),
    privateMegabytes: () => privateMegabytes(child.pid),
    stop: () => stopChild(child),
  };
}

/** The load process. */
export function startLoad() {
  const child = fork(here('load.mjs'));
  track(child);
  return {
    async run(spec) {
      const { result, error } = await ask(child, spec);
      if (error) throw new Error(error);
      return result;
    },
    stop: () => stopChild(child),
  };
}

export function runScript(script, words) {
  const child = spawn(process.execPath, [here(script), ...words.map(String)], { stdio: ['ignore', 'pipe', 2] });
  track(child);
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once('close', (code) => (code === 0 ? resolve(text.trim()) : reject(new Error(`${script} failed`))));
  });
}

/** For the end of the bench, whichever it is. */
export function endAll() {
  for (const child of children) child.kill('SIGKILL');
}

function track(child) {
  children.add(child);
  child.once('exit', () => children.delete(child));
}

function ask(child, message) {
  return new Promise((resolve, reject) => {
    const onExit = () => reject(new Error('a process of the bench ended unexpectedly'));
    child.once('exit', onExit);
    child.once('message', (answer) => {
      child.off('exit', onExit);
      resolve(answer);
    });
    child.send(message);
  });
}

async function stopChild(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const hard = setTimeout(() => child.kill('SIGKILL'), 30_000);
  await gone;
  clearTimeout(hard);
}

const acceptJson = { accept: 'application/json;odata=minimalmetadata' };

async function answers(port, options, path) {
  try {
    const connection = await connect(port);
    const { status } = await connection.send(maker('GET', options)(path));
    connection.close();
    return status === 200;
  } catch {
    return false;
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Anonymous memory of the process: pages of a mapped file belong to the page cache. Linux only. */
function privateMegabytes(pid) {
  try {
    const [, kilobytes] = /^Anonymous: +(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
    return Number(kilobytes) / 1_024;
  } catch {
    return undefined;
  }
}
