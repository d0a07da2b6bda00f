/** Case N of a seed: a request of the corpus, mutated and signed again. The same two numbers make the same case. */
import { readFileSync } from 'node:fs';
import { randomOf } from '../support/random.mjs';
import { ACCOUNT, accountSas, serviceSas, sharedKey } from '../support/raw-signing.mjs';
import { mutations } from './mutations.mjs';
import { oddValues } from './odd-values.mjs';
import { joinMessage, wireMutations } from './wire-mutations.mjs';

/** @typedef {import('./mutations.mjs').RequestParts} RequestParts */
/** @typedef {import('./mutations.mjs').Random} Random */
/** `ownConnection`: bytes that follow on the same connection may be read as a part of the request. */
/** @typedef {{ method: string, bytes: Buffer, ownConnection: boolean, how: string[] }} Case */

export const containers = Array.from({ length: 32 }, (_, at) => `pool-${at}`);
export const blobs = ['one', 'two', 'three', 'dir/four'];
/** These get furthest, so they come more often. */
const frequent = ['a header has another value', 'a header comes from another', 'a parameter has another value'];
const names = [...Object.keys(mutations), ...frequent, ...frequent, ...frequent];
const wireNames = Object.keys(wireMutations);

/** @typedef {{ method: string, path: string, headers: [string, string][], body?: string, base64?: string }} Recorded */
/** @typedef {'blob' | 'file'} Service */

/** The letters of a service in signatures: of an account's services, of its resources, and of permissions. */
const LETTERS = /** @type {const} */ ({
  blob: { ss: 'b', sr: ['c', 'b'], sp: 'rwdlac' },
  file: { ss: 'f', sr: ['s', 'f'], sp: 'rcwdl' },
});

/** @param {string} file @returns {Recorded[]} */
const read = (file) =>
  readFileSync(new URL(file, import.meta.url), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

/** By route, so that routes with many shapes do not dominate. Those with few shapes are mostly not implemented. @param {Recorded[]} corpus */
const byRoute = (corpus) =>
  [...new Set(corpus.map(routeOf))]
    .map((operation) => corpus.filter((request) => routeOf(request) === operation))
    .filter((group) => group.length >= 3);

/** @param {string} file */
const corpusIn = (file) => {
  const corpus = read(file);
  return { corpus, groups: byRoute(corpus) };
};
const corpora = { blob: corpusIn('corpus.jsonl'), file: corpusIn('file-corpus.jsonl') };

/** @param {number} seed @param {number} number @param {string} host @param {Service} service @returns {Case} */
export function makeCase(seed, number, host, service) {
  const { corpus, groups } = corpora[service];
  const random = randomOf(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b));
  const container = random.chance(0.9) ? random.oneOf(containers) : `other-${random.below(3)}`;
  const blob = random.chance(0.85) ? random.oneOf(blobs) : `new-${random.below(20)}`;
  /** @param {string} text */
  const filled = (text) =>
    text
      .replaceAll('{origin}', `http://${host}/${ACCOUNT}`)
      .replaceAll('{container}', container)
      .replaceAll('{blob}', blob);
  const alike = random.chance(0.6) ? random.oneOf(groups) : corpus;
  const request = copyRequest(random.oneOf(alike));
  const how = [];
  const ownConnection = random.chance(0.12);
  const count = random.chance(0.12) ? 0 : random.chance(0.65) ? 1 : 2 + random.below(4);
  for (let done = 0; done < count; done++) {
    const name = random.oneOf(names);
    mutations[name]?.(random, request, copyRequest(random.oneOf(random.chance(0.6) ? alike : corpus)));
    how.push(name);
  }
  const { method } = request;
  const takesBody = method === 'PUT' || method === 'POST' || random.chance(0.15);
  const body = takesBody ? request.body : Buffer.alloc(0);
  const path = `/${ACCOUNT}${filled(request.path)}`.replace(/[\0-\x20\x7f]/g, '');
  const query = request.query.map(filled);
  const headers = request.headers.map(([name, value]) => /** @type {[string, string]} */ ([name, filled(value)]));
  if (body.length > 0 || method === 'PUT' || method === 'POST') headers.push(['Content-Length', String(body.length)]);
  if (request.version !== '') headers.push(['x-ms-version', filled(request.version)]);
  headers.push(['Host', host]);
  how.push(authorize(random, service, method, path, query, headers));
  const target = query.length > 0 ? `${path}?${query.join('&')}` : path;
  const head = `${method} ${target} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}`).join('\r\n')}`;
  if (!ownConnection) return { method, bytes: joinMessage(head, body), ownConnection: affectsFraming(headers), how };
  const name = random.oneOf(wireNames);
  how.push(name);
  return { method, bytes: wireMutations[name]?.(random, head, body) ?? body, ownConnection, how };
}

/** @param {[string, string]} header */
function isVersion([name]) {
  return name.toLowerCase() === 'x-ms-version';
}

/** @param {Recorded} recorded */
function routeOf({ method, path, headers }) {
  const [place = '', query = ''] = path.split('?');
  const copies = headers.some(([name]) => name === 'x-ms-copy-source');
  return `${method} ${place.split('/').length} ${/comp=\w+/.exec(query)?.[0]} ${copies}`;
}

/** @param {Recorded} recorded @returns {RequestParts} */
function copyRequest({ method, path, headers, body, base64 }) {
  const question = path.indexOf('?');
  return {
    method,
    path: question < 0 ? path : path.slice(0, question),
    query: question < 0 ? [] : path.slice(question + 1).split('&'),
    version: headers.find(isVersion)?.[1] ?? '',
    headers: headers.filter((header) => !isVersion(header)).map(([name, value]) => [name, value]),
    body: Buffer.from(body ?? base64 ?? '', body === undefined ? 'base64' : 'utf8'),
  };
}

/**
 * Adds credentials. Most cases have the account key: a refused caller reaches no operation.
 * @param {Random} random @param {Service} service @param {string} method @param {string} path @param {string[]} query
 * @param {[string, string][]} headers
 */
function authorize(random, service, method, path, query, headers) {
  const letters = LETTERS[service];
  const lot = random.below(100);
  if (lot < 4) return 'anonymous';
  if (lot < 10) {
    query.push(
      ...accountSas(
        withOddField(random, {
          sv: '2021-06-08',
          ss: letters.ss,
          srt: 'sco',
          sp: 'rwdlac',
          se: '2040-01-01T00:00:00Z',
        }),
      ),
    );
    return 'with an account SAS';
  }
  if (lot < 18) {
    const place = path.slice(ACCOUNT.length + 1);
    const sr = random.oneOf([...letters.sr]);
    const fields = { sv: '2021-06-08', sr, sp: letters.sp, se: '2040-01-01T00:00:00Z' };
    const more = random.chance(0.3)
      ? { [random.oneOf(['rscc', 'rscd', 'rsce', 'rscl', 'rsct'])]: random.oneOf(oddValues) }
      : {};
    query.push(
      ...serviceSas(
        sr === letters.sr[0] ? place.split('/').slice(0, 2).join('/') : place,
        withOddField(random, { ...fields, ...more }),
        service,
      ),
    );
    return 'with a service SAS';
  }
  headers.push(['x-ms-date', new Date().toUTCString()]);
  const value = sharedKey(method, path, query.join('&'), headers);
  headers.push(['Authorization', lot < 20 ? value.slice(0, -1 - random.below(20)) : value]);
  return lot < 20 ? 'with a broken signature' : 'signed';
}

/** @param {Random} random @param {Record<string, string>} fields */
function withOddField(random, fields) {
  if (random.chance(0.3)) {
    const name = random.oneOf([...Object.keys(fields), 'st', 'sip', 'spr', 'si']);
    fields[name] = random.oneOf([
      ...oddValues.filter((value) => !/[^!-~]/.test(value)),
      '127.0.0.1',
      'https',
      'https,http',
      'w',
      'bs',
      'd',
    ]);
  }
  return fields;
}

/** Headers about the length of the request or the fate of the connection. @param {[string, string][]} headers */
function affectsFraming(headers) {
  return headers.some(
    ([name]) =>
      /^(?:content-length|transfer-encoding|connection|upgrade|expect|te)$/i.test(name) && name !== 'Content-Length',
  );
}
