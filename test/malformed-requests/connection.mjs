/** A strict HTTP client: sends raw bytes, and verifies answers against the grammar of HTTP. */
import { connect } from 'node:net';

/** @typedef {{ status: number, headers: Map<string, string>, body: Buffer, chunked: boolean }} Answer */

export class Fault extends Error {}

/** @param {number} port */
export function openConnection(port) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let bytes = Buffer.alloc(0);
  let ended = false;
  let wake = () => {};
  socket.on('data', (chunk) => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    wake();
  });
  for (const event of ['end', 'close', 'error']) {
    socket.on(event, () => {
      ended = true;
      wake();
    });
  }

  /** @param {() => boolean} enough */
  async function until(enough) {
    while (!enough() && !ended) {
      await new Promise((resolve) => {
        wake = () => resolve(undefined);
      });
    }
    return enough();
  }

  /** @param {number} count */
  function take(count) {
    const head = bytes.subarray(0, count);
    bytes = bytes.subarray(count);
    return head;
  }

  /** @param {string} method */
  async function readHead(method) {
    if (!(await until(() => bytes.includes('\r\n\r\n')))) {
      if (bytes.length > 0) throw new Fault(`half an answer: ${bytes.toString('latin1').slice(0, 200)}`);
      return undefined;
    }
    return parseHead(
      method,
      take(bytes.indexOf('\r\n\r\n') + 4)
        .toString('latin1')
        .slice(0, -4),
    );
  }

  /** @param {number} count */
  async function exactly(count) {
    if (!(await until(() => bytes.length >= count)))
      throw new Fault(`the body ended after ${bytes.length} of ${count}`);
    return take(count);
  }

  async function chunks() {
    const parts = [];
    for (;;) {
      if (!(await until(() => bytes.includes('\r\n')))) throw new Fault('the body ended within its chunks');
      const line = take(bytes.indexOf('\r\n') + 2)
        .toString('latin1')
        .slice(0, -2);
      if (!/^[0-9a-f]{1,8}$/i.test(line)) throw new Fault(`no length of a chunk: ${line.slice(0, 50)}`);
      const length = Number.parseInt(line, 16);
      const part = await exactly(length + 2);
      if (part.toString('latin1', length) !== '\r\n') throw new Fault('a chunk is longer than it says');
      if (length === 0) return Buffer.concat(parts);
      parts.push(part.subarray(0, length));
    }
  }

  return {
    /** @param {Buffer} request */
    send: (request) => void socket.write(request),
    endSending: () => void socket.end(),
    isUsable: () => !ended,
    /** Bytes that no answer accounts for. */
    surplus: () => bytes.length,
    /** The next answer, or undefined if the server closes the connection instead. @param {string} method */
    async answer(method) {
      for (;;) {
        const found = await readHead(method);
        if (!found) return undefined;
        const { status, headers } = found;
        if (status < 200) continue;
        const chunked = headers.has('transfer-encoding');
        const length = Number(headers.get('content-length') ?? 0);
        const bare = method === 'HEAD' || status === 204 || status === 304;
        const body = bare ? Buffer.alloc(0) : chunked ? await chunks() : await exactly(length);
        /** @type {Answer} */
        const answer = { status, headers, body, chunked };
        return answer;
      }
    },
    /** Resolves when the server has closed it, too. Further bytes must begin as an answer does. */
    async end() {
      await until(() => false);
      const rest = bytes.toString('latin1', 0, 9);
      if (rest !== '' && rest !== 'HTTP/1.1 ') throw new Fault(`bytes after the answer: ${rest}`);
    },
    destroy: () => void socket.destroy(),
  };
}

/** @param {string} method @param {string} text */
function parseHead(method, text) {
  const [first = '', ...lines] = text.split('\r\n');
  const status = /^HTTP\/1\.1 (\d{3}) [\t\x20-\x7e]*$/.exec(first)?.[1];
  if (status === undefined) throw new Fault(`no status line: ${first.slice(0, 200)}`);
  /** @type {Map<string, string>} */
  const headers = new Map();
  for (const line of lines) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not occur
    const found = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([^\x00-\x08\x0a-\x1f\x7f]*)$/.exec(line);
    if (!found) throw new Fault(`no header: ${line.slice(0, 200)}`);
    const name = (found[1] ?? '').toLowerCase();
    if (headers.has(name) && !name.startsWith('x-ms-meta-')) throw new Fault(`the header ${name} comes twice`);
    headers.set(name, found[2] ?? '');
  }
  const length = headers.get('content-length');
  if (length !== undefined && !/^\d+$/.test(length)) throw new Fault(`Content-Length is ${length}`);
  if (length !== undefined && headers.has('transfer-encoding')) throw new Fault('two lengths');
  const bare = method === 'HEAD' || Number(status) < 200 || status === '204' || status === '304';
  if (length === undefined && !headers.has('transfer-encoding') && !bare) throw new Fault('the answer has no length');
  return { status: Number(status), headers };
}
