/** Client loops of tables, as in blob-loops.mjs. */

import { anyOf, SIGNED_AHEAD } from './blob-loops.mjs';
import { account, encodeRequest, headerIn, maker } from './http-client.mjs';

export const ENTITIES_A_PARTITION = 1_000;
export const ENTITIES_A_BATCH = 100;
/** As many of these as a round of batches needs. */
const BATCHES_AHEAD = 1_000;

const json = { 'content-type': 'application/json', accept: 'application/json;odata=minimalmetadata' };
const noContent = { ...json, prefer: 'return-no-content' };
const multipart = { 'content-type': 'multipart/mixed; boundary=batch_bench' };
const properties =
  `"Name":"${'name'.padEnd(32)}","Text":"${'x'.repeat(100)}","Count":12345,"Rate":0.125,"Active":true,` +
  '"Total":"123456789012","Total@odata.type":"Edm.Int64",' +
  '"Since":"2024-02-29T12:34:56.1234567Z","Since@odata.type":"Edm.DateTime"';

const padded = (number) => String(number).padStart(8, '0');
const partitionOf = (run, number) => `${run}-${padded(number)}`;
/** Of a table that was filled. */
export const keysOf = (number, run = 'filled') => [
  partitionOf(run, Math.floor(number / ENTITIES_A_PARTITION)),
  padded(number),
];
export const entity = (partitionKey, rowKey) => `{"PartitionKey":"${partitionKey}","RowKey":"${rowKey}",${properties}}`;

function part(table, partitionKey, rowKey) {
  return [
    '--changeset_bench\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n',
    `POST http://127.0.0.1/${account}/${table} HTTP/1.1\r\nContent-Type: application/json\r\nAccept: ${json.accept}`,
    `Prefer: return-no-content\r\n\r\n${entity(partitionKey, rowKey)}\r\n`,
  ].join('\r\n');
}

function batchOf(table, run, number) {
  const parts = Array.from({ length: ENTITIES_A_BATCH }, (_, at) =>
    part(table, ...keysOf(number * ENTITIES_A_BATCH + at, run)),
  );
  const head = '--batch_bench\r\nContent-Type: multipart/mixed; boundary=changeset_bench\r\n\r\n';
  return `${head}${parts.join('')}--changeset_bench--\r\n--batch_bench--\r\n`;
}

/** Requests one after another, the first of them made before the clock runs. */
function inTurn(ahead, requestOf) {
  const made = Array.from({ length: ahead }, (_, number) => encodeRequest(requestOf(number)));
  let next = 0;
  return () => {
    const number = next++;
    return made[number] ?? requestOf(number);
  };
}

export const tableLoops = {
  /** New entities, spread over this many partitions. */
  insert({ table, run, partitions }) {
    const entityOf = (number) => entity(partitionOf('filled', number % partitions), `${run}-${padded(number)}`);
    const make = maker('POST', { service: 'table', headers: noContent, body: entityOf(0) });
    const next = inTurn(SIGNED_AHEAD, (number) => make(`/${table}`, entityOf(number)));
    return () => (timed) => timed(next(), 204);
  },

  /** A hundred new entities in one transaction; ten of them make a partition. */
  batch({ table, run, batches = Number.POSITIVE_INFINITY }) {
    const make = maker('POST', { service: 'table', headers: multipart, body: batchOf(table, run, 0) });
    const next = inTurn(Math.min(BATCHES_AHEAD, batches), (number) => make('/$batch', batchOf(table, run, number)));
    let sent = 0;
    return () => async (timed) => {
      if (sent++ >= batches) return;
      const { body } = await timed(next(), 202, true);
      if (!body.includes('HTTP/1.1 204') || body.includes('HTTP/1.1 4')) throw new Error(`batch: ${body}`);
    };
  },

  getEntity({ table, keys }) {
    const make = maker('GET', { service: 'table', headers: json });
    const signed = Array.from({ length: SIGNED_AHEAD }, () => {
      const [partitionKey, rowKey] = keysOf(anyOf(keys));
      return encodeRequest(make(`/${table}(PartitionKey='${partitionKey}',RowKey='${rowKey}')`));
    });
    let next = 0;
    return () => (timed) => timed(signed[next++ % SIGNED_AHEAD], 200);
  },

  /** All of one partition, which is one page. */
  queryPartition({ table, keys }) {
    const partitions = Array.from({ length: keys / ENTITIES_A_PARTITION }, (_, number) => {
      const query = { $filter: `PartitionKey eq '${partitionOf('filled', number)}'` };
      return maker('GET', { service: 'table', headers: json, query })(`/${table}()`);
    });
    return () => async (timed, note) => {
      const { bytes } = await timed(partitions[anyOf(partitions.length)], 200);
      if (bytes < ENTITIES_A_PARTITION * properties.length) throw new Error(`a page of only ${bytes} bytes`);
      note('bytes', bytes);
    };
  },

  /** Scans every entity, page after page, without a match; then from the beginning. */
  queryNothing({ table }) {
    let from = {};
    return () => async (timed, note) => {
      const query = { $filter: "Name eq 'nobody'", ...from };
      const { head, body } = await timed(
        maker('GET', { service: 'table', headers: json, query })(`/${table}()`),
        200,
        true,
      );
      if (body.includes('"Name"')) throw new Error(`somebody was found: ${body}`);
      const NextPartitionKey = headerIn(head, 'x-ms-continuation-NextPartitionKey');
      const NextRowKey = headerIn(head, 'x-ms-continuation-NextRowKey');
      from = NextPartitionKey === undefined ? {} : { NextPartitionKey, NextRowKey };
      if (NextPartitionKey === undefined) note('passes', 1);
    };
  },
};
