/** Attacks by the XML of bodies and by structured bodies; see attacks.mjs. */
import {
  BLOCK_LIST_TEXT_MAX,
  XML_ASIDES_MAX,
  XML_ATTRIBUTES_MAX,
  XML_TEXT_MAX,
} from '../../build/base/input-limits.js';

import { segmentsOf, structuredHeaders, structuredMessage } from '../support/structured-messages.mjs';

/** @typedef {import('./attacks.mjs').Attack} Attack */

/** The parser works in slices of a document, between which other requests run. */
const IN_TURNS = 60_000_000;
const CONTAINER = 'bodies';
const QUEUE = 'bodies';

/** @param {number} n @param {(at: number) => string} item */
const many = (n, item) => Array.from({ length: n }, (_, at) => item(at)).join('');
/** Few are prepared, of many that are taken. @param {number} at */
const idOf = (at) => Buffer.from(String(at).padStart(6, '0')).toString('base64');

/** @type {NonNullable<Attack['prepare']>} */
async function newContainer(send) {
  await send({ method: 'PUT', path: `/${CONTAINER}`, query: ['restype=container'], allowed: true });
  const block = { method: 'PUT', path: `/${CONTAINER}/blob`, body: 'x', allowed: true };
  const { status, text } = await send({ ...block, query: ['comp=block', `blockid=${encodeURIComponent(idOf(0))}`] });
  if (status !== 201) throw new Error(text);
}

/** @type {NonNullable<Attack['prepare']>} */
async function newQueue(send) {
  await send({ service: 'queue', method: 'PUT', path: `/${QUEUE}`, allowed: true });
}

/** @param {string} body @returns {import('../support/raw-requests.mjs').Request} */
const blockList = (body) => ({
  method: 'PUT',
  path: `/${CONTAINER}/blob`,
  query: ['comp=blocklist'],
  body: `<BlockList>${body}</BlockList>`,
  allowed: true,
});

/** @param {string} text @returns {import('../support/raw-requests.mjs').Request} */
const message = (text) => ({
  service: 'queue',
  method: 'POST',
  path: `/${QUEUE}/messages`,
  body: `<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`,
  allowed: true,
});

/** @param {string} body @returns {import('../support/raw-requests.mjs').Request} */
const serviceProperties = (body) => ({
  ...{ method: 'PUT', query: ['restype=service', 'comp=properties'], allowed: true },
  body: `<StorageServiceProperties>${body}</StorageServiceProperties>`,
});

/** @param {Buffer} content @param {readonly Uint8Array[]} segments @returns {import('../support/raw-requests.mjs').Request} */
const structured = (content, segments) => ({
  method: 'PUT',
  path: `/${CONTAINER}/structured`,
  headers: [['x-ms-blob-type', 'BlockBlob'], ...Object.entries(structuredHeaders(content.length))],
  body: structuredMessage(segments),
  allowed: true,
});
/** A message has at most 65,535. */
const segments = { n: 32_767, past: { n: 65_536, status: 400 }, stepsMax: IN_TURNS, prepare: newContainer };

const texts = { n: 300_000, past: { n: XML_TEXT_MAX + 1, status: 400 }, stepsMax: IN_TURNS, prepare: newContainer };
const asides = {
  n: XML_ASIDES_MAX / 2,
  past: { n: XML_ASIDES_MAX + 1, status: 400 },
  stepsMax: IN_TURNS,
  prepare: newContainer,
};

/** @param {string} body @returns {import('../support/raw-requests.mjs').Request} */
const tags = (body) => ({
  ...{ method: 'PUT', path: `/${CONTAINER}/blob`, query: ['comp=tags'], allowed: true },
  body: `<Tags><TagSet>${body}</TagSet></Tags>`,
});

/** @type {readonly Attack[]} */
export const bodyAttacks = [
  {
    ...{ name: 'tags of a blob', status: 400, n: 600, past: { n: 2_000, status: 413 } },
    ...{ stepsMax: IN_TURNS, prepare: newContainer },
    request: (n) => tags(many(n, (at) => `<Tag><Key>key!${at}</Key><Value>value</Value></Tag>`)),
  },
  {
    ...{ name: 'text of a tag', status: 400, n: 30_000, past: { n: 70_000, status: 413 } },
    ...{ stepsMax: IN_TURNS, prepare: newContainer },
    request: (n) => tags(`<Tag><Key>key</Key><Value>${'!'.repeat(n)}</Value></Tag>`),
  },
  {
    ...{ name: 'text of a block id', status: 400, ...texts },
    request: (n) => blockList(`<Latest>${'A'.repeat(n)}</Latest>`),
  },
  {
    ...{ name: 'entities in a block id', status: 400, ...texts, n: 60_000, past: { n: XML_TEXT_MAX / 5, status: 400 } },
    request: (n) => blockList(`<Latest>${'&#65;'.repeat(n)}</Latest>`),
  },
  {
    ...{ name: 'line breaks in a block id', status: 400, ...texts },
    request: (n) => blockList(`<Latest>A${'\r'.repeat(n)}A</Latest>`),
  },
  {
    ...{ name: 'CDATA in a block id', status: 400, ...asides },
    request: (n) => blockList(`<Latest>${'<![CDATA[]]]>'.repeat(n)}</Latest>`),
  },
  {
    ...{ name: 'comments in a block list', status: 400, ...asides },
    request: (n) => blockList(`${'<!--abcdefgh-->'.repeat(n)}<Latest/>`),
  },
  {
    ...{ name: 'processing instructions in a block list', status: 400, ...asides },
    request: (n) => blockList(`${'<?a abcdefgh?>'.repeat(n)}<Latest/>`),
  },
  {
    ...{ name: 'a comment in a block list', status: 400, ...texts, n: BLOCK_LIST_TEXT_MAX / 2 },
    request: (n) => blockList(`<!--${'<'.repeat(n)}--><Latest/>`),
    past: { n: BLOCK_LIST_TEXT_MAX + 1, status: 400 },
  },
  {
    ...{ name: 'the name of an element', status: 400, ...texts },
    request: (n) => blockList(`<L${'a'.repeat(n)}/>`),
  },
  {
    ...{ name: 'attributes in a block list', n: XML_ATTRIBUTES_MAX / 2, status: 400, prepare: newContainer },
    request: (n) => blockList(`<Newest ${many(n, (at) => ` a${at}="1"`)}/>`),
    past: { n: XML_ATTRIBUTES_MAX + 1, status: 400 },
  },
  {
    ...{ name: 'attributes of many elements', n: 2_000, status: 400, stepsMax: IN_TURNS, prepare: newContainer },
    request: (n) => blockList(`<Latest a="1" b="2" c="3">${idOf(1)}</Latest>`.repeat(n)),
  },
  {
    ...{ name: 'blocks that are not there', n: 25_000, status: 400, stepsMax: IN_TURNS, prepare: newContainer },
    request: (n) => blockList(many(n, (at) => `<Latest>${idOf(at + 1)}</Latest>`)),
    past: { n: 50_001, status: 400 },
  },
  {
    ...{ name: 'segments of a structured body', status: 201, ...segments },
    request: (n) => structured(Buffer.alloc(n), segmentsOf(Buffer.alloc(n), 1)),
  },
  {
    ...{ name: 'empty segments of a structured body', status: 201, ...segments },
    request: (n) => structured(Buffer.alloc(0), Array(n).fill(Buffer.alloc(0))),
  },
  {
    ...{ name: 'text of a message', n: 32_000, status: 201, prepare: newQueue, stepsMax: IN_TURNS },
    request: (n) => message('a'.repeat(n)),
  },
  {
    ...{ name: 'entities in a message', n: 32_000, status: 201, prepare: newQueue, stepsMax: IN_TURNS },
    request: (n) => message('&quot;'.repeat(n)),
  },
  {
    ...{ name: 'numbered entities in a message', n: 32_000, status: 201, prepare: newQueue, stepsMax: IN_TURNS },
    request: (n) => message('&#65;'.repeat(n)),
  },
  {
    ...{ name: 'elements of service properties', n: 1_800, status: 400, stepsMax: IN_TURNS },
    request: (n) => serviceProperties('<Cors><x/></Cors>'.repeat(n)),
  },
  {
    ...{ name: 'the name of an element of service properties', n: 16_000, status: 400 },
    request: (n) => serviceProperties(`<L${'a'.repeat(n)}/>`),
  },
  {
    ...{ name: 'a value in service properties', n: 16_000, status: 400 },
    request: (n) =>
      serviceProperties(`<HourMetrics><Version>1.0</Version><Enabled>${'a'.repeat(n)}</Enabled></HourMetrics>`),
  },
];
