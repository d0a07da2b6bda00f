/** npm run bench -- --stalls: how long another client waits while one sends the most expensive requests: there are no targets. */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { attacks } from '../test/growth/attacks.mjs';
import { bytesOf, send } from '../test/support/raw-requests.mjs';
import { GROUPS, nameOf } from './blob-loops.mjs';
import { cutUpPage } from './cut-up-page.mjs';
import { account, connect as connectKept } from './http-client.mjs';
import { createAppendBlob, createPageBlob } from './in-place-loops.mjs';
import { table } from './report.mjs';
import { runScript, startServer } from './servers.mjs';

const PING_MILLISECONDS = 10;
const AT_ONCE = 10;
const UPLOADS = 600;
const UPLOAD_BYTES = 64 << 20;
/** Of each upload: more than a server reads ahead. */
const BEGUN_BYTES = 1 << 20;
const FILES = 1_000_000;
const PAGE = 5_000;
/** @type {import('../test/support/raw-requests.mjs').Request & { query: string[] }} */
const LIST = {
  ...{ service: 'file', path: '/stalls/filled', allowed: true },
  query: ['restype=directory', 'comp=list', `maxresults=${PAGE}`],
};
const RENAME = {
  ...{
    service: 'file',
    method: 'PUT',
    path: '/stalls/moved',
    query: ['restype=directory', 'comp=rename'],
    allowed: true,
  },
  headers: [['x-ms-file-rename-source', `http://127.0.0.1/${account}/stalls/filled`]],
};
const PING = 'GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';

const BUSY_MILLISECONDS = 3_000;
const TAGGED = 10_000;
const TAGS = 'Find Blobs by Tags, 16 clients';
const busy = { container: 'busy', clients: 16 };
/** Loops of the load. */
const busyLoops = {
  'Append Block 1 KiB, 16 clients on one blob': {
    ...{ ...busy, loop: 'append', run: 'log', appendBlobs: 1, prepare: [createAppendBlob('/busy/log-0')] },
  },
  'Put Page 4 KiB, 16 clients on one blob': {
    ...{ ...busy, loop: 'putPage', run: 'disk', bytes: 2 ** 30, prepare: [createPageBlob('/busy/disk', 2 ** 30)] },
  },
  'Snapshot Blob, 16 clients on one page blob': {
    ...{ ...busy, loop: 'snapshot', source: 'taken', prepare: [createPageBlob('/busy/taken', 2 ** 30)] },
  },
  [TAGS]: { ...busy, loop: 'findTagged', groups: GROUPS, run: '' },
};

export async function runStalls(bench, file) {
  const folder = bench.newFolder();
  const among = `pages of ${PAGE} among ${FILES.toLocaleString('en')} files`;
  if (bench.wanted(among)) await runScript('fill-holdfast.mjs', [folder, 'files', 'stalls', FILES]);
  if (bench.wanted(TAGS)) await runScript('fill-holdfast.mjs', [folder, 'tagged', 'filled', TAGGED]);
  const server = await startServer('holdfast', folder);
  const portOf = ({ service = 'blob' }) => server.ports[service][0];
  const sendTo = (request) => send(portOf(request), request);
  const beside = (work) => longestGaps(server.ports.blob[0], work);
  const rows = [['nothing', await beside(() => pause(1_000))]];
  for (const { name, n, request, past, prepare } of attacks.filter(({ name }) => bench.wanted(name))) {
    bench.say(`${name} ...`);
    await prepare?.(sendTo);
    const most = request(2 * n);
    rows.push([`${name}: ${2 * n}`, await beside(() => sendTo(most))]);
    rows.push([`${name}: ${2 * n}, ${AT_ONCE} at once`, await beside(() => atOnce(() => sendTo(most)))]);
    if (!past) continue;
    const tooMany = request(past.n);
    rows.push([`${name}: ${past.n}, ${AT_ONCE} at once`, await beside(() => atOnce(() => sendTo(tooMany)))]);
  }
  for (const [name, spec] of Object.entries(busyLoops)) {
    if (!bench.wanted(name)) continue;
    bench.say(`${name} ...`);
    await sendTo({ method: 'PUT', path: '/busy', query: ['restype=container'], allowed: true });
    rows.push([name, await beside(() => bench.order(server, { ...spec, milliseconds: BUSY_MILLISECONDS }))]);
  }
  const cutUp = 'writes of 2,048 parts of one MiB, and snapshots';
  if (bench.wanted(cutUp)) {
    bench.say(`${cutUp} ...`);
    const { write, deleteSnapshots } = await cutUpPage(server.ports.blob[0]);
    rows.push([cutUp, await beside(write)]);
    rows.push(['the deletion of the snapshots', await beside(deleteSnapshots)]);
  }
  const uploads = `${UPLOADS} uploads begun at once`;
  if (bench.wanted(uploads)) {
    bench.say(`${uploads} ...`);
    rows.push([uploads, await beside(() => beginUploads(server.ports.blob[0]))]);
  }
  if (bench.wanted(among)) {
    bench.say(`${among} ...`);
    const page = () => sendTo({ ...LIST, query: [...LIST.query, `marker=${markerOf(FILES / 2)}`] });
    rows.push([among, await beside(page)]);
    rows.push([`${among}, ${AT_ONCE} at once`, await beside(() => atOnce(page))]);
    const renamed = 'rename of their directory';
    rows.push([renamed, await beside(() => sendTo(RENAME))]);
  }
  await server.stop();
  const heads = ['beside', 'longest wait of a new connection, ms', 'of an open one, ms'];
  const cells = rows.map(([name, { opened, kept }]) => [name, opened.toFixed(1), kept.toFixed(1)]);
  const text = ['# Stalls', '', ...table(heads, cells), ''].join('\n');
  console.log(`\n${text}`);
  writeFileSync(file, text);
}

/** Of a page that begins in the middle. */
function markerOf(number) {
  const text = Buffer.from(nameOf(number)).toString('base64url');
  return `1!${text.length}!${text}`;
}

const atOnce = (work) => Promise.all(Array.from({ length: AT_ONCE }, work));

/** Pings until the work is done, whether or not the ones before are answered. */
async function longestGaps(port, work) {
  const kept = await connectKept(port);
  const longest = { opened: 0, kept: 0 };
  const running = new Set();
  let keptIsFree = true;
  const measure = (kind, ping) => {
    const began = performance.now();
    const answered = ping().then(() => {
      longest[kind] = Math.max(longest[kind], performance.now() - began);
      running.delete(answered);
    });
    running.add(answered);
    return answered;
  };
  const ping = () => {
    void measure('opened', () => pingNew(port));
    if (!keptIsFree) return;
    keptIsFree = false;
    void measure('kept', () => kept.send(PING)).then(() => {
      keptIsFree = true;
    });
  };
  const timer = setInterval(ping, PING_MILLISECONDS);
  await pause(5 * PING_MILLISECONDS);
  await work();
  await pause(5 * PING_MILLISECONDS);
  clearInterval(timer);
  await Promise.all(running);
  kept.close();
  return longest;
}

async function pingNew(port) {
  const connection = await connectKept(port);
  await connection.send(PING);
  connection.close();
}

/** Each stalls after its first bytes; all disconnect once the server has had time for them. */
async function beginUploads(port) {
  const container = { method: 'PUT', path: '/stalls', query: ['restype=container'], allowed: true };
  await send(port, container);
  const head = bytesOf({ method: 'PUT', path: '/stalls/b', headers: [['x-ms-blob-type', 'BlockBlob']], allowed: true })
    .toString('latin1')
    .replace('Content-Length: 0', `Content-Length: ${UPLOAD_BYTES}`);
  const begun = Buffer.alloc(BEGUN_BYTES);
  const sockets = Array.from({ length: UPLOADS }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.write(head, 'latin1');
    socket.write(begun);
    return socket;
  });
  await pause(5_000);
  for (const socket of sockets) socket.destroy();
}
