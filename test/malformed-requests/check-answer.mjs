/** Invariants of every answer, whatever the request was. */
import { SaxesParser } from 'saxes';

/** @typedef {import('./connection.mjs').Answer} Answer */

/** Statuses of refusals before a request is parsed: too long, too slow, or no HTTP. */
const BEFORE_REQUEST = new Set([400, 408, 413, 431, 503]);
const LEAK = /node_modules|\/dist\/|\.js:\d+|\n {4}at /;

/** The fault of the answer, or undefined. @param {Answer} answer @param {string} method */
export function findFault({ status, headers, body }, method) {
  if (status === 500 || status === 502 || status === 504 || status > 599) return `the status is ${status}`;
  const id = headers.get('x-ms-request-id');
  if (id === undefined) {
    if (isPlainText(headers)) return undefined;
    const isRefusal = BEFORE_REQUEST.has(status) && headers.get('connection') === 'close';
    return isRefusal ? undefined : `${status} has no x-ms-request-id`;
  }
  if (!/^[0-9a-f-]{36}$/.test(id)) return `x-ms-request-id is ${id}`;
  for (const [name, value] of headers) if (LEAK.test(value)) return `${name} reveals internals: ${value}`;
  const code = headers.get('x-ms-error-code');
  if (status < 400) {
    // The content of a blob or file may be any bytes.
    const isContent = headers.has('x-ms-blob-type') || headers.has('x-ms-type');
    if (headers.get('content-type') !== 'application/xml' || isContent) return undefined;
    return method === 'HEAD' ? undefined : xmlFault(body);
  }
  if (isPlainText(headers)) return undefined;
  if (code === undefined) return `${status} has no x-ms-error-code`;
  if (method === 'HEAD') return undefined;
  if (headers.get('content-type') !== 'application/xml') return `an error is ${headers.get('content-type')}`;
  const text = body.toString('utf8');
  if (LEAK.test(text) && !/AuthenticationErrorDetail/.test(text)) return 'the error reveals internals';
  const bodyCode = /<Error><Code>([^<]*)<\/Code><Message>/.exec(text)?.[1];
  return xmlFault(body) ?? (bodyCode === code ? undefined : `the header has ${code}, the body ${bodyCode}`);
}

/** The management endpoints answer with plain text. @param {Map<string, string>} headers */
function isPlainText(headers) {
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
