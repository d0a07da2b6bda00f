/** Client loops of shares, as in blob-loops.mjs. The loops on blobs beside them do the same with as many bytes. */
import { randomBytes } from 'node:crypto';
import { nameOf, SIGNED_AHEAD } from './blob-loops.mjs';
import { account, connect, headerIn, maker } from './http-client.mjs';

/** Since this version Create File takes the bytes of a file. */
const SINCE = '2026-02-06';
const SMALL = 4_096;
const small = 'x'.repeat(SMALL);
const fileOf = (bytes) => ({ 'x-ms-type': 'file', 'x-ms-content-length': String(bytes), 'x-ms-version': SINCE });

/** How both services write 4 KiB. Made for each loop: a signature is valid for 15 minutes. */
const makeWriter = {
  files: () => maker('PUT', { headers: fileOf(SMALL), body: small }),
  blobs: () => maker('PUT', { headers: { 'x-ms-blob-type': 'BlockBlob' }, body: small }),
};

export const fileLoops = {
  /** New names, one after another over all rounds. */
  putSmall({ of, parent, run }) {
    const make = makeWriter[of]();
    const signed = Array.from({ length: SIGNED_AHEAD }, (_, number) => make(`/${parent}/${run}-${number}`));
    let next = 0;
    return () => (timed) => {
      const request = signed[next] ?? make(`/${parent}/${run}-${next}`);
      next++;
      return timed(request, 201);
    };
  },

  /** Each name once, for `getSmall`. */
  fillSmall({ of, parent, keys }) {
    const write = makeWriter[of]();
    let next = 0;
    return () => (timed) => timed(write(`/${parent}/${nameOf(next++ % keys)}`), 201);
  },

  /** @param snapshot undefined: of the share as it is */
  getSmall({ parent, keys, snapshot }) {
    const make = maker('GET', snapshot && { query: { sharesnapshot: snapshot } });
    const signed = Array.from({ length: keys }, (_, number) => make(`/${parent}/${nameOf(number)}`));
    let next = 0;
    return () => (timed) => timed(signed[next++ % keys], 200);
  },

  /** Each name is written before, outside of the measured time. */
  deleteSmall({ of, parent, run }) {
    const write = makeWriter[of]();
    const remove = maker('DELETE');
    let next = 0;
    return () => async (timed, _note, _record, send) => {
      const path = `/${parent}/${run}-${next++}`;
      await send(write(path), 201);
      await timed(remove(path), 202);
    };
  },

  /** One file by ranges, several at a time: one operation. */
  uploadFile({ parent, run, ports, bytes, rangeBytes, parallel }) {
    const range = randomBytes(rangeBytes);
    const headers = { 'x-ms-type': 'file', 'x-ms-content-length': String(bytes) };
    let next = 0;
    return () => {
      const connections = Promise.all(Array.from({ length: parallel }, () => connect(ports[0])));
      return async (_timed, _note, record, send) => {
        const path = `/${parent}/${run}-${next++}`;
        const started = performance.now();
        await send(maker('PUT', { headers })(path), 201);
        let from = 0;
        await Promise.all(
          (await connections).map(async (connection) => {
            while (from < bytes) {
              const at = from;
              from += rangeBytes;
              const { status, body } = await connection.send(putRange(at, range)(path));
              if (status !== 201) throw new Error(`${status} ${body}`);
            }
          }),
        );
        record(performance.now() - started);
      };
    };
  },

  /** Page after page, then from the beginning. */
  listFiles({ parent }) {
    let marker = '';
    return () => async (timed, note) => {
      const query = { comp: 'list', restype: 'directory', maxresults: '5000', ...(marker && { marker }) };
      const { body, bytes } = await timed(maker('GET', { query })(`/${parent}`), 200, true);
      note('bytes', bytes);
      marker = /<NextMarker>([^<]*)<\/NextMarker>/.exec(body.subarray(-4_096).latin1Slice())?.[1] ?? '';
    };
  },

  /** Each is deleted, or a share would soon have too many. */
  snapshotShare({ parent }) {
    const query = { restype: 'share', comp: 'snapshot' };
    return () => async (timed, _note, _record, send) => {
      const { head } = await timed(maker('PUT', { query })(`/${parent}`), 201);
      const gone = { restype: 'share', sharesnapshot: headerIn(head, 'x-ms-snapshot') };
      await send(maker('DELETE', { query: gone })(`/${parent}`), 202);
    };
  },

  /** There and back: the next round finds the directory where it was. */
  renameDirectory({ parent, directory }) {
    const moved = `${directory}-moved`;
    const rename = (from, to) => {
      const headers = { 'x-ms-file-rename-source': `http://127.0.0.1/${account}/${parent}/${from}` };
      return maker('PUT', { headers, query: { restype: 'directory', comp: 'rename' } })(`/${parent}/${to}`);
    };
    return () => async (timed) => {
      await timed(rename(directory, moved), 200);
      await timed(rename(moved, directory), 200);
    };
  },
};

function putRange(from, bytes) {
  const headers = { 'x-ms-range': `bytes=${from}-${from + bytes.length - 1}`, 'x-ms-write': 'update' };
  return maker('PUT', { headers, query: { comp: 'range' }, bytes });
}
