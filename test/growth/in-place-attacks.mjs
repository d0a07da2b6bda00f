/** Attacks by page blobs of many ranges, and by append blobs of many short appends; see attacks.mjs. */

/** @typedef {import('./attacks.mjs').Attack} Attack */
/** @typedef {import('../support/raw-requests.mjs').Request} Request */
/** @typedef {Parameters<NonNullable<Attack['prepare']>>[0]} Send */

/** Lists go in slices of few pages of the map, between which other requests run. */
const IN_TURNS = 60_000_000;
const CONTAINER = 'in-place';
const PAGE = 512;
const RANGES = 400;
const BEFORE = '2021-06-08T00:00:00.0000000Z';
const newContainer = { method: 'PUT', path: `/${CONTAINER}`, query: ['restype=container'], allowed: true };
/** What `compareRanges` compares with, once it is there. */
let snapshot = BEFORE;

/** @param {Send} send @param {Request} request */
async function must(send, request) {
  const answer = await send({ method: 'PUT', allowed: true, ...request });
  if (answer.status !== 201) throw new Error(answer.text);
  return answer;
}

/** @param {Send} send @param {string} blob */
async function newPageBlob(send, blob) {
  await send(newContainer);
  /** @type {[string, string][]} */
  const headers = [
    ['x-ms-blob-type', 'PageBlob'],
    ['x-ms-blob-content-length', String(2 * RANGES * PAGE)],
  ];
  await must(send, { path: `/${CONTAINER}/${blob}`, headers });
}

/** @param {Send} send @param {string} blob */
async function writeEveryOther(send, blob) {
  for (let at = 0; at < RANGES; at++)
    await must(send, {
      ...{ path: `/${CONTAINER}/${blob}`, query: ['comp=page'], body: Buffer.alloc(PAGE, 'x') },
      headers: [
        ['x-ms-page-write', 'update'],
        ['x-ms-range', `bytes=${2 * at * PAGE}-${(2 * at + 1) * PAGE - 1}`],
      ],
    });
}

/** @type {Attack['prepare']} */
async function compareRanges(send) {
  await newPageBlob(send, 'compared');
  const { text } = await must(send, { path: `/${CONTAINER}/compared`, query: ['comp=snapshot'] });
  snapshot = /x-ms-snapshot: (\S+)/i.exec(text)?.[1] ?? BEFORE;
  await writeEveryOther(send, 'compared');
}

const LINE_BYTES = 2_000;

/** @type {Attack['prepare']} */
async function appendLines(send) {
  await send(newContainer);
  const path = `/${CONTAINER}/appended`;
  await must(send, { path, headers: [['x-ms-blob-type', 'AppendBlob']] });
  for (let at = 0; at < RANGES; at++)
    await must(send, { path, query: ['comp=appendblock'], body: Buffer.alloc(LINE_BYTES, 'x') });
}

/** The bytes of a blob up to this one. @param {string} blob @param {number} length @returns {Request} */
const readUpTo = (blob, length) => ({
  ...{ path: `/${CONTAINER}/${blob}`, allowed: true },
  headers: [['x-ms-range', `bytes=0-${length - 1}`]],
});

const listed = { n: RANGES / 2, status: 200, stepsMax: IN_TURNS };

/** @type {readonly Attack[]} */
export const inPlaceAttacks = [
  {
    ...{ name: 'ranges of a page blob', ...listed },
    async prepare(send) {
      await newPageBlob(send, 'listed');
      await writeEveryOther(send, 'listed');
    },
    request: (n) => ({ path: `/${CONTAINER}/listed`, query: ['comp=pagelist', `maxresults=${n}`], allowed: true }),
  },
  {
    ...{ name: 'bytes of pages of which each was a write', n: RANGES / 2, status: 206, stepsMax: IN_TURNS },
    async prepare(send) {
      await newPageBlob(send, 'read');
      await writeEveryOther(send, 'read');
    },
    request: (n) => readUpTo('read', 2 * n * PAGE),
  },
  {
    ...{ name: 'bytes of short appends', n: RANGES / 2, status: 206, stepsMax: IN_TURNS, prepare: appendLines },
    request: (n) => readUpTo('appended', n * LINE_BYTES),
  },
  {
    ...{ name: 'ranges that changed since a snapshot', ...listed, prepare: compareRanges },
    request: (n) => ({
      ...{ path: `/${CONTAINER}/compared`, allowed: true },
      query: ['comp=pagelist', `prevsnapshot=${snapshot}`, `maxresults=${n}`],
    }),
  },
];
