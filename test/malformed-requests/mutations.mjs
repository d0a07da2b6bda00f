/** Mutations of a request before it is signed, so that they reach the operations. */
import { oddDocuments, oddHeaders, oddMethods, oddQueries, oddSegments, oddValues } from './odd-values.mjs';

/** @typedef {ReturnType<typeof import('../support/random.mjs').randomOf>} Random */
/** @typedef {import('../support/raw-signing.mjs').Pair} Pair */
/**
 * Text is Latin-1: one character is one byte on the wire. The path begins after the account, the query is split into its parameters.
 * The version is separate from the other headers: mutations of it reveal little.
 * @typedef {{ method: string, path: string, query: string[], version: string, headers: Pair[], body: Buffer }} RequestParts
 */

const LONG_BODY_BYTES = 70_000;

/**
 * Each gets a source of randomness, the request that it changes, and another one to copy from.
 * @type {Readonly<Record<string, (random: Random, request: RequestParts, other: RequestParts) => void>>}
 */
export const mutations = {
  'a parameter is dropped': (random, { query }) => void query.splice(random.below(query.length), 1),
  'a parameter is doubled': (random, { query }) => {
    if (query.length > 0) query.push(random.oneOf(query));
  },
  'a parameter has another value': (random, { query }) => {
    const at = random.below(query.length);
    const [name] = (query[at] ?? 'prefix=').split('=');
    query[at] = `${name}=${inQuery(random, random.oneOf(oddValues))}`;
  },
  'a parameter is put in': (random, { query }) => void query.push(random.oneOf(oddQueries)),
  'parameters come from another': (random, { query }, other) => {
    if (random.chance(0.5)) query.length = 0;
    query.push(...other.query);
  },
  'a parameter has another case': (random, { query }) => {
    const at = random.below(query.length);
    if (query[at] !== undefined)
      query[at] = random.chance(0.5) ? query[at].toUpperCase() : query[at].replace('=', '==');
  },
  'the method is another': (random, request) => {
    request.method = random.oneOf(oddMethods);
  },
  'the path is odd': (random, request) => {
    const odd = random.oneOf(oddSegments);
    const [, container = '', ...blob] = request.path.split('/');
    const place = random.below(5);
    if (place === 0) request.path = `/${odd}/${blob.join('/')}`;
    else if (place === 1) request.path = `${request.path}/${odd}`;
    else if (place === 2) request.path = `${request.path}${odd}`;
    else request.path = `/${container}/${odd}`;
  },
  'the path is that of another': (_, request, other) => {
    request.path = other.path;
  },
  'the path is encoded once more': (random, request) => {
    request.path = random.chance(0.5)
      ? request.path.replaceAll('%', '%25')
      : request.path.replace(/[a-z]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
  },
  'a header is dropped': (random, { headers }) => void headers.splice(random.below(headers.length), 1),
  'a header is doubled': (random, { headers }) => {
    const [name, value] = headers[random.below(headers.length)] ?? [];
    if (name !== undefined) headers.push([name, random.chance(0.5) ? (value ?? '') : oddHeaderValue(random, name)]);
  },
  'a header has another value': (random, { headers }) => {
    const at = random.below(headers.length);
    if (headers[at]) headers[at] = [headers[at][0], oddHeaderValue(random, headers[at][0])];
  },
  'a header is put in': (random, { headers }) => {
    const name = random.oneOf(oddHeaders);
    headers.push([name, oddHeaderValue(random, name)]);
  },
  'a header comes from another': (random, { headers }, other) => {
    const found = other.headers[random.below(other.headers.length)];
    if (found) headers.push(found);
  },
  'headers are swapped': (random, { headers }) => {
    const one = random.below(headers.length);
    const two = random.below(headers.length);
    const [first, second] = [headers[one], headers[two]];
    if (first && second) {
      headers[one] = [first[0], second[1]];
      headers[two] = [second[0], first[1]];
    }
  },
  'a header has another case': (random, { headers }) => {
    const at = random.below(headers.length);
    if (headers[at]) headers[at] = [headers[at][0].toUpperCase(), headers[at][1]];
  },
  'a value is flipped': (random, { headers }) => {
    const at = random.below(headers.length);
    if (headers[at]) headers[at] = [headers[at][0], withoutControlCharacters(flipped(random, headers[at][1]))];
  },
  'there is a lot of metadata': (random, { headers }) => {
    const count = 1 + random.below(200);
    for (let at = 0; at < count; at++) headers.push([`x-ms-meta-m${at}`, 'v'.repeat(random.below(60))]);
  },
  'the body is flipped': (random, request) => {
    request.body = Buffer.from(flipped(random, request.body.toString('latin1')), 'latin1');
  },
  'the body is cut': (random, request) => {
    request.body = request.body.subarray(0, random.below(request.body.length + 1));
  },
  'a part of the body is doubled': (random, request) => {
    const { body } = request;
    const from = random.below(body.length);
    request.body = Buffer.concat([body, body.subarray(from, from + random.below(200)), body.subarray(from)]);
  },
  'the body comes from another': (random, request, other) => {
    const { body } = request;
    const at = random.below(body.length);
    request.body = random.chance(0.5)
      ? other.body
      : Buffer.concat([body.subarray(0, at), other.body, body.subarray(at)]);
  },
  'the body is an odd document': (random, request) => {
    request.body = Buffer.from(random.oneOf(oddDocuments), 'latin1');
  },
  'a tag is changed': (random, request) => {
    const text = request.body.toString('latin1');
    const tags = text.match(/<[^>]*>/g);
    if (!tags) return;
    const tag = random.oneOf(tags);
    const put = random.oneOf(['', `${tag}${tag}`, random.oneOf(oddValues), random.oneOf(tags), tag.toLowerCase()]);
    request.body = Buffer.from(
      text.replace(tag, () => put),
      'latin1',
    );
  },
  'a text is changed': (random, request) => {
    const put = random.oneOf(oddValues);
    const text = request.body.toString('latin1').replace(/>[^<]+</, () => `>${put}<`);
    request.body = Buffer.from(text, 'latin1');
  },
  'the body is long': (random, request) => {
    if (random.chance(0.2)) request.body = Buffer.alloc(1 + random.below(LONG_BODY_BYTES), 'x');
  },
  'the version is another': (random, request) => {
    const versions = ['2009-09-19', '2012-02-12', '2015-02-21', '2019-12-12', '2030-01-01', '2026-02-31'];
    request.version = random.chance(0.7) ? random.oneOf(versions) : random.oneOf(oddValues);
  },
};

/** Half of them of the header's own kind, which gets further. @param {Random} random @param {string} name */
function oddHeaderValue(random, name) {
  const [, kind] = oddKinds.find(([pattern]) => pattern.test(name)) ?? [];
  return random.oneOf(kind && random.chance(0.5) ? oddValues.filter((value) => kind.test(value)) : oddValues);
}

/** @type {readonly [name: RegExp, value: RegExp][]} */
const oddKinds = [
  [/range$/i, /^bytes/],
  [/match$/i, /^[*"W]/],
  [/since$|^date$/i, /GMT$/],
  [/lease-id$/i, /-4000-/],
  [/lease-(?:duration|break)|length$/i, /^-?\d{1,3}$/],
  [/lease-action$/i, /^(?:acquire|renew|change|release|break)$/],
  [/md5$|crc64$/i, /=$/],
  [/copy-source$/i, /^\{origin/],
  [/blob-type$/i, /Blob$/],
];

/** Some of it encoded as it should be, some not. @param {Random} random @param {string} value */
function inQuery(random, value) {
  if (random.chance(0.3))
    return value.replace(/[^!-~]/g, (letter) => `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return encodeURIComponent(value);
}

/** @param {Random} random @param {string} text */
function flipped(random, text) {
  if (text === '') return text;
  const at = random.below(text.length);
  const letter = String.fromCharCode(text.charCodeAt(at) ^ (1 << random.below(8)));
  return text.slice(0, at) + letter + text.slice(at + 1);
}

/** Characters that would end the header belong to the mutations of the wire. @param {string} value */
function withoutControlCharacters(value) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are removed
  return value.replace(/[\x00-\x08\x0a-\x1f\x7f]/g, '?');
}
