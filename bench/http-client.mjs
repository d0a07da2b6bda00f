/**
 * An HTTP client that costs a fraction of the server that it measures: signed requests as text, keep-alive sockets, and just enough of a
 * parser for the answers of the two servers.
 */
import { createHmac } from 'node:crypto';
import { connect as connectSocket } from 'node:net';

export const account = 'devstoreaccount1';
export const accountKey = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const KEY = Buffer.from(accountKey, 'base64');
const VERSION = '2025-01-05';

/**
 * Everything of a request but its path, so that making one costs an HMAC and a few strings.
 * `headers` are lower-case and hold no header with a line of its own in the signature but If-Match and Content-Type.
 * A large body is `bytes`, which stay as they are. A request may have a body of its own, as long as `body` is.
 */
export function maker(method, { service, headers = {}, query = {}, body = '', bytes = undefined } = {}) {
  const { 'if-match': ifMatch = '', ...others } = headers;
  const date = new Date().toUTCString();
  const all = { 'x-ms-version': VERSION, ...others, 'x-ms-date': date };
  const length = method === 'PUT' || method === 'POST' ? String((bytes ?? body).length) : '';
  const canonical = Object.keys(all)
    .filter((name) => name.startsWith('x-ms-'))
    .sort()
    .map((name) => `${name}:${all[name]}\n`)
    .join('');
  const type = others['content-type'] ?? '';
  const lines = `${method}\n\n\n${length === '0' ? '' : length}\n\n${type}\n\n\n${ifMatch}\n\n\n\n`;
  const signed = service === 'table' ? `${method}\n\n${type}\n${date}\n` : `${lines}${canonical}`;
  const parameters = Object.keys(query).sort();
  const signedQuery = service === 'table' ? '' : parameters.map((name) => `\n${name}:${query[name]}`).join('');
  const search = parameters.map((name) => `${name}=${encodeURIComponent(query[name])}`).join('&');
  const target = search === '' ? '' : `?${search}`;
  const sent = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  if (ifMatch !== '') sent.push(`if-match: ${ifMatch}\r\n`);
  if (length !== '') sent.push(`content-length: ${length}\r\n`);
  const head = ` HTTP/1.1\r\nhost: 127.0.0.1\r\n${sent.join('')}authorization: SharedKey ${account}:`;
  return (path, ownBody = body) => {
    const text = `${signed}/${account}/${account}${path}${signedQuery}`;
    const signature = createHmac('sha256', KEY).update(text).digest('base64');
    const request = `${method} /${account}${path}${target}${head}${signature}\r\n\r\n${ownBody}`;
    return bytes ? { request, bytes } : request;
  };
}

/** A request in the bytes that are sent: what is done before the clock runs is not measured. */
export function encodeRequest(made) {
  if (typeof made === 'string') return Buffer.from(made, 'latin1');
  return Buffer.concat([Buffer.from(made.request, 'latin1'), made.bytes]);
}

/** One connection, one request at a time. `keep`: the body is wanted. */
export function connect(port) {
  return new Promise((resolve, reject) => {
    const socket = connectSocket({ port, host: '127.0.0.1', noDelay: true });
    let waiting;
    let chunks = [];
    let size = 0;
    let answer;

    function fail(error) {
      waiting?.reject(error);
      reject(error);
      waiting = undefined;
    }
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('the server closed the connection')));
    socket.on('connect', () =>
      resolve({
        send(made, keep = false) {
          return new Promise((done, failed) => {
            waiting = { resolve: done, reject: failed, keep };
            if (typeof made === 'string') return socket.write(made, 'latin1');
            if (Buffer.isBuffer(made)) return socket.write(made);
            socket.cork();
            socket.write(made.request, 'latin1');
            socket.write(made.bytes);
            socket.uncork();
          });
        },
        close: () => socket.destroy(),
      }),
    );
    socket.on('data', (data) => {
      // A body that the caller does not want is only counted.
      if (answer && !waiting.keep && !answer.chunked && answer.status < 400) chunks = [];
      else chunks.push(data);
      size += data.length;
      if (!answer) {
        const all = chunks.length === 1 ? data : Buffer.concat(chunks);
        const end = all.indexOf('\r\n\r\n');
        if (end < 0) return;
        answer = headOf(all.latin1Slice(0, end), end + 4);
        chunks = [all];
      }
      const whole = answer.chunked ? endsChunks(chunks, size, answer) : size >= answer.bodyAt + answer.length;
      if (!whole) return;
      const { status, head, bodyAt } = answer;
      const body = waiting.keep || status >= 400 ? Buffer.concat(chunks).subarray(bodyAt) : undefined;
      const { resolve: done } = waiting;
      const bytes = size - bodyAt;
      chunks = [];
      size = 0;
      answer = undefined;
      waiting = undefined;
      done({ status, head, body, bytes });
    });
  });
}

function headOf(head, bodyAt) {
  const status = Number(head.slice(9, 12));
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  const chunked = length === undefined && /\r\ntransfer-encoding: *chunked/i.test(head);
  return { status, head, bodyAt, chunked, length: Number(length ?? 0) };
}

const LAST_CHUNK = Buffer.from('0\r\n\r\n');

function endsChunks(chunks, size, { bodyAt }) {
  if (size - bodyAt < LAST_CHUNK.length) return false;
  let tail = chunks.at(-1);
  for (let at = chunks.length - 2; tail.length < LAST_CHUNK.length; at--) tail = Buffer.concat([chunks[at], tail]);
  return tail.subarray(tail.length - LAST_CHUNK.length).equals(LAST_CHUNK);
}

export function headerIn(head, name) {
  return new RegExp(`\r\n${name}: *([^\r\n]*)`, 'i').exec(head)?.[1];
}
