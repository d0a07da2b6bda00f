/** What every answer must be, whatever was asked. */
import { SaxesParser } from 'saxes';

/** @typedef {import('./connection.mjs').Answer} Answer */

/** What is refused before it is a request: too long, too slow, or no HTTP. */
const BEFORE_REQUEST = new Set([400, 408, 413, 431, 503]);
const LEAK = /node_modules|\/dist\/|\.js:\d+|\n {4}at /;

/** What is wrong with it, or undefined. @param {Answer} answer @param {string} method */
export function faultIn({ status, headers, body }, method) {
  if (status === 500 || status === 502 || status === 504 || status > 599) return `the status is ${status}`;
  const id = headers.get('x-ms-request-id');
  if (id === undefined) {
    if (isOwn(headers)) return undefined;
    const isRefusal = BEFORE_REQUEST.has(status) && headers.get('connection') === 'close';
    return isRefusal ? undefined : `${status} has no x-ms-request-id`;
  }
  if (!/^[0-9a-f-]{36}$/.test(id)) return `x-ms-request-id is ${id}`;
  for (const [name, value] of headers) if (LEAK.test(value)) return `${name} tells too much: ${value}`;
  const code = headers.get('x-ms-error-code');
  if (status < 400) {
    // What a blob holds is the caller's affair.
    if (headers.get('content-type') !== 'application/xml' || headers.has('x-ms-blob-type')) return undefined;
    return method === 'HEAD' ? undefined : xmlFault(body);
  }
  if (isOwn(headers)) return undefined;
  if (code === undefined) return `${status} has no x-ms-error-code`;
  if (method === 'HEAD') return undefined;
  if (headers.get('content-type') !== 'application/xml') return `an error is ${headers.get('content-type')}`;
  const text = body.toString('utf8');
  if (LEAK.test(text) && !/AuthenticationErrorDetail/.test(text)) return 'the error tells too much';
  const said = /<Error><Code>([^<]*)<\/Code><Message>/.exec(text)?.[1];
  return xmlFault(body) ?? (said === code ? undefined : `the header says ${code}, the body ${said}`);
}

/** Health and the like answer with plain text. @param {Map<string, string>} headers */
function isOwn(headers) {
  return headers.get('content-type') === 'text/plain' && !headers.has('x-ms-error-code');
}

/** @param {Buffer} body */
function xmlFault(body) {
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    return 'the XML is no UTF-8';
  }
  /** @type {Error | undefined} */
  let fault;
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    fault ??= error;
  });
  parser.write(text).close();
  return fault && `the XML is broken: ${fault.message}`;
}
