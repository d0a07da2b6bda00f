/** Requests of any shape, as bytes on a connection of their own. */
import { connect } from 'node:net';
import { ACCOUNT, accountSas } from './raw-signing.mjs';

/** @typedef {'blob' | 'queue' | 'table' | 'file'} Service */
/**
 * @typedef {object} Request
 * @property {Service} [service] blob
 * @property {string} [method] GET
 * @property {string} [path] after the account
 * @property {readonly string[]} [query] names, or names with their values, encoded
 * @property {readonly (readonly [name: string, value: string])[]} [headers]
 * @property {string | Buffer} [body]
 * @property {boolean} [allowed] it carries a shared access signature that allows everything
 */

export const ALL_RIGHTS = accountSas({
  ...{ sv: '2021-06-08', ss: 'bqtf', srt: 'sco', sp: 'rwdlacuptf', se: '2099-01-01T00:00:00Z' },
});

/** @param {Request} request */
export function bytesOf({ method = 'GET', path = '/', query = [], headers = [], body = '', allowed = false }) {
  const search = [...query, ...(allowed ? ALL_RIGHTS : [])].join('&');
  const length = Buffer.byteLength(body);
  const lines = [
    `${method} /${ACCOUNT}${path}${search === '' ? '' : `?${search}`} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Connection: close',
    'x-ms-version: 2021-06-08',
    ...(method === 'PUT' || method === 'POST' || length > 0 ? [`Content-Length: ${length}`] : []),
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)]);
}

/**
 * The answer, once the server has closed the connection.
 * @param {number} port @param {Request} request @returns {Promise<{ status: number, text: string }>}
 */
export function send(port, request) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    /** @type {Buffer[]} */
    const chunks = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('end', () => {
      const text = Buffer.concat(chunks).toString('latin1');
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]), text });
    });
    // It stays open to the server: Node takes half of a connection for none.
    socket.write(bytesOf(request));
  });
}
