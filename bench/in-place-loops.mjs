/** Client loops of append and page blobs, as those of blob-loops.mjs. */
import { randomBytes } from 'node:crypto';
import { anyOf } from './blob-loops.mjs';
import { encodeRequest, maker } from './http-client.mjs';

/** Requests for pages that are signed and encoded before the clock runs. */
const PAGES_AHEAD = 4_096;

/** Of a request that `prepare` of an order sends. */
export const createAppendBlob = (path) => ({ method: 'PUT', path, headers: { 'x-ms-blob-type': 'AppendBlob' } });
export const createPageBlob = (path, bytes) => ({
  method: 'PUT',
  path,
  headers: { 'x-ms-blob-type': 'PageBlob', 'x-ms-blob-content-length': String(bytes) },
});

export const inPlaceLoops = {
  /** Each client appends 1 KiB to its blob, which may be that of all. */
  append({ container, run, appendBlobs }) {
    const make = maker('PUT', { query: { comp: 'appendblock' }, body: 'x'.repeat(1_024) });
    const requestOf = (number) => encodeRequest(make(`/${container}/${run}-${number}`));
    const requests = Array.from({ length: appendBlobs }, (_, number) => requestOf(number));
    return (client) => (timed) => timed(requests[client % appendBlobs], 201);
  },

  /** Pages of 4 KiB, anywhere in the blob. */
  putPage({ container, run, bytes }) {
    const page = randomBytes(4_096);
    const requestOf = (from) => encodeRequest(putPages(from, page)(`/${container}/${run}`));
    const requests = Array.from({ length: PAGES_AHEAD }, () => requestOf(anyOf(bytes / page.length) * page.length));
    let next = 0;
    return () => (timed) => timed(requests[next++ % PAGES_AHEAD], 201);
  },

  /** Writes of some bytes, each so far behind the one before it. With a number of `writes`, the last ones begin again. */
  fillPages({ container, run, bytes, every, writes = Infinity }) {
    const written = randomBytes(bytes);
    let next = 0;
    return () => (timed) => timed(putPages(every * (next++ % writes), written)(`/${container}/${run}`), 201);
  },

  /** All ranges of a blob, page after page, some times: one operation. */
  pageRanges({ container, run, ranges, lists }) {
    return () => async (_timed, note, record, send) => {
      const started = performance.now();
      let found = 0;
      let marker = '';
      for (let left = lists; left > 0; ) {
        const query = { comp: 'pagelist', ...(marker && { marker }) };
        const { body, bytes } = await send(maker('GET', { query })(`/${container}/${run}`), 200, true);
        note('bytes', bytes);
        found += body.latin1Slice().split('<PageRange>').length - 1;
        marker = /<NextMarker>([^<]*)<\/NextMarker>/.exec(body.subarray(-4_096).latin1Slice())?.[1] ?? '';
        if (marker === '') left--;
      }
      record(performance.now() - started);
      if (found !== ranges * lists) throw new Error(`${found} of ${ranges * lists} ranges were listed`);
    };
  },
};

function putPages(from, bytes) {
  const range = `bytes=${from}-${from + bytes.length - 1}`;
  return maker('PUT', {
    query: { comp: 'page' },
    headers: { 'x-ms-page-write': 'update', 'x-ms-range': range },
    bytes,
  });
}
