/** Fuzzer: sends cases to a server in batches, over many connections, and collects the faults. */

import { ACCOUNT, sharedKey } from '../support/raw-signing.mjs';
import { blobs, containers, makeCase } from './cases.mjs';
import { findFault } from './check-answer.mjs';
import { Fault, openConnection } from './connection.mjs';
import { startServer } from './server.mjs';
import { joinMessage } from './wire-mutations.mjs';

const CONNECTIONS = 48;
/** Cases after which the server is emptied: their leftovers must neither pile up nor affect later cases. */
const BATCH = 2_500;
const TIMEOUT_MILLISECONDS = 5_000;
const FAULTS_MAX = 20;
const FILE_BYTES = 5_000;
const FILE_READ_BYTES_MAX = 4 * 2 ** 20;
/** Since this version Create File takes the bytes of a file. */
const NEW_FILE = { 'x-ms-type': 'file', 'x-ms-content-length': String(FILE_BYTES), 'x-ms-version': '2026-02-06' };
const GROWTH_BYTES_MAX = 160 * 2 ** 20;

/** @typedef {{ number: number | undefined, what: string, how?: string[], request?: string }} Found */
/** @typedef {import('./cases.mjs').Service} Service */
/** @typedef {{ seed: number, count: number, service?: Service, first?: number, location?: string | undefined, onProgress?: (done: number) => void }} Options */
/** @typedef {Awaited<ReturnType<typeof startServer>>} Server */
/** @typedef {ReturnType<typeof openConnection>} Connection */
/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('./connection.mjs').Answer} Answer */

/** @param {Options} options */
export async function play({ seed, count, service = 'blob', first = 0, location, onProgress }) {
  const server = await startServer(location);
  const port = server.ports[service];
  /** @type {Found[]} */
  const faults = [];
  /** @type {Map<string, number>} */
  const seen = new Map();
  /** @type {number[]} */
  const memory = [];
  let done = 0;
  try {
    for (let from = first; from < first + count && faults.length < FAULTS_MAX; from += BATCH) {
      await prepare(port, service);
      done += await batch(port, service, seed, from, Math.min(from + BATCH, first + count), faults, seen);
      memory.push(await server.memoryBytes());
      onProgress?.(done);
    }
    await readEverything(port, service);
    const early = Math.max(...memory.slice(0, 4));
    const late = memory.at(-1) ?? 0;
    if (late > early + GROWTH_BYTES_MAX) throw new Fault(`memory grew from ${early} to ${late} bytes`);
  } catch (error) {
    faults.push({ number: undefined, what: error instanceof Fault ? error.message : String(error) });
  }
  if (server.end()) faults.push({ number: undefined, what: `the server ended: ${JSON.stringify(server.end())}` });
  await server.stop();
  return { faults, done, seen, memory, output: server.output() };
}

/** One case, its answer and its fault. @param {{ seed: number, number, service: Service, location?: string | undefined }} options */
export async function replay({ seed, number, service, location }) {
  const server = await startServer(location);
  const port = server.ports[service];
  await prepare(port, service);
  const one = makeCase(seed, number, `127.0.0.1:${port}`, service);
  const connection = openConnection(port);
  const { answer, what } = await exchange(connection, one);
  connection.destroy();
  await server.stop();
  return { one, answer, what, output: server.output() };
}

/**
 * @param {number} port @param {Service} service @param {number} seed @param {number} from @param {number} to
 * @param {Found[]} faults @param {Map<string, number>} seen
 */
async function batch(port, service, seed, from, to, faults, seen) {
  let next = from;
  const worker = async () => {
    let connection = openConnection(port);
    while (next < to && faults.length < FAULTS_MAX) {
      const number = next++;
      const one = makeCase(seed, number, `127.0.0.1:${port}`, service);
      const used = one.ownConnection ? openConnection(port) : connection;
      let { answer, what } = await exchange(used, one);
      if (!one.ownConnection && answer === undefined && !used.isUsable()) {
        // A server may close an idle connection just when it is used again: only a new one proves that there is no answer.
        connection = openConnection(port);
        ({ answer, what } = await exchange(connection, one));
      }
      const word = answer ? `${answer.status} ${answer.headers.get('x-ms-error-code') ?? ''}`.trim() : 'closed';
      seen.set(word, (seen.get(word) ?? 0) + 1);
      if (what !== undefined) faults.push({ number, what, how: one.how, request: printable(one.bytes) });
      const isOver = one.ownConnection || what !== undefined || answer?.headers.get('connection') === 'close';
      if (!isOver && used.isUsable()) continue;
      used.destroy();
      if (!one.ownConnection) {
        connection.destroy();
        connection = openConnection(port);
      }
    }
    connection.destroy();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  return next - from;
}

/** @param {Connection} connection @param {Case} one @returns {Promise<{ answer?: Answer | undefined, what?: string | undefined }>} */
async function exchange(connection, one) {
  const method = /^([A-Z]+) /.exec(one.bytes.toString('latin1', 0, 20))?.[1] ?? one.method;
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Fault('no answer within 5 s')), TIMEOUT_MILLISECONDS);
  });
  const exchanged = async () => {
    connection.send(one.bytes);
    // An incomplete request ends when the client ends the connection.
    if (one.ownConnection) connection.endSending();
    const answer = await connection.answer(method);
    if (!answer) return { what: one.ownConnection ? undefined : 'closed without an answer' };
    if (!one.ownConnection && connection.surplus() > 0)
      return { answer, what: `${connection.surplus()} bytes after the answer` };
    if (one.ownConnection) await connection.end();
    return { answer, what: findFault(answer, method) };
  };
  try {
    return await /** @type {Promise<any>} */ (Promise.race([exchanged(), late]));
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { what: error.message };
  } finally {
    clearTimeout(timer);
  }
}

/** Empties the server, and creates the resources that the cases name. @param {number} port @param {Service} service */
async function prepare(port, service) {
  const connection = openConnection(port);
  const send = async (/** @type {string} */ method, /** @type {string} */ path, headers = {}, body = '') => {
    const answer = await request(connection, port, method, path, headers, body);
    if (answer.status >= 300) throw new Fault(`${method} ${path}: ${answer.status} ${answer.body}`);
  };
  await send('POST', '/_holdfast/reset');
  for (const container of containers) {
    if (service === 'file') {
      // Without a quota, a file of 4 TiB would be zeros for hours.
      await send('PUT', `/${ACCOUNT}/${container}?restype=share`, { 'x-ms-share-quota': '1' });
      await send('PUT', `/${ACCOUNT}/${container}/dir?restype=directory`);
      for (const file of blobs) await send('PUT', `/${ACCOUNT}/${container}/${file}`, NEW_FILE, 'x'.repeat(FILE_BYTES));
      continue;
    }
    await send('PUT', `/${ACCOUNT}/${container}?restype=container`);
    for (const blob of blobs) {
      const type = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-meta-made': 'before' };
      await send('PUT', `/${ACCOUNT}/${container}/${blob}`, type, `what ${blob} holds `.repeat(50));
    }
    await send('PUT', `/${ACCOUNT}/${container}/one?comp=block&blockid=YQ==`, {}, 'a block');
  }
  connection.destroy();
}

/** Everything that is listed can be read, and a write still works. @param {number} port @param {Service} service */
async function readEverything(port, service) {
  const connection = openConnection(port);
  const get = async (/** @type {string} */ path) => {
    const answer = await request(connection, port, 'GET', `/${ACCOUNT}${path}`);
    if (answer.status !== 200) throw new Fault(`at the end GET ${path}: ${answer.status} ${answer.body}`);
    const what = findFault(answer, 'GET');
    if (what !== undefined) throw new Fault(`at the end GET ${path}: ${what}`);
    return answer.body.toString();
  };
  if (service === 'file') {
    for (const share of namesIn(await get('/?comp=list'))) await readDirectory(get, `/${share}`);
    await request(connection, port, 'PUT', `/${ACCOUNT}/at-the-end?restype=share`);
    const made = await request(
      connection,
      port,
      'PUT',
      `/${ACCOUNT}/at-the-end/file`,
      NEW_FILE,
      'x'.repeat(FILE_BYTES),
    );
    if (made.status !== 201) throw new Fault(`at the end Create File: ${made.status} ${made.body}`);
    connection.destroy();
    return;
  }
  for (const container of namesIn(await get('/?comp=list'))) {
    for (const blob of namesIn(await get(`/${container}?restype=container&comp=list&include=metadata`))) {
      await get(`/${container}/${encodeURIComponent(blob)}`);
    }
  }
  const path = `/${ACCOUNT}/${containers[0]}-at-the-end`;
  for (const [method, target] of /** @type {const} */ ([
    ['PUT', `${path}?restype=container`],
    ['PUT', `${path}/blob`],
    ['GET', `${path}/blob`],
    ['DELETE', `${path}?restype=container`],
  ])) {
    const { status, body } = await request(connection, port, method, target, { 'x-ms-blob-type': 'BlockBlob' });
    if (status >= 300) throw new Fault(`at the end ${method} ${target}: ${status} ${body}`);
  }
  connection.destroy();
}

/** @param {(path: string) => Promise<string>} get @param {string} path of a share or directory */
async function readDirectory(get, path) {
  const list = await get(`${path}?restype=directory&comp=list`);
  for (const [entry, kind] of list.matchAll(/<(File|Directory)>.*?<\/\1>/gs)) {
    // A name that XML cannot have comes encoded.
    const encoded = /<Name Encoded="true">([^<]*)</.exec(entry)?.[1];
    const below = `${path}/${encoded ?? encodeURIComponent(namesIn(entry)[0] ?? '')}`;
    if (kind === 'Directory') await readDirectory(get, below);
    else if (Number(/<Content-Length>(\d+)/.exec(entry)?.[1]) <= FILE_READ_BYTES_MAX) await get(below);
  }
}

/** @param {string} xml */
function namesIn(xml) {
  const entities = /** @type {Record<string, string>} */ ({ lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' });
  return [...xml.matchAll(/<Name>([^<]*)<\/Name>/g)].map(([, name = '']) =>
    name
      .replace(/&#x([0-9a-f]+);/gi, (_, digits) => String.fromCodePoint(Number.parseInt(digits, 16)))
      .replace(/&(lt|gt|quot|apos|amp);/g, (_, entity) => entities[entity] ?? ''),
  );
}

/**
 * A good request, signed.
 * @param {Connection} connection @param {number} port @param {string} method @param {string} target
 * @param {Record<string, string>} more @param {string} body
 */
async function request(connection, port, method, target, more = {}, body = '') {
  /** @type {[string, string][]} */
  const headers = [
    ['Host', `127.0.0.1:${port}`],
    ['Content-Length', String(Buffer.byteLength(body))],
    ['x-ms-date', new Date().toUTCString()],
    ...Object.entries({ 'x-ms-version': '2025-07-05', ...more }),
  ];
  const [path = '', query = ''] = target.split('?');
  headers.push(['Authorization', sharedKey(method, path, query, headers)]);
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  connection.send(joinMessage([`${method} ${target} HTTP/1.1`, ...lines].join('\r\n'), Buffer.from(body)));
  const answer = await connection.answer(method);
  if (!answer) throw new Fault(`${method} ${target}: closed without an answer`);
  return answer;
}

/** @param {Buffer} bytes */
export function printable(bytes) {
  const text = bytes.toString('latin1');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are printable as escapes
  return text.replace(/[^\x0a\x20-\x7e]/g, (letter) =>
    letter === '\r' ? '' : `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}
