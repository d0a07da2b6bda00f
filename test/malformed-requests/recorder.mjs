/** Loaded into a test run by `--import`: every request that a server of that process takes becomes a line of a file. */
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';

const file = process.env.HOLDFAST_RECORDING;
const BODY_BYTES_MAX = 4_096;

if (file !== undefined) {
  subscribe('http.server.request.start', (message) => {
    const { request } = /** @type {{ request: import('node:http').IncomingMessage }} */ (message);
    /** @type {Buffer[]} */
    const chunks = [];
    let bytes = 0;
    const { push } = request;
    // Overriding `push` sees the body without a listener, which would make it flow.
    request.push = (chunk, encoding) => {
      if (chunk === null) write();
      else if (bytes < BODY_BYTES_MAX) chunks.push(Buffer.from(chunk));
      bytes += chunk?.length ?? 0;
      return push.call(request, chunk, encoding);
    };
    const write = () => {
      const body = Buffer.concat(chunks).subarray(0, BODY_BYTES_MAX).toString('base64');
      const { method, url, rawHeaders } = request;
      appendFileSync(file, `${JSON.stringify({ method, url, rawHeaders, body, bytes })}\n`);
    };
  });
}
