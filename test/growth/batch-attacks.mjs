/** Attacks by the body of Blob Batch; see attacks.mjs. */
import { PART_HEADERS_MAX, QUERY_PARAMETERS_MAX } from '../../build/base/input-limits.js';

import { ALL_RIGHTS } from '../support/raw-requests.mjs';

/** @typedef {import('./attacks.mjs').Attack} Attack */

/** Parts are read and verified in slices, between which other requests run. */
const IN_TURNS = 60_000_000;
const WRONG_SIGNATURE = `SharedKey devstoreaccount1:${Buffer.alloc(32).toString('base64')}`;

/** @param {number} n @param {(at: number) => string} item @param {string} [between] */
const many = (n, item, between = '') => Array.from({ length: n }, (_, at) => item(at)).join(between);

/** A wrong signature is verified against every form in which clients sign. */
const part = (headers = '', query = '') =>
  `Content-Type: application/http\r\nContent-ID: 0\r\n\r\nDELETE /devstoreaccount1/c/b${query} HTTP/1.1\r\n` +
  `x-ms-date: ${new Date().toUTCString()}\r\nAuthorization: ${WRONG_SIGNATURE}\r\n${headers}\r\n`;

/** @param {readonly string[]} parts @returns {import('../support/raw-requests.mjs').Request} */
const batch = (parts, preamble = '') => ({
  ...{ method: 'POST', query: ['comp=batch'], allowed: true },
  headers: [['Content-Type', 'multipart/mixed; boundary=b']],
  body: `${preamble}${parts.map((text) => `--b\r\n${text}\r\n`).join('')}--b--\r\n`,
});

const CONTAINER = 'batches';
const BLOBS = 256;
/** @type {[string, string][]} */
const BLOCK_BLOB = [['x-ms-blob-type', 'BlockBlob']];
const SIGNATURE = `&${ALL_RIGHTS.join('&')}`;

/** @type {NonNullable<Attack['prepare']>} */
async function newBlobs(send) {
  await send({ method: 'PUT', path: `/${CONTAINER}`, query: ['restype=container'], allowed: true });
  for (let at = 0; at < BLOBS; at++) {
    const blob = { method: 'PUT', path: `/${CONTAINER}/${at}`, headers: BLOCK_BLOB, allowed: true };
    const { status, text } = await send(blob);
    if (status !== 201) throw new Error(text);
  }
}

/** @param {number} at */
const tierPart = (at) =>
  `Content-Type: application/http\r\nContent-ID: ${at}\r\n\r\n` +
  `PUT /devstoreaccount1/${CONTAINER}/${at}?comp=tier${SIGNATURE} HTTP/1.1\r\nx-ms-access-tier: Cool\r\n\r\n`;

/** @type {readonly Attack[]} */
export const batchAttacks = [
  {
    ...{ name: 'parts of a blob batch', n: 128, status: 202, stepsMax: IN_TURNS },
    request: (n) => batch(Array.from({ length: n }, () => part())),
  },
  {
    ...{
      name: 'parts of a blob batch that set tiers',
      n: BLOBS / 2,
      status: 202,
      stepsMax: IN_TURNS,
      prepare: newBlobs,
    },
    request: (n) => batch(Array.from({ length: n }, (_, at) => tierPart(at))),
  },
  {
    ...{ name: 'long headers of the parts of a blob batch', n: 128, status: 202, stepsMax: IN_TURNS },
    request: (n) => batch(Array.from({ length: n }, () => part(`x-ms-lease-id: ${'a'.repeat(15_000)}\r\n`))),
  },
  {
    ...{ name: 'headers of a part of a blob batch', n: PART_HEADERS_MAX / 2 - 4, status: 202 },
    request: (n) => batch([part(many(n, (at) => `x-ms-h${at}: v\r\n`))]),
  },
  {
    ...{ name: 'query parameters of a part of a blob batch', n: QUERY_PARAMETERS_MAX / 2, status: 202 },
    request: (n) => batch([part('', `?${many(n, (at) => `p${at}`, '&')}`)]),
  },
  {
    ...{ name: 'dashes in a blob batch', n: 1_900_000, status: 202, stepsMax: IN_TURNS },
    request: (n) => batch([part()], `${'-'.repeat(n)}\r\n`),
  },
  {
    ...{ name: 'line breaks after a part of a blob batch', n: 1_900_000, status: 202, stepsMax: IN_TURNS },
    request: (n) => batch([`${part()}${'\n'.repeat(n)}`]),
  },
];
