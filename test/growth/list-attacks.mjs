/** Attacks by lists of items with long metadata or text; see attacks.mjs. */

import { TAG_COMPARISONS_MAX } from '../../build/base/input-limits.js';

/** @typedef {import('./attacks.mjs').Attack} Attack */
/** @typedef {import('../support/raw-requests.mjs').Request} Request */

/** A list is written in slices of few bytes, between which other requests run. */
const IN_TURNS = 60_000_000;
const ITEMS = 100;
const MESSAGES = 32;
const NAME = 'long-';
const CONTAINER = 'lists';

/** @type {[string, string][]} */
const LONG = Array.from({ length: 7 }, (_, at) => [`x-ms-meta-a${at}`, '&'.repeat(1_100)]);
/** @type {[string, string][]} */
const MANY = Array.from({ length: 900 }, (_, at) => [`x-ms-meta-a${at}`, 'b']);

/** @param {number} count @param {(at: number) => Request} request @param {Request} [before] @returns {NonNullable<Attack['prepare']>} */
const putting = (count, request, before) => async (send) => {
  if (before) await send({ method: 'PUT', allowed: true, ...before });
  for (let at = 0; at < count; at++) {
    const { status, text } = await send({ method: 'PUT', allowed: true, ...request(at) });
    if (status !== 201) throw new Error(text);
  }
};

const newContainer = { path: `/${CONTAINER}`, query: ['restype=container'] };
/** @param {string} prefix @param {[string, string][]} metadata */
const blobs = (prefix, metadata) =>
  putting(
    ITEMS,
    (at) => ({ path: `/${CONTAINER}/${prefix}${at}`, headers: [['x-ms-blob-type', 'BlockBlob'], ...metadata] }),
    newContainer,
  );
/** @param {string} prefix @param {number} n */
const listing = (prefix, n, include = 'metadata') => [
  ...['comp=list', `include=${include}`, `prefix=${prefix}`, `maxresults=${n}`],
];

/** @type {[string, string][]} */
const LONG_BLOB = [['x-ms-blob-type', 'BlockBlob'], ...LONG];

/** One blob with many snapshots. @type {Attack['prepare']} */
async function takeSnapshots(send) {
  const path = `/${CONTAINER}/taken`;
  await putting(1, () => ({ path, headers: LONG_BLOB }), newContainer)(send);
  await putting(ITEMS, () => ({ path, query: ['comp=snapshot'] }))(send);
}

/** One blob that was replaced many times while the service kept what it replaced. @type {Attack['prepare']} */
async function replaceOften(send) {
  await setRetention(send, '<Enabled>true</Enabled><Days>1</Days>');
  await putting(ITEMS + 1, () => ({ path: `/${CONTAINER}/replaced`, headers: LONG_BLOB }), newContainer)(send);
  await setRetention(send, '<Enabled>false</Enabled>');
}

/** @param {Parameters<NonNullable<Attack['prepare']>>[0]} send @param {string} policy */
async function setRetention(send, policy) {
  const properties = `<DeleteRetentionPolicy>${policy}</DeleteRetentionPolicy>`;
  const { status, text } = await send({
    ...{ method: 'PUT', query: ['restype=service', 'comp=properties'], allowed: true },
    body: `<StorageServiceProperties>${properties}</StorageServiceProperties>`,
  });
  if (status !== 202) throw new Error(text);
}

const lists = { n: ITEMS / 2, status: 200, stepsMax: IN_TURNS };

/** @param {string} where */
const search = (where) => ({
  method: 'GET',
  query: ['comp=blobs', `where=${encodeURIComponent(where)}`],
  allowed: true,
});

/** @type {readonly Attack[]} */
export const listAttacks = [
  {
    name: 'comparisons of a search by tags',
    ...{ n: TAG_COMPARISONS_MAX / 2, status: 200 },
    request: (n) => search(Array.from({ length: n }, (_, at) => `key${at}='value'`).join(' AND ')),
  },
  {
    ...{ name: 'spaces in a search by tags', n: 1_000, status: 200 },
    request: (n) => search(`key${' '.repeat(n)}=${' '.repeat(n)}'value'`),
  },
  {
    ...{ name: 'containers with long metadata', ...lists },
    prepare: putting(ITEMS, (at) => ({ path: `/${NAME}${at}`, query: ['restype=container'], headers: LONG })),
    request: (n) => ({ query: listing(NAME, n), allowed: true }),
  },
  {
    ...{ name: 'queues with long metadata', ...lists },
    prepare: putting(ITEMS, (at) => ({ service: 'queue', path: `/${NAME}${at}`, headers: LONG })),
    request: (n) => ({ service: 'queue', query: listing(NAME, n), allowed: true }),
  },
  {
    ...{ name: 'shares with long metadata', ...lists },
    prepare: putting(ITEMS, (at) => ({
      service: 'file',
      path: `/${NAME}${at}`,
      query: ['restype=share'],
      headers: LONG,
    })),
    request: (n) => ({ service: 'file', query: listing(NAME, n), allowed: true }),
  },
  {
    ...{ name: 'blobs with long metadata', ...lists, prepare: blobs('long', LONG) },
    request: (n) => ({ path: `/${CONTAINER}`, query: ['restype=container', ...listing('long', n)], allowed: true }),
  },
  {
    ...{ name: 'blobs with much metadata', ...lists, prepare: blobs('many', MANY) },
    request: (n) => ({ path: `/${CONTAINER}`, query: ['restype=container', ...listing('many', n)], allowed: true }),
  },
  {
    ...{ name: 'snapshots of one blob', ...lists, prepare: takeSnapshots },
    request: (n) => ({
      ...{ path: `/${CONTAINER}`, allowed: true },
      query: ['restype=container', ...listing('taken', n, 'snapshots,metadata')],
    }),
  },
  {
    ...{ name: 'deleted states of one blob', ...lists, prepare: replaceOften },
    request: (n) => ({
      ...{ path: `/${CONTAINER}`, allowed: true },
      query: ['restype=container', ...listing('replaced', n, 'snapshots,deleted,metadata')],
    }),
  },
  {
    ...{ name: 'messages of long text', n: MESSAGES / 2, status: 200, stepsMax: IN_TURNS },
    prepare: putting(
      MESSAGES,
      () => ({
        ...{ service: 'queue', method: 'POST', path: `/${CONTAINER}/messages` },
        body: `<QueueMessage><MessageText>${'&amp;'.repeat(13_000)}</MessageText></QueueMessage>`,
      }),
      { service: 'queue', path: `/${CONTAINER}` },
    ),
    request: (n) => ({
      ...{ service: 'queue', path: `/${CONTAINER}/messages`, allowed: true },
      query: ['peekonly=true', `numofmessages=${n}`],
    }),
  },
];
