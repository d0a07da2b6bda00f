import { randomUUID } from 'node:crypto';
import type { TransactionAction } from '@azure/data-tables';
import { describe, expect, it } from 'vitest';
import { ask, entityPath, expectOdataError, newName, newTable, rowKeysOf } from '../support/tables.ts';
import { onEveryEngine, type RawRequest, type Running } from '../support/test-server.ts';

interface Part {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const insert = (table: string, rowKey: string, more = {}, partitionKey = 'p'): Part => ({
  method: 'POST',
  path: `/${table}`,
  headers: { 'Content-Type': 'application/json', Prefer: 'return-no-content' },
  body: JSON.stringify({ PartitionKey: partitionKey, RowKey: rowKey, ...more }),
});
const remove = (table: string, rowKey: string, etag = '*'): Part => ({
  method: 'DELETE',
  path: entityPath(table, 'p', rowKey),
  headers: { 'If-Match': etag },
});

function textOf({ method, path, headers = {}, body = '' }: Part): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}\r\n`;
}

function send(running: Running, text: string, request: RawRequest = {}, path = '/$batch') {
  const headers = { 'Content-Type': 'multipart/mixed; boundary=batch', ...request.headers };
  return ask(running, 'POST', path, { body: text, ...request, headers });
}

function changes(running: Running, parts: readonly Part[], request: RawRequest = {}, path?: string) {
  const set = `${parts.map((part) => `--changes\r\n${textOf(part)}`).join('')}--changes--\r\n`;
  const text = `--batch\r\nContent-Type: multipart/mixed; boundary=changes\r\n\r\n${set}--batch--\r\n`;
  return send(running, text, request, path);
}

const JSON_HEADERS = { 'Content-Type': 'application/json' };

/** Status, code and message of the answer to the part that is to blame. */
function blamed(text: string): [status: number, code: string, message: string] {
  expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  const [, status, body] = /HTTP\/1\.1 (\d+) [\s\S]*?\r\n\r\n(\{.*\})\r\n/.exec(text) ?? [];
  const { code, message } = JSON.parse(body!)['odata.error'];
  return [Number(status), code, message.value.split('\n')[0]];
}

describe('Entity Group Transaction', () => {
  onEveryEngine((running) => {
    it('is asked for with a slash at the end of its address as well', async () => {
      const { tableName } = await newTable(running);
      const answer = await changes(running, [insert(tableName, 'r')], {}, '/$batch/');
      expect([answer.status, answer.text.includes('HTTP/1.1 204 No Content')]).toEqual([202, true]);
    });

    it('answers with every entity, however much that is', async () => {
      const { tableName } = await newTable(running);
      const text = 'é'.repeat(30_000);
      const entity = (rowKey: string) => JSON.stringify({ PartitionKey: 'p', RowKey: rowKey, text, more: text });
      const parts = ['1', '2', '3', '4'].map((rowKey) => ({
        ...insert(tableName, rowKey),
        headers: JSON_HEADERS,
        body: entity(rowKey),
      }));
      const answer = await changes(running, parts);
      const entities = [...answer.text.matchAll(/^\{"odata.*\}\r$/gm)].map(([json]) => JSON.parse(json!));
      expect(entities.map(({ RowKey }) => RowKey)).toEqual(['1', '2', '3', '4']);
      expect(entities.every((one) => one.text === text && one.more === text)).toBe(true);
    });

    it('does everything or nothing, by the client', async () => {
      const table = await newTable(running);
      const create = (rowKey: string): TransactionAction => ['create', { partitionKey: 'p', rowKey, a: 1 }];
      const { subResponses, status } = await table.submitTransaction([create('1'), create('2'), create('3')]);
      expect(status).toBe(202);
      expect(subResponses.map((one) => [one.status, one.rowKey])).toEqual([
        [204, '1'],
        [204, '2'],
        [204, '3'],
      ]);
      const { etag } = await table.getEntity('p', '2');
      expect(subResponses[1]!.etag).toBe(etag);
      const mixed = await table.submitTransaction([
        ['delete', { partitionKey: 'p', rowKey: '1' }],
        ['update', { partitionKey: 'p', rowKey: '2', b: 1 }, 'Merge', { etag }],
        ['update', { partitionKey: 'p', rowKey: '3', b: 1 }, 'Replace'],
        ['upsert', { partitionKey: 'p', rowKey: '4', b: 1 }, 'Merge'],
        ['upsert', { partitionKey: 'p', rowKey: '5', b: 1 }, 'Replace'],
      ]);
      expect(mixed.subResponses.map((one) => one.status)).toEqual([204, 204, 204, 204, 204]);
      expect(await rowKeysOf(table)).toEqual(['2', '3', '4', '5']);
      expect(await table.getEntity('p', '2')).toMatchObject({ a: 1, b: 1 });
      expect((await table.getEntity('p', '3')).a).toBeUndefined();

      const failing = table.submitTransaction([
        create('6'),
        ['delete', { partitionKey: 'p', rowKey: '2' }],
        create('3'),
      ]);
      await expect(failing).rejects.toMatchObject({ statusCode: 409, code: 'EntityAlreadyExists' });
      expect(await rowKeysOf(table)).toEqual(['2', '3', '4', '5']);
    });

    it('accepts a hundred changes', async () => {
      const table = await newTable(running);
      const actions = Array.from({ length: 100 }, (_, at): TransactionAction => {
        return ['create', { partitionKey: 'p', rowKey: String(at), text: 'x'.repeat(1_000) }];
      });
      const { subResponses } = await table.submitTransaction(actions);
      expect(subResponses).toHaveLength(100);
      expect(await rowKeysOf(table)).toHaveLength(100);
    });

    it('is answered part by part, in the form that clients know', async () => {
      const { tableName: table } = await newTable(running);
      const withId = { ...remove(table, '1'), headers: { 'Content-ID': '7', 'If-Match': '*' } };
      await changes(running, [insert(table, '1')]);
      const answer = await changes(running, [insert(table, '2'), withId]);
      expect(answer.status).toBe(202);
      expect(answer.headers).toMatchObject({ 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' });
      const [, batch] = /^multipart\/mixed; boundary=(batchresponse_[0-9a-f-]{36})$/.exec(
        answer.headers['content-type']!,
      )!;
      const [, set] = /boundary=(changesetresponse_[0-9a-f-]{36})/.exec(answer.text)!;
      const place = `${running.server.tableUrl}${entityPath(table, 'p', '2')}`;
      const etag = /ETag: (.*)\r\n/.exec(answer.text)?.[1];
      const start = `--${set}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\n`;
      const common = 'X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n';
      expect(answer.text).toBe(
        `--${batch}\r\nContent-Type: multipart/mixed; boundary=${set}\r\n\r\n` +
          `${start}${common}Preference-Applied: return-no-content\r\nDataServiceVersion: 3.0;\r\n` +
          `Location: ${place}\r\nDataServiceId: ${place}\r\nETag: ${etag}\r\n\r\n\r\n` +
          `${start}Content-ID: 7\r\n${common}DataServiceVersion: 1.0;\r\n\r\n\r\n` +
          `--${set}--\r\n--${batch}--\r\n`,
      );
    });

    it('returns inserted entities unless Prefer declines them', async () => {
      const { tableName: table } = await newTable(running);
      const part = insert(table, '1', { a: 1.0, b: '5', 'b@odata.type': 'Edm.Int64' });
      const headers = { 'Content-Type': 'application/json', Accept: 'application/json;odata=nometadata' };
      const answer = await changes(running, [{ ...part, headers }]);
      expect(answer.text).toContain('HTTP/1.1 201 Created\r\n');
      expect(answer.text).toContain('Content-Type: application/json;odata=nometadata;streaming=true;charset=utf-8\r\n');
      const [shown] = /\{.*\}/.exec(answer.text)!;
      expect(JSON.parse(shown)).toEqual({
        PartitionKey: 'p',
        RowKey: '1',
        Timestamp: expect.any(String),
        a: 1,
        b: '5',
      });
    });

    it('holds one query, and shows what it finds or why it does not', async () => {
      const { tableName: table } = await newTable(running);
      await changes(running, [insert(table, '1', { a: 1 }), insert(table, '2', { a: 2 })]);
      const query = (path: string) =>
        send(
          running,
          `--batch\r\n${textOf({ method: 'GET', path, headers: { Accept: 'application/json' } })}--batch--`,
        );
      const one = await query(entityPath(table, 'p', '1'));
      expect(one.status).toBe(202);
      expect(one.text).not.toContain('changeset');
      expect(one.text).toMatch(/HTTP\/1\.1 200 OK\r\n[\s\S]*ETag: W\/"datetime/);
      expect(one.text).toMatch(/"RowKey":"1".*"a":1\}\r\n--batchresponse_[0-9a-f-]+--\r\n$/);
      const page = await query(`${running.server.tableUrl}/${table}()?$filter=a%20ge%201&$top=1`);
      expect(page.text).toContain('x-ms-continuation-NextRowKey: 1!4!Mg--\r\n');
      expect(blamed((await query(entityPath(table, 'p', '3'))).text)).toEqual([
        404,
        'ResourceNotFound',
        'The specified resource does not exist.',
      ]);
    });

    it('is nothing, and is answered with nothing', async () => {
      const answer = await changes(running, []);
      expect(answer.status).toBe(202);
      expect(answer.text).toMatch(
        /^--(batchresponse_\S+)\r\nContent-Type: multipart\/mixed; boundary=(changesetresponse_\S+)\r\n\r\n--\2--\r\n--\1--\r\n$/,
      );
    });

    it('reports the index of the refused change, and applies none', async () => {
      const { tableName: table } = await newTable(running);
      await changes(running, [insert(table, 'there')]);
      const missing = newName();
      const stale = `W/"datetime'2012-06-15T22%3A51%3A44.9662825Z'"`;
      const many = Array.from({ length: 101 }, (_, at) => insert(table, `m${at}`));
      const large = insert(table, '2', { a: 'x'.repeat(33 * 1024) });
      const exists = 'The specified entity already exists.';
      const twice =
        'The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.';
      const cases: [parts: Part[], status: number, code: string, message: string][] = [
        [[insert(table, 'there')], 409, 'EntityAlreadyExists', exists],
        [[insert(table, '1'), insert(table, 'there')], 409, 'EntityAlreadyExists', `1:${exists}`],
        [[insert(table, 'there'), insert(table, '1')], 409, 'EntityAlreadyExists', `0:${exists}`],
        [[remove(table, 'gone')], 404, 'ResourceNotFound', 'The specified resource does not exist.'],
        [
          [insert(table, '1'), remove(table, 'gone')],
          404,
          'ResourceNotFound',
          '1:The specified resource does not exist.',
        ],
        [
          [remove(table, 'there', stale)],
          412,
          'UpdateConditionNotSatisfied',
          'The update condition specified in the request was not satisfied.',
        ],
        [[insert(table, '1'), insert(table, '1')], 400, 'InvalidDuplicateRow', `1:${twice}`],
        [
          [insert(table, '1'), insert(table, '2', {}, 'q')],
          400,
          'CommandsInBatchActOnDifferentPartitions',
          '1:All commands in a batch must operate on same entity group.',
        ],
        [
          [insert(table, '1'), insert(missing, '2')],
          400,
          'CommandsInBatchActOnDifferentPartitions',
          '1:All commands in a batch must operate on same entity group.',
        ],
        [many, 400, 'InvalidInput', '99:The batch request operation exceeds the maximum 100 changes per change set.'],
        [[insert(missing, '1')], 404, 'TableNotFound', '0:The table specified does not exist.'],
        [
          [insert('my_table', '1')],
          400,
          'InvalidResourceName',
          '0:The specifed resource name contains invalid characters.',
        ],
        [
          [insert('aa', '1')],
          400,
          'OutOfRangeInput',
          '0:The specified resource name length is not within the permissible limits.',
        ],
        [[insert(table, 'a/b')], 400, 'OutOfRangeInput', '0:One of the request inputs is out of range.'],
        [
          [insert(table, '1'), { ...insert(table, '2'), body: '{' }],
          400,
          'InvalidInput',
          '1:An error occurred while processing this request.',
        ],
        [
          [insert(table, '1'), large],
          400,
          'PropertyValueTooLarge',
          '1:The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.',
        ],
        [
          [insert(table, '1'), { method: 'GET', path: `/${table}()` }],
          400,
          'InvalidInput',
          '1:A query must stand alone in its batch.',
        ],
        [
          [insert(table, '1'), { method: 'DELETE', path: entityPath(table, 'p', 'there') }],
          400,
          'MissingRequiredHeader',
          "1:An HTTP header that's mandatory for this request is not specified.",
        ],
        [
          [{ ...remove(table, 'there'), path: `/${table}(PartitionKey='p')` }],
          400,
          'InvalidInput',
          '0:Bad Request - Error in query syntax.',
        ],
      ];
      for (const [parts, ...expected] of cases) {
        const answer = await changes(running, parts);
        expect(answer.status).toBe(202);
        expect(blamed(answer.text)).toEqual(expected);
      }
      expect(await rowKeysOf(running.table(table))).toEqual(['there']);
    });

    it('accepts X-HTTP-Method in a part', async () => {
      const { tableName: table } = await newTable(running);
      await changes(running, [insert(table, '1', { a: 1 })]);
      const headers = { 'X-HTTP-Method': 'MERGE', 'If-Match': '*', 'Content-Type': 'application/json' };
      const merge = { method: 'POST', path: entityPath(table, 'p', '1'), headers, body: '{"b":2}' };
      expect((await changes(running, [merge])).text).toContain('HTTP/1.1 204');
      expect(await running.table(table).getEntity('p', '1')).toMatchObject({ a: 1, b: 2 });
    });

    it('is refused as a whole if it is too large, or cannot be read', async () => {
      const { tableName: table } = await newTable(running);
      const parts = Array.from({ length: 100 }, (_, at) =>
        insert(table, String(at), { a: 'x'.repeat(30_000), b: 'x'.repeat(13_000) }),
      );
      expectOdataError(await changes(running, parts), 413, 'RequestBodyTooLarge');
      expectOdataError(await send(running, 'nothing of the kind'), 400, 'InvalidInput');
      const json = { headers: { 'Content-Type': 'application/json' } };
      expectOdataError(await changes(running, [insert(table, '1')], json), 400, 'InvalidInput');
      expectOdataError(await ask(running, 'GET', '/$batch'), 405, 'UnsupportedHttpVerb');
      expect(await rowKeysOf(running.table(table))).toEqual([]);
    });

    it('shows readers all of its changes, or none', async () => {
      const table = await newTable(running);
      const write = (generation: string) =>
        table.submitTransaction(
          Array.from({ length: 20 }, (_, at): TransactionAction => {
            return ['upsert', { partitionKey: 'p', rowKey: String(at), generation }, 'Replace'];
          }),
        );
      await write('first');
      let writing = true;
      const writer = (async () => {
        for (let at = 0; at < 10; at++) await write(randomUUID());
        writing = false;
      })();
      let pages = 0;
      while (writing) {
        const answer = await ask(running, 'GET', `/${table.tableName}()?$filter=PartitionKey%20eq%20'p'`);
        const { value } = JSON.parse(answer.text);
        expect(value).toHaveLength(20);
        expect(new Set(value.map((entity: { generation: string }) => entity.generation)).size).toBe(1);
        pages++;
      }
      await writer;
      expect(pages).toBeGreaterThan(0);
    });
  });
});
