/** Attacks on tables; see attacks.mjs. */
import {
  FALSE_BOUNDARIES_MAX,
  JSON_MEMBERS_MAX,
  JSON_NUMBER_MAX,
  JSON_SPACE_MAX,
  JSON_STRING_MAX,
  PART_HEADERS_MAX,
  SELECT_NAMES_MAX,
} from '../../build/base/input-limits.js';

/** @typedef {import('./attacks.mjs').Attack} Attack */
/** @typedef {import('../support/raw-requests.mjs').Request} Request */

/** Work in slices, between which other requests run. */
const IN_TURNS = 60_000_000;
const TABLE = 'growth';
const ROWS = 1_000;
const BATCH = 100;

/** @param {number} n @param {(at: number) => string} item @param {string} [between] */
const many = (n, item, between = '') => Array.from({ length: n }, (_, at) => item(at)).join(between);

/** @param {readonly string[]} parts @returns {Request} */
const batch = (parts) => ({
  ...{ service: 'table', method: 'POST', path: '/$batch', allowed: true },
  headers: [['Content-Type', 'multipart/mixed; boundary=b']],
  body: `--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n${parts.map((part) => `--c\r\n${part}\r\n`).join('')}--c--\r\n--b--\r\n`,
});

/** @param {string} json @param {string} [headers] @param {string} [method] */
const part = (json, headers = '', method = 'POST', path = `/${TABLE}`) =>
  `Content-Type: application/http\r\n\r\n${method} ${path} HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n${headers}\r\n${json}`;

/** @param {number} row */
const address = (row) => `/${TABLE}(PartitionKey='p',RowKey='${row}')`;
const put = (/** @type {number} */ row, json = '{"a":"b","c":1}') => part(json, '', 'PUT', address(row));

/** @type {NonNullable<Attack['prepare']>} */
async function fill(send) {
  await send({
    ...{ service: 'table', method: 'POST', path: '/Tables', allowed: true, body: `{"TableName":"${TABLE}"}` },
    headers: [['Content-Type', 'application/json']],
  });
  for (let row = 0; row < ROWS; row += BATCH) {
    const { text } = await send(batch(Array.from({ length: BATCH }, (_, at) => put(row + at))));
    if (!text.includes('204 No Content')) throw new Error(text);
  }
}

/** @param {string} json @returns {Request} */
const entity = (json) => ({
  ...{ service: 'table', method: 'PUT', path: address(-1), body: json, allowed: true },
  headers: [['Content-Type', 'application/json']],
});

/** @param {string} query @returns {Request} */
const query = (query) => ({ service: 'table', path: `/${TABLE}()`, query: [query], allowed: true });
/** @param {string} text */
const filter = (text) => query(`$filter=${encodeURIComponent(text)}`);

/** @type {readonly Attack[]} */
const all = [
  {
    ...{ name: 'names in $select', n: 127, status: 200, stepsMax: IN_TURNS },
    request: (n) => query(`$select=${many(n, (at) => `n${at}`, ',')}`),
    past: { n: SELECT_NAMES_MAX + 1, status: 400 },
  },
  {
    ...{ name: 'long names in $select', n: 60, status: 200, stepsMax: IN_TURNS },
    request: (n) => query(`$select=${many(n, (at) => `${'n'.repeat(200)}${at}`, ',')}`),
  },
  {
    ...{ name: 'the name in $filter', n: 2_600, status: 200, stepsMax: IN_TURNS },
    request: (n) => filter(`${'\u00e9'.repeat(n)} eq 1`),
  },
  {
    ...{ name: 'a constant in $filter', n: 12_000, status: 200, stepsMax: IN_TURNS },
    request: (n) => filter(`a eq '${'c'.repeat(n)}'`),
  },
  {
    ...{ name: 'words of $filter', n: 2_000, status: 200, stepsMax: IN_TURNS },
    request: (n) => filter(`false${' or false'.repeat(n >> 1)}`),
  },
  {
    ...{ name: 'parentheses in $filter', n: 10_000, status: 400 },
    request: (n) => filter('('.repeat(n)),
  },
  {
    ...{ name: 'comparisons of $filter', n: 7, status: 200, stepsMax: IN_TURNS },
    request: (n) => filter(many(n, (at) => `a ne '${at}'`, ' and ')),
    past: { n: 16, status: 400 },
  },
  {
    ...{ name: 'nulls of an entity', n: JSON_MEMBERS_MAX / 2, status: 204, stepsMax: IN_TURNS },
    request: (n) => entity(`{${many(n, (at) => `"n${at}":null`, ',')}}`),
    past: { n: JSON_MEMBERS_MAX + 1, status: 400 },
  },
  {
    ...{ name: 'properties of an entity', n: 126, status: 204 },
    request: (n) => entity(`{${many(n, (at) => `"n${at}":${at}`, ',')}}`),
    past: { n: JSON_MEMBERS_MAX + 1, status: 400 },
  },
  {
    ...{ name: 'text of a property', n: 16_000, status: 204 },
    request: (n) => entity(`{"a":"${'x'.repeat(n)}"}`),
    past: { n: JSON_STRING_MAX, status: 400 },
  },
  {
    ...{ name: 'escaped text of a property', n: 16_000, status: 204 },
    request: (n) => entity(`{"a":"${'\\u00e9'.repeat(n)}"}`),
    past: { n: (32 << 10) + 1, status: 400 },
  },
  {
    ...{ name: 'text of many properties', n: 7, status: 204, stepsMax: IN_TURNS },
    request: (n) => entity(`{${many(n, (at) => `"a${at}":"${'\\u00e9'.repeat(32_000)}"`, ',')}}`),
  },
  {
    ...{ name: 'digits of a number', n: JSON_NUMBER_MAX / 2 - 100, status: 400 },
    request: (n) => entity(`{"a":${'1'.repeat(n)},"b":x}`),
    past: { n: JSON_NUMBER_MAX + 1, status: 400 },
  },
  {
    ...{ name: 'digits of a Double', n: 90_000, status: 400 },
    request: (n) => entity(`{"a@odata.type":"Edm.Double","a":"${'1'.repeat(n)}x"}`),
  },
  {
    ...{ name: 'dashes of a Guid', n: 90_000, status: 400 },
    request: (n) => entity(`{"a@odata.type":"Edm.Guid","a":"{${'-'.repeat(n)}"}`),
  },
  {
    // Of more, the last piece of the body comes by itself, and the pieces are joined.
    ...{ name: 'white space in JSON', n: 30_000, status: 204 },
    request: (n) => entity(`{"a":${' '.repeat(n)}1}`),
    past: { n: JSON_SPACE_MAX + 1, status: 400 },
  },
  {
    ...{ name: 'changes of a batch', n: 50, status: 202, stepsMax: IN_TURNS },
    request: (n) => batch(Array.from({ length: n }, (_, at) => put(at))),
  },
  {
    ...{ name: 'text in a batch', n: 10, status: 202, stepsMax: IN_TURNS },
    request: (n) => batch(Array.from({ length: n }, (_, at) => put(at, `{"a":"${'\\u00e9'.repeat(30_000)}"}`))),
  },
  {
    ...{ name: 'headers of a part of a batch', n: PART_HEADERS_MAX / 2 - 4, status: 202 },
    request: (n) => batch([put(1).replace('Prefer:', `${many(n, (at) => `h${at}: v\r\n`)}Prefer:`)]),
    past: { n: PART_HEADERS_MAX + 1, status: 400 },
  },
  {
    ...{ name: 'what looks like a boundary', n: FALSE_BOUNDARIES_MAX / 2, status: 202 },
    request: (n) => batch([put(1, `{"a":"${'--b'.repeat(n)}"}`)]),
    past: { n: FALSE_BOUNDARIES_MAX + 1, status: 400 },
  },
  {
    ...{ name: 'dashes in a batch', n: 1_900_000, status: 202, stepsMax: IN_TURNS },
    request: (n) => {
      const { body, ...rest } = batch([put(1)]);
      return { ...rest, body: `${'-'.repeat(n)}\r\n${body}` };
    },
  },
  {
    ...{ name: 'empty lines in a batch', n: 30_000, status: 202 },
    request: (n) => batch([put(1), '\n'.repeat(n)]),
  },
];

export const tableAttacks = all.map((attack) => ({ ...attack, prepare: fill }));
