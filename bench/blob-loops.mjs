/** Client loops: each repeats its requests until the time is up, and reports every answer by `done(status, milliseconds)`. */
import { randomBytes, randomUUID } from 'node:crypto';
import { account, connect, encodeRequest, headerIn, maker } from './http-client.mjs';

const BODY = 'x'.repeat(1_024);
/** Requests that are signed and encoded before the clock runs: at one client the signature would be a third of the time. */
export const SIGNED_AHEAD = 20_000;
const blockBlob = { 'x-ms-blob-type': 'BlockBlob' };
/** The value of the tag `group` of each blob of a filled folder with tags. */
export const GROUPS = 100;
export const groupOf = (number) => String(number % GROUPS).padStart(3, '0');
export const nameOf = (number) => `blob-${String(number).padStart(8, '0')}`;
/** A filled folder with snapshots: each blob, and after it these. */
export const SNAPSHOTS_EACH = 100;

/** `milliseconds`: when the snapshot was taken; undefined: the blob itself. */
export function snapshotOf(number) {
  const at = number % (SNAPSHOTS_EACH + 1);
  const name = nameOf(Math.floor(number / (SNAPSHOTS_EACH + 1)));
  return { name, milliseconds: at === 0 ? undefined : Date.UTC(2026, 0, 1) + at * 1_000 };
}

/** By name: (spec) -> (client's number) -> one step of that client on its connection. */
export const loops = {
  /** New names, one after another over all rounds. */
  put({ container, run }) {
    const make = maker('PUT', { headers: blockBlob, body: BODY });
    const requestOf = (number) => encodeRequest(make(`/${container}/${run}-${number}`));
    const signed = Array.from({ length: SIGNED_AHEAD }, (_, number) => requestOf(number));
    let next = 0;
    return () => (timed) => {
      const request = signed[next] ?? requestOf(next);
      next++;
      return timed(request, 201);
    };
  },

  /** Names that exist, by chance. */
  overwrite({ container, keys }) {
    const make = maker('PUT', { headers: blockBlob, body: BODY });
    return () => (timed) => timed(make(`/${container}/${nameOf(anyOf(keys))}`), 201);
  },

  /** Each name once, so that `get` finds them. */
  fill({ container, keys }) {
    const make = maker('PUT', { headers: blockBlob, body: BODY });
    let next = 0;
    return () => (timed) => timed(make(`/${container}/${nameOf(next++ % keys)}`), 201);
  },

  get({ container, keys }) {
    const make = maker('GET');
    const requestOf = (number) => encodeRequest(make(`/${container}/${nameOf(number)}`));
    const signed = Array.from({ length: SIGNED_AHEAD }, () => requestOf(anyOf(keys)));
    let next = 0;
    return () => (timed) => timed(signed[next++ % SIGNED_AHEAD], 200);
  },

  /** New names, bodies of this many bytes. */
  putLarge({ container, run, bytes }) {
    const make = maker('PUT', { headers: blockBlob, bytes: randomBytes(bytes) });
    let next = 0;
    return () => (timed) => timed(make(`/${container}/${run}-${next++}`), 201);
  },

  /** The same few names, one after another. */
  getLarge({ container, run, keys }) {
    const make = maker('GET');
    let next = 0;
    return () => (timed) => timed(make(`/${container}/${run}-${next++ % keys}`), 200);
  },

  /** Copies of one blob, each onto a new name; the source is named by the host of the request. */
  copy({ container, run, source }) {
    const headers = { 'x-ms-copy-source': `http://127.0.0.1/${account}/${container}/${source}` };
    const make = maker('PUT', { headers });
    let next = 0;
    return () => (timed) => timed(make(`/${container}/${run}-copy-${next++}`), 202);
  },

  /** Snapshots of one blob. */
  snapshot({ container, source }) {
    const make = maker('PUT', { query: { comp: 'snapshot' } });
    return () => (timed) => timed(make(`/${container}/${source}`), 201);
  },

  /** One blob by blocks, several at a time, and its block list: one operation. */
  upload({ container, run, ports, bytes, blockBytes, parallel }) {
    const block = randomBytes(blockBytes);
    const blocks = Array.from({ length: bytes / blockBytes }, (_, number) => blockIdOf(number));
    let next = 0;
    return () => {
      const connections = Promise.all(Array.from({ length: parallel }, () => connect(ports[0])));
      return async (_timed, _note, record) => {
        const path = `/${container}/${run}-${next++}`;
        const started = performance.now();
        const left = [...blocks];
        await Promise.all(
          (await connections).map(async (connection) => {
            for (let id = left.shift(); id !== undefined; id = left.shift()) {
              const query = { comp: 'block', blockid: id };
              await expect(connection, maker('PUT', { query, bytes: block })(path), 201);
            }
          }),
        );
        await expect((await connections)[0], commit(blocks)(path), 201);
        record(performance.now() - started);
      };
    };
  },

  /** Blocks that exist, committed again in the opposite order. */
  commit({ container, run, blocks }) {
    const ids = Array.from({ length: blocks }, (_, number) => blockIdOf(number));
    return () => (timed) => timed(commit(ids.reverse())(`/${container}/${run}`), 201);
  },

  /** What `commit` needs. */
  stage({ container, run, blocks }) {
    const bytes = randomBytes(1_024);
    let next = 0;
    return () => (timed) => {
      const query = { comp: 'block', blockid: blockIdOf(next++ % blocks) };
      return timed(maker('PUT', { query, bytes })(`/${container}/${run}`), 201);
    };
  },

  /** A blob of one block, which its list names several times. */
  repeatBlock({ container, run, blockBytes, blocks }) {
    const id = blockIdOf(0);
    const put = maker('PUT', { query: { comp: 'block', blockid: id }, bytes: randomBytes(blockBytes) });
    const list = commit(Array.from({ length: blocks }, () => id));
    let next = 0;
    return () => async (timed) => {
      const path = `/${container}/${run}-${next++}`;
      await timed(put(path), 201);
      await timed(list(path), 201);
    };
  },

  /** Blobs that were put before, deleted by one request: that is the operation. */
  deleteBatch({ container, run, ports, parts, parallel }) {
    const put = maker('PUT', { headers: blockBlob, body: BODY });
    let next = 0;
    return () => {
      const connections = Promise.all(Array.from({ length: parallel }, () => connect(ports[0])));
      return async (timed) => {
        const paths = Array.from({ length: parts }, () => `/${container}/${run}-${next++}`);
        const left = paths.map((path) => put(path));
        await Promise.all(
          (await connections).map(async (connection) => {
            for (let made = left.shift(); made !== undefined; made = left.shift()) await expect(connection, made, 201);
          }),
        );
        const { body } = await timed(batchOf(maker('DELETE'), paths)('/'), 202, true);
        const deleted = body.latin1Slice().split('HTTP/1.1 202').length - 1;
        if (deleted !== parts) throw new Error(`${deleted} of ${parts} blobs were deleted\n${body}`);
      };
    };
  },

  /** Page after page, then from the beginning. */
  list({ container, include }) {
    let marker = '';
    return () => async (timed, note) => {
      const asked = { ...(include && { include }), ...(marker && { marker }) };
      const query = { comp: 'list', restype: 'container', maxresults: '5000', ...asked };
      const { body, bytes } = await timed(maker('GET', { query })(`/${container}`), 200, true);
      note('bytes', bytes);
      if (include === 'snapshots' && !body.includes('<Snapshot>')) throw new Error('a page without snapshots');
      marker = /<NextMarker>([^<]*)<\/NextMarker>/.exec(body.subarray(-4_096).latin1Slice())?.[1] ?? '';
    };
  },

  /** The blobs of one tag, another with each step. */
  findTagged({ groups, run }) {
    let next = run.length;
    return () => async (timed, note) => {
      const where = `"group"='${groupOf(next++ % groups)}'`;
      const { body, bytes } = await timed(maker('GET', { query: { comp: 'blobs', where } })('/'), 200, true);
      note('bytes', bytes);
      note('blobs', body.latin1Slice().split('<Blob>').length - 1);
    };
  },

  /** Every write carries the lease of its blob, which all clients know: each of them succeeds. */
  underLease({ container, run, blobs, leases }) {
    const makes = leases.map((id) => maker('PUT', { headers: { ...blockBlob, 'x-ms-lease-id': id }, body: BODY }));
    return (client) => {
      const path = `/${container}/${run}-${client % blobs}`;
      return (timed) => timed(makes[client % blobs](path), 201);
    };
  },

  /** Reads the number and writes it back one higher if it has not changed. */
  ifMatchCounter({ container, run, blobs }) {
    const read = maker('GET');
    return (client) => {
      const path = `/${container}/${run}-${client % blobs}`;
      return async (timed, note) => {
        const { head, body } = await timed(read(path), 200, true);
        const etag = headerIn(head, 'etag');
        const written = await timed(plusOne(body, { 'if-match': etag })(path), [201, 412]);
        if (written.status === 201) note('increments', 1);
      };
    };
  },

  /** The lease as a mutex around the same counter. */
  leaseCounter({ container, run, blobs }) {
    const read = maker('GET');
    const lease = (action, headers) =>
      maker('PUT', { query: { comp: 'lease' }, headers: { 'x-ms-lease-action': action, ...headers } });
    return (client) => {
      const path = `/${container}/${run}-${client % blobs}`;
      const id = randomUUID();
      const held = { 'x-ms-lease-id': id };
      const acquire = lease('acquire', { 'x-ms-lease-duration': '60', 'x-ms-proposed-lease-id': id });
      const release = lease('release', held);
      return async (timed, note) => {
        const { status } = await timed(acquire(path), [201, 409]);
        if (status === 409) return;
        const { head, body } = await timed(read(path), 200, true);
        await timed(plusOne(body, { ...held, 'if-match': headerIn(head, 'etag') })(path), 201);
        note('increments', 1);
        await timed(release(path), 200);
      };
    };
  },
};

const blockIdOf = (number) => Buffer.from(String(number).padStart(6, '0')).toString('base64');

function commit(ids) {
  const list = ids.map((id) => `<Latest>${id}</Latest>`).join('');
  const body = `<?xml version="1.0" encoding="utf-8"?><BlockList>${list}</BlockList>`;
  return maker('PUT', { query: { comp: 'blocklist' }, body });
}

/** Each part is a request with a signature of its own. */
function batchOf(make, paths) {
  const parts = paths.map(
    (path, at) =>
      `--batch\r\ncontent-type: application/http\r\ncontent-transfer-encoding: binary\r\ncontent-id: ${at}\r\n\r\n${make(path)}\r\n`,
  );
  const headers = { 'content-type': 'multipart/mixed; boundary=batch' };
  return maker('POST', { query: { comp: 'batch' }, headers, body: `${parts.join('')}--batch--\r\n` });
}

async function expect(connection, made, status) {
  const answer = await connection.send(made);
  if (answer.status !== status)
    throw new Error(`${answer.status} instead of ${status}\n${answer.head}\n${answer.body}`);
}

function plusOne(body, headers) {
  const next = String(Number(body.latin1Slice(0, 16)) + 1);
  return maker('PUT', { headers: { ...blockBlob, ...headers }, body: next.padEnd(1_024) });
}

export function anyOf(keys) {
  return Math.floor(Math.random() * keys);
}
