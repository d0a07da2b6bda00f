/**
 * Inputs that a client can make large in one request. Each is measured at n and at 2n, the largest that is accepted: in steps by
 * growth.test.ts, and by `npm run bench -- --stalls` in milliseconds that another client waits.
 */
import { HEADERS_MAX, QUERY_PARAMETERS_MAX } from '../../build/base/input-limits.js';
import { batchAttacks } from './batch-attacks.mjs';
import { bodyAttacks } from './body-attacks.mjs';
import { fileAttacks } from './file-attacks.mjs';
import { inPlaceAttacks } from './in-place-attacks.mjs';
import { listAttacks } from './list-attacks.mjs';
import { tableAttacks } from './table-attacks.mjs';

/** @typedef {import('../support/raw-requests.mjs').Request} Request */
/**
 * @typedef {object} Attack
 * @property {string} name
 * @property {number} n
 * @property {(n: number) => Request} request
 * @property {number} status of the answers at n and 2n
 * @property {{ n: number, status: number } | undefined} [past] the first n that is too large, and its answer
 * @property {number} [stepsMax] where the work is done in slices between which other requests run
 * @property {(send: (request: Request) => Promise<{ status: number, text: string }>) => Promise<void>} [prepare] once, before the first request
 */

const WRONG_SIGNATURE = `SharedKey devstoreaccount1:${Buffer.alloc(32).toString('base64')}`;

/** @param {number} n @param {(at: number) => string} item */
const many = (n, item) => Array.from({ length: n }, (_, at) => item(at));

/** @returns {[string, string][]} */
const wrongKey = () => [
  ['Authorization', WRONG_SIGNATURE],
  ['x-ms-date', new Date().toUTCString()],
];

const parameters = { n: QUERY_PARAMETERS_MAX / 2, past: { n: QUERY_PARAMETERS_MAX + 1, status: 400 } };
/** Some are there anyway. */
const SENT_ANYWAY = 8;
const headers = { n: (HEADERS_MAX - SENT_ANYWAY) / 2, past: { n: HEADERS_MAX + 1, status: 431 } };

const CONTAINER = 'growth';
/** @type {Attack['prepare']} */
async function newContainer(send) {
  await send({ method: 'PUT', path: `/${CONTAINER}`, query: ['restype=container'], allowed: true });
}

const ORIGIN = 'https://example.com';
const ALLOWED_HEADERS = many(64, (at) => `a-${at}`);

/** The rule that a long list of names is held against the longest. @type {Attack['prepare']} */
async function allowOrigins(send) {
  const headers = [...ALLOWED_HEADERS, `${ALLOWED_HEADERS.at(-1)}*`].join(',');
  const rule =
    `<AllowedOrigins>${ORIGIN}</AllowedOrigins><AllowedMethods>PUT</AllowedMethods>` +
    `<AllowedHeaders>${headers}</AllowedHeaders><ExposedHeaders></ExposedHeaders><MaxAgeInSeconds>1</MaxAgeInSeconds>`;
  const { status, text } = await send({
    method: 'PUT',
    query: ['restype=service', 'comp=properties'],
    body: `<StorageServiceProperties><Cors><CorsRule>${rule}</CorsRule></Cors></StorageServiceProperties>`,
    allowed: true,
  });
  if (status !== 202) throw new Error(text);
}

/** @type {readonly Attack[]} */
export const attacks = [
  ...batchAttacks,
  ...bodyAttacks,
  ...inPlaceAttacks,
  ...fileAttacks,
  ...listAttacks,
  ...tableAttacks,
  {
    name: 'query parameters under a wrong signature',
    ...parameters,
    request: (n) => ({ query: many(n, (at) => `p${at}`), headers: wrongKey() }),
    status: 403,
  },
  {
    name: 'one query parameter many times, under a wrong signature',
    ...parameters,
    request: (n) => ({ query: many(n, (at) => `p=${at}`), headers: wrongKey() }),
    status: 403,
  },
  {
    name: 'query parameters beyond ASCII under a wrong signature',
    ...parameters,
    request: (n) => ({ query: many(n, (at) => `%C3%A4${at}=%C3%A4`), headers: wrongKey() }),
    status: 403,
  },
  {
    name: 'query parameters under a wrong signature at the secondary address',
    ...parameters,
    request: (n) => ({ path: '-secondary/', query: many(n, (at) => `p${at}`), headers: wrongKey() }),
    status: 403,
  },
  {
    name: 'query parameters of a table under a wrong signature',
    ...parameters,
    request: (n) => ({ service: 'table', query: many(n, (at) => `p${at}`), headers: wrongKey() }),
    status: 403,
  },
  {
    name: 'x-ms headers under a wrong signature',
    ...headers,
    request: (n) => ({
      headers: [...wrongKey(), ...many(n, (at) => `x-ms-meta-${(at * 7919) % n}`).map((name) => [name, '  a  b'])],
    }),
    status: 403,
  },
  {
    name: 'metadata',
    ...headers,
    prepare: newContainer,
    request: (n) => ({
      method: 'PUT',
      path: `/${CONTAINER}/metadata`,
      headers: [
        ['x-ms-blob-type', 'BlockBlob'],
        ...many(n, (at) => `x-ms-meta-m${at.toString(36)}`).map((name) => [name, '1']),
      ],
      allowed: true,
    }),
    status: 201,
  },
  {
    name: 'cookies',
    ...headers,
    request: (n) => ({ query: ['comp=list'], headers: many(n, () => 'Cookie').map((name) => [name, 'a=b']) }),
    status: 401,
  },
  {
    name: 'ETags of one condition',
    n: 8_000,
    prepare: newContainer,
    request: (n) => ({
      path: `/${CONTAINER}/blob`,
      headers: [['If-None-Match', many(n, (at) => at.toString(36)).join(',')]],
      allowed: true,
    }),
    status: 404,
  },
  ...['sig&', '?', '/', '@', '%41', '&a=signature'].map((part) => ({
    name: `the URL of a copy source, of ${part}`,
    n: 2_000,
    prepare: newContainer,
    /** @param {number} n @returns {Request} */
    request: (n) => ({
      method: 'PUT',
      path: `/${CONTAINER}/copy`,
      headers: [['x-ms-copy-source', `http://elsewhere.example/${part.repeat(n)}`]],
      allowed: true,
    }),
    status: 403,
  })),
  {
    name: 'names in Access-Control-Request-Headers',
    ...headers,
    prepare: allowOrigins,
    request: (n) => ({
      method: 'OPTIONS',
      path: `/${CONTAINER}`,
      headers: [
        ['Origin', ORIGIN],
        ['Access-Control-Request-Method', 'PUT'],
        ['Access-Control-Request-Headers', many(n, (at) => `${ALLOWED_HEADERS.at(-1)}${at}`).join(',')],
      ],
    }),
    status: 200,
    past: { n: HEADERS_MAX + 1, status: 400 },
  },
  {
    name: 'choices of include',
    n: 1_500,
    request: (n) => ({
      query: ['comp=list', 'prefix=none', `include=${many(n, () => 'metadata').join(',')}`],
      allowed: true,
    }),
    status: 200,
  },
];
