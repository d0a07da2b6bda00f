/** Attacks on the File service: long permissions, deep trees, long lists; see attacks.mjs. */

/** @typedef {import('./attacks.mjs').Attack} Attack */
/** @typedef {import('../support/raw-requests.mjs').Request} Request */

const SHARE = 'growth';
const ENTRY = '(A;OICI;FA;;;SY)';
/** 20 bytes in binary, of the 65,535 that a list can have. */
const ENTRIES_MAX = 3_276;
/** 36 bytes each. */
const IDENTIFIERS_MAX = 1_820;
const INHERITED = 1_600;
const DEPTH_MAX = 250;
const FILES = 100;
/** Short writes that wait for a merge. */
const BYTES = 400;
/** A list is written in slices of few bytes, between which other requests run. */
const IN_TURNS = 60_000_000;

/** @type {Pick<Request, 'service' | 'allowed'>} */
const toFiles = { service: 'file', allowed: true };
const directory = ['restype=directory'];
const propertiesOfRoot = [...directory, 'comp=properties'];
/** @param {number} n */
const permission = (n) => `O:SYG:SYD:P${ENTRY.repeat(n)}`;
/** @param {number} n */
const identifiers = (n) =>
  `O:SYG:SYD:P${Array.from({ length: n }, (_, i) => `(A;OICI;FA;;;S-1-5-21-1004336348-1177238915-${i}-512)`).join('')}`;
/** @param {number} n */
const createPermission = (n, text = permission(n)) => ({
  ...{ ...toFiles, method: 'PUT', path: `/${SHARE}`, query: ['restype=share', 'comp=filepermission'] },
  body: JSON.stringify({ permission: text }),
});
/** @type {[string, string][]} */
const NEW_FILE = [
  ['x-ms-type', 'file'],
  ['x-ms-content-length', '0'],
];

/** @type {NonNullable<Attack['prepare']>} */
async function newShare(send) {
  await send({ ...toFiles, method: 'PUT', path: `/${SHARE}`, query: ['restype=share'] });
}

/** Directories with permissions of as many entries as are asked for. @type {NonNullable<Attack['prepare']>} */
async function newParents(send) {
  await newShare(send);
  for (const n of [1, INHERITED / 2, INHERITED]) {
    const { text } = await send(createPermission(n));
    const key = /\r\nx-ms-file-permission-key: ([^\r]+)/i.exec(text)?.[1] ?? '';
    const headers = [['x-ms-file-permission-key', key]];
    await put(send, {
      path: `/${SHARE}/long-${n}`,
      query: directory,
      headers: /** @type {[string, string][]} */ (headers),
    });
  }
}

/** A chain of directories. @type {NonNullable<Attack['prepare']>} */
async function newChain(send) {
  await newShare(send);
  for (let depth = 1; depth < DEPTH_MAX; depth++) await put(send, { path: chain(depth), query: directory });
}

/** @type {NonNullable<Attack['prepare']>} */
async function newFiles(send) {
  await newShare(send);
  await put(send, { path: `/${SHARE}/many`, query: directory });
  for (let at = 0; at < FILES; at++)
    await put(send, { path: `/${SHARE}/many/${String(at).repeat(60)}`, headers: NEW_FILE });
}

/** A file for each number, with as many bytes that are written one by one. @type {NonNullable<Attack['prepare']>} */
async function newScattered(send) {
  await newShare(send);
  for (const n of [1, BYTES / 2, BYTES]) {
    await put(send, {
      path: `/${SHARE}/bytes-${n}`,
      headers: [
        ['x-ms-type', 'file'],
        ['x-ms-content-length', '100000'],
      ],
    });
    for (let at = 1; at <= n; at++) await put(send, writeByte(n, at * 3));
  }
}

/** @param {number} n @param {number} at @returns {Request} */
const writeByte = (n, at) => ({
  ...{ ...toFiles, method: 'PUT', path: `/${SHARE}/bytes-${n}`, query: ['comp=range'], body: 'x' },
  headers: [
    ['x-ms-write', 'update'],
    ['x-ms-range', `bytes=${at}-${at}`],
  ],
});

/** @param {Parameters<NonNullable<Attack['prepare']>>[0]} send @param {Request} request */
async function put(send, request) {
  const { status, text } = await send({ ...toFiles, method: 'PUT', ...request });
  if (status !== 201) throw new Error(text);
}

/** @param {number} depth */
const chain = (depth) => `/${SHARE}${'/d'.repeat(depth)}`;

/** @type {readonly Attack[]} */
export const fileAttacks = [
  {
    name: 'entries of a permission',
    ...{ n: ENTRIES_MAX / 2, status: 201, past: { n: ENTRIES_MAX + 1, status: 400 }, prepare: newShare },
    request: (n) => createPermission(n),
  },
  {
    name: 'identifiers of a permission',
    ...{ n: IDENTIFIERS_MAX / 2, status: 201, prepare: newShare },
    request: (n) => createPermission(n, identifiers(n)),
  },
  {
    name: 'entries of a permission in a header',
    ...{ n: 250, status: 200, past: { n: 512, status: 400 }, prepare: newShare },
    request: (n) => ({
      ...{ ...toFiles, method: 'PUT', path: `/${SHARE}`, query: propertiesOfRoot },
      headers: [['x-ms-file-permission', permission(n)]],
    }),
  },
  {
    name: 'entries of a permission that a file inherits',
    ...{ n: INHERITED / 2, status: 201, prepare: newParents },
    request: (n) => ({ ...toFiles, method: 'PUT', path: `/${SHARE}/long-${n}/file`, headers: NEW_FILE }),
  },
  {
    name: 'separate bytes of a file, and one more',
    ...{ n: BYTES / 2, status: 201, stepsMax: IN_TURNS, prepare: newScattered },
    request: (n) => ({ ...writeByte(n, 1), service: 'file' }),
  },
  {
    name: 'attributes of a directory',
    ...{ n: 1_500, status: 200, prepare: newShare },
    request: (n) => ({
      ...{ ...toFiles, method: 'PUT', path: `/${SHARE}`, query: propertiesOfRoot },
      headers: [['x-ms-file-attributes', Array(n).fill('NotContentIndexed').join('|')]],
    }),
  },
  {
    name: 'directories of a path',
    ...{ n: DEPTH_MAX / 2 - 1, status: 200, past: { n: DEPTH_MAX + 1, status: 400 }, prepare: newChain },
    request: (n) => ({ ...toFiles, path: chain(n), query: directory }),
  },
  {
    name: 'characters of a path',
    ...{ n: 1_000, status: 404, prepare: newShare },
    request: (n) => ({
      ...toFiles,
      path: `/${SHARE}/${'Ab'.repeat(n / 2).replaceAll(/.{200}/g, '$&/')}x`,
      query: directory,
    }),
  },
  {
    name: 'files of a directory, with all that is known of them',
    ...{ n: FILES / 2, status: 200, stepsMax: IN_TURNS, prepare: newFiles },
    request: (n) => ({
      ...{ ...toFiles, path: `/${SHARE}/many` },
      query: [...directory, 'comp=list', `maxresults=${n}`, 'include=Timestamps,Etag,Attributes,PermissionKey'],
      headers: [['x-ms-file-extended-info', 'true']],
    }),
  },
];
