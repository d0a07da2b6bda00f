import type { Edm, TableClient } from '@azure/data-tables';
import { describe, expect, it } from 'vitest';
import { ask, entityPath, expectOdataError, expectRefused, newName, newTable } from '../support/tables.ts';
import { account, onEveryEngine } from '../support/test-server.ts';

const ETAG = /^W\/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'"$/;
const STALE = `W/"datetime'2012-06-15T22%3A51%3A44.9662825Z'"`;
const NO_CONTENT = { Prefer: 'return-no-content' };

describe('Entities', () => {
  onEveryEngine((running) => {
    const everything = {
      partitionKey: 'p',
      rowKey: 'r',
      text: 'hello',
      empty: '',
      unicode: 'ꀕ "é" \u{1f600}',
      truth: true,
      small: 5,
      large: { type: 'Int64', value: '9007199254740993' } as Edm<'Int64'>,
      ratio: { type: 'Double', value: 3 } as unknown as Edm<'Double'>,
      fraction: 1.5,
      nothing: { type: 'Double', value: 'NaN' } as unknown as Edm<'Double'>,
      moment: new Date('1973-10-04T01:02:03.456Z'),
      id: { type: 'Guid', value: 'c9da6455-213d-42c9-9a79-3e9149a57833' } as Edm<'Guid'>,
      bytes: new Uint8Array([1, 2, 255]),
    };

    describe('Insert Entity', () => {
      it('returns every type as it was sent', async () => {
        const table = await newTable(running);
        const { etag } = await table.createEntity(everything);
        const found = await table.getEntity('p', 'r');
        expect(found.etag).toBe(etag);
        expect(found).toMatchObject({
          partitionKey: 'p',
          rowKey: 'r',
          text: 'hello',
          empty: '',
          unicode: 'ꀕ "é" \u{1f600}',
          truth: true,
          small: 5,
          large: 9007199254740993n,
          ratio: 3,
          fraction: 1.5,
          moment: new Date('1973-10-04T01:02:03.456Z'),
          bytes: Buffer.from([1, 2, 255]),
        });
        expect(JSON.stringify(found.id)).toContain('c9da6455-213d-42c9-9a79-3e9149a57833');
        expect(found.etag).toContain(found.timestamp!.replaceAll(':', '%3A'));
      });

      it('shows the entity, its ETag, and where it is', async () => {
        const { tableName } = await newTable(running);
        const body = '{"PartitionKey":"p","RowKey":"r","Timestamp":"2001-01-01T00:00:00Z","a":1,"b":null}';
        const answer = await ask(running, 'POST', `/${tableName}`, { body });
        expect(answer.status).toBe(201);
        const { etag, location } = answer.headers;
        expect(etag).toMatch(ETAG);
        expect(location).toBe(`${running.server.tableUrl}${entityPath(tableName, 'p', 'r')}`);
        expect(answer.headers['content-type']).toBe(
          'application/json;odata=minimalmetadata;streaming=true;charset=utf-8',
        );
        const { Timestamp, ...more } = JSON.parse(answer.text);
        expect(etag).toContain(Timestamp.replaceAll(':', '%3A'));
        expect(more).toEqual({
          'odata.metadata': `${running.server.tableUrl}/$metadata#${tableName}/@Element`,
          'odata.etag': etag,
          PartitionKey: 'p',
          RowKey: 'r',
          a: 1,
        });
      });

      it('returns no content, or the entity, as the Prefer header asks', async () => {
        const { tableName } = await newTable(running);
        const insert = (rowKey: string, headers = {}) =>
          ask(running, 'POST', `/${tableName}`, { headers, body: `{"PartitionKey":"p","RowKey":"${rowKey}"}` });
        const silent = await insert('1', NO_CONTENT);
        expect([silent.status, silent.text]).toEqual([204, '']);
        expect(silent.headers).toMatchObject({ 'preference-applied': 'return-no-content', 'content-length': '0' });
        expect(silent.headers.dataserviceid).toBe(silent.headers.location);
        expect(silent.headers.etag).toMatch(ETAG);
        const shown = await insert('2', { Prefer: 'return-content' });
        expect([shown.status, shown.headers['preference-applied']]).toEqual([201, 'return-content']);
        expect((await insert('3', { Prefer: 'respond-async' })).headers['preference-applied']).toBeUndefined();
      });

      it('refuses one that is there, and tables that are not', async () => {
        const table = await newTable(running);
        await table.createEntity({ partitionKey: 'p', rowKey: 'r' });
        await expectRefused(table.createEntity({ partitionKey: 'p', rowKey: 'r' }), 409, 'EntityAlreadyExists');
        const missing = running.table(newName());
        await expectRefused(missing.createEntity({ partitionKey: 'p', rowKey: 'r' }), 404, 'TableNotFound');
      });

      it.each([
        ['{"PartitionKey":"p"}', 'PropertiesNeedValue'],
        ['{"RowKey":"r"}', 'PropertiesNeedValue'],
        ['{"PartitionKey":"a/b","RowKey":"r"}', 'OutOfRangeInput'],
        ['{"PartitionKey":"p","RowKey":"\\u0001"}', 'OutOfRangeInput'],
        [`{"PartitionKey":"${'p'.repeat(513)}","RowKey":"r"}`, 'PropertyValueTooLarge'],
        ['{"PartitionKey":"p","RowKey":"r","a":1,"a":2}', 'DuplicatePropertiesSpecified'],
        ['{"PartitionKey":"p","RowKey":"\\ud800"}', 'OutOfRangeInput'],
        ['{"PartitionKey":"p","RowKey":"r","a b":1}', 'PropertyNameInvalid'],
        ['{"PartitionKey":"p","RowKey":"r","user@home":1}', 'PropertyNameInvalid'],
        [`{"PartitionKey":"p","RowKey":"r","${'a'.repeat(256)}":1}`, 'PropertyNameTooLong'],
        [`{"PartitionKey":"p","RowKey":"r","a":"${'x'.repeat(32 * 1024 + 1)}"}`, 'PropertyValueTooLarge'],
        ['{"PartitionKey":"p","RowKey":"r","a":"x","a@odata.type":"Edm.Int64"}', 'InvalidInput'],
        [
          '{"PartitionKey":"p","RowKey":"r","a":"1500-01-01T00:00:00Z","a@odata.type":"Edm.DateTime"}',
          'OutOfRangeInput',
        ],
        ['{"PartitionKey":"p","RowKey":"r","a":{}}', 'InvalidInput'],
        ['{"PartitionKey":"p","RowKey":"r","a":[1]}', 'InvalidInput'],
        ['{"PartitionKey":1,"RowKey":"r"}', 'InvalidInput'],
        ['not json', 'InvalidInput'],
      ])('refuses %.60s: %s', async (body, code) => {
        const { tableName } = await newTable(running);
        expectOdataError(await ask(running, 'POST', `/${tableName}`, { body }), 400, code);
      });

      it('refuses more than 252 properties, and more than a mebibyte', async () => {
        const { tableName } = await newTable(running);
        const insert = (rowKey: string, count: number, value: unknown) => {
          const properties = Array.from({ length: count }, (_, at): [string, unknown] => [`p${at}`, value]);
          const body = JSON.stringify({ PartitionKey: 'p', RowKey: rowKey, ...Object.fromEntries(properties) });
          return ask(running, 'POST', `/${tableName}`, { body, headers: NO_CONTENT });
        };
        expect((await insert('most', 252, 1)).status).toBe(204);
        expectOdataError(await insert('more', 253, 1), 400, 'TooManyProperties');
        expect((await insert('large', 15, 'x'.repeat(32 * 1024))).status).toBe(204);
        expectOdataError(await insert('larger', 17, 'x'.repeat(32 * 1024)), 400, 'EntityTooLarge');
        expectOdataError(await insert('largest', 200, 'x'.repeat(32 * 1024)), 413, 'RequestBodyTooLarge');
      });
    });

    describe('Get Entity', () => {
      it('finds keys of any characters', async () => {
        const table = await newTable(running);
        for (const [partitionKey, rowKey] of [
          ["O'Neil", "''"],
          ['', ''],
          ['a b+c%d', ',=()'],
          ['é齄\u{1f600}', '"{}<>&'],
          ['table@storage.com', ':$!*'],
        ] as const) {
          await table.createEntity({ partitionKey, rowKey, value: 1 });
          expect(await table.getEntity(partitionKey, rowKey)).toMatchObject({ partitionKey, rowKey, value: 1 });
          const answer = await ask(running, 'GET', entityPath(table.tableName, partitionKey, rowKey));
          expect(JSON.parse(answer.text)).toMatchObject({ PartitionKey: partitionKey, RowKey: rowKey });
        }
      });

      it('has each level of metadata', async () => {
        const { tableName } = await newTable(running);
        const body = '{"PartitionKey":"p","RowKey":"r","n":"5","n@odata.type":"Edm.Int64"}';
        await ask(running, 'POST', `/${tableName}`, { body });
        const path = entityPath(tableName, 'p', 'r');
        const read = async (Accept: string, query = '') => {
          const answer = await ask(running, 'GET', path + query, { headers: { Accept } });
          expect(answer.headers.etag).toMatch(ETAG);
          return { type: answer.headers['content-type'], ...JSON.parse(answer.text) };
        };
        const none = await read('application/json;odata=nometadata');
        expect(Object.keys(none)).toEqual(['type', 'PartitionKey', 'RowKey', 'Timestamp', 'n']);
        expect(none.type).toBe('application/json;odata=nometadata;streaming=true;charset=utf-8');
        const minimal = await read('application/json');
        expect(Object.keys(minimal)).toEqual([
          'type',
          'odata.metadata',
          'odata.etag',
          'PartitionKey',
          'RowKey',
          'Timestamp',
          'n@odata.type',
          'n',
        ]);
        const full = await read('application/json;odata=fullmetadata');
        expect(full).toMatchObject({
          'odata.type': `${account}.${tableName}`,
          'odata.id': `${running.server.tableUrl}${path}`,
          'odata.editLink': path.slice(1),
          'Timestamp@odata.type': 'Edm.DateTime',
        });
        // $format wins.
        const format = '?$format=application/json;odata=nometadata';
        expect((await read('application/json;odata=fullmetadata', format)).type).toContain('nometadata');
      });

      it('shows what was selected, and null for what is not there', async () => {
        const { tableName } = await newTable(running);
        await ask(running, 'POST', `/${tableName}`, { body: '{"PartitionKey":"p","RowKey":"r","a":1,"b":2}' });
        const answer = await ask(running, 'GET', `${entityPath(tableName, 'p', 'r')}?$select=a,c`);
        const { 'odata.metadata': metadata, 'odata.etag': etag, ...more } = JSON.parse(answer.text);
        expect(metadata).toBe(`${running.server.tableUrl}/$metadata#${tableName}/@Element&$select=a,c`);
        expect(etag).toMatch(ETAG);
        expect(more).toEqual({ a: 1, c: null });
      });

      it('answers that the entity does not exist', async () => {
        const table = await newTable(running);
        await expectRefused(table.getEntity('p', 'r'), 404, 'ResourceNotFound');
        await expectRefused(running.table(newName()).getEntity('p', 'r'), 404, 'TableNotFound');
      });
    });

    describe('Update Entity, Merge Entity, Insert Or Replace Entity, Insert Or Merge Entity and Delete Entity', () => {
      /** An entity with two properties. */
      async function withEntity(): Promise<{ table: TableClient; etag: string }> {
        const table = await newTable(running);
        const { etag } = await table.createEntity({ partitionKey: 'p', rowKey: 'r', a: 1, b: 2 });
        return { table, etag: etag! };
      }
      const entity = { partitionKey: 'p', rowKey: 'r', b: 3 };

      it('replace all properties, or keep those that are not sent', async () => {
        const { table } = await withEntity();
        await table.updateEntity(entity, 'Merge');
        expect(await table.getEntity('p', 'r')).toMatchObject({ a: 1, b: 3 });
        await table.updateEntity(entity, 'Replace');
        expect((await table.getEntity('p', 'r')).a).toBeUndefined();
      });

      it('give each write a new, rising ETag, which the answer has', async () => {
        const { table, etag } = await withEntity();
        const etags = [etag];
        for (let at = 0; at < 20; at++) {
          const { etag: next } = await table.updateEntity({ ...entity, b: at }, 'Merge', { etag: etags.at(-1)! });
          etags.push(next!);
        }
        const ticks = etags
          .map((one) => /'(.*?)(?:\.(\d+))?Z'/.exec(one)!)
          .map((all) => `${all[1]}.${(all[2] ?? '').padEnd(7, '0')}`);
        expect(ticks).toEqual([...new Set(ticks)].sort());
        expect((await table.getEntity('p', 'r')).etag).toBe(etags.at(-1));
      });

      it('are refused with an ETag that is not that of the entity any more', async () => {
        const { table, etag } = await withEntity();
        await table.updateEntity(entity, 'Merge', { etag });
        for (const old of [etag, STALE]) {
          await expectRefused(table.updateEntity(entity, 'Replace', { etag: old }), 412, 'UpdateConditionNotSatisfied');
          await expectRefused(table.updateEntity(entity, 'Merge', { etag: old }), 412, 'UpdateConditionNotSatisfied');
          await expectRefused(table.deleteEntity('p', 'r', { etag: old }), 412, 'UpdateConditionNotSatisfied');
        }
        await table.deleteEntity('p', 'r');
        for (const any of ['*', STALE]) {
          await expectRefused(table.updateEntity(entity, 'Replace', { etag: any }), 404, 'ResourceNotFound');
          await expectRefused(table.updateEntity(entity, 'Merge', { etag: any }), 404, 'ResourceNotFound');
          await expectRefused(table.deleteEntity('p', 'r', { etag: any }), 404, 'ResourceNotFound');
        }
      });

      it('make what is not there, without a condition', async () => {
        const table = await newTable(running);
        await table.upsertEntity({ partitionKey: 'p', rowKey: '1', a: 1 }, 'Replace');
        await table.upsertEntity({ partitionKey: 'p', rowKey: '2', a: 1 }, 'Merge');
        await table.upsertEntity({ partitionKey: 'p', rowKey: '1', b: 1 }, 'Replace');
        await table.upsertEntity({ partitionKey: 'p', rowKey: '2', b: 1 }, 'Merge');
        expect((await table.getEntity('p', '1')).a).toBeUndefined();
        expect(await table.getEntity('p', '2')).toMatchObject({ a: 1, b: 1 });
      });

      it('want a condition in versions that did not know the other way', async () => {
        const { tableName } = await newTable(running);
        const headers = { 'x-ms-version': '2009-09-19' };
        const answer = await ask(running, 'PUT', entityPath(tableName, 'p', 'r'), { headers, body: '{}' });
        expectOdataError(answer, 400, 'MissingRequiredHeader');
      });

      it('answer with an ETag, except where nothing is left, and with nothing else', async () => {
        const { tableName } = await newTable(running);
        const path = entityPath(tableName, 'p', 'r');
        const put = await ask(running, 'PUT', path, { body: '{"a":1}' });
        expect([put.status, put.text]).toEqual([204, '']);
        expect(put.headers.etag).toMatch(ETAG);
        expect(put.headers).toMatchObject({ 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' });
        const remove = await ask(running, 'DELETE', path, { headers: { 'If-Match': put.headers.etag } });
        expect([remove.status, remove.headers.etag, remove.headers['content-type']]).toEqual([
          204,
          undefined,
          undefined,
        ]);
      });

      it.each(['PATCH', 'MERGE', 'X-HTTP-Method'])('merge by %s', async (verb) => {
        const { tableName } = await newTable(running);
        const path = entityPath(tableName, 'p', 'r');
        await ask(running, 'PUT', path, { body: '{"a":1}' });
        const [method, headers] = verb === 'X-HTTP-Method' ? ['POST', { [verb]: 'MERGE' }] : [verb, {}];
        expect((await ask(running, method!, path, { headers, body: '{"b":2}' })).status).toBe(204);
        expect(JSON.parse((await ask(running, 'GET', path)).text)).toMatchObject({ a: 1, b: 2 });
      });

      it('work through POST with X-HTTP-Method', async () => {
        const { tableName } = await newTable(running);
        const path = entityPath(tableName, 'p', 'r');
        const tunnel = (verb: string, headers = {}, body = '') =>
          ask(running, 'POST', path, { headers: { 'X-HTTP-Method': verb, ...headers }, body });
        expect((await tunnel('PUT', {}, '{"a":1}')).status).toBe(204);
        expect((await tunnel('merge', { 'If-Match': '*' }, '{"b":1}')).status).toBe(204);
        expect((await tunnel('DELETE', { 'If-Match': '*' })).status).toBe(204);
        expectOdataError(await tunnel('FETCH'), 400, 'XMethodIncorrectValue');
        expectOdataError(await tunnel('PUT, DELETE'), 400, 'XMethodIncorrectCount');
        const put = await ask(running, 'PUT', path, { headers: { 'X-HTTP-Method': 'PUT' }, body: '{}' });
        expectOdataError(put, 400, 'XMethodNotUsingPost');
      });

      it.each([
        ['DELETE', undefined, undefined],
        ['DELETE', 'stale', undefined],
        [
          'PUT',
          '"0x1"',
          `The etag value '"0x1"' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.`,
        ],
        ['PUT', `${STALE}, ${STALE}`, undefined],
        ['MERGE', '', undefined],
      ])('refuse %s with If-Match %s', async (method, etag, message) => {
        const { table } = await withEntity();
        const headers = etag === undefined ? {} : { 'If-Match': etag };
        const body = method === 'DELETE' ? undefined : '{}';
        const answer = await ask(running, method, entityPath(table.tableName, 'p', 'r'), {
          headers,
          ...(body === undefined ? {} : { body }),
        });
        expectOdataError(answer, 400, etag === undefined ? 'MissingRequiredHeader' : 'InvalidInput', message);
      });

      it('refuse If-None-Match, whatever stands beside it', async () => {
        const { table } = await withEntity();
        const path = entityPath(table.tableName, 'p', 'r');
        const tell = (method: string, headers: Record<string, string>) =>
          ask(running, method, path, method === 'DELETE' ? { headers } : { headers, body: '{}' });
        const put = await tell('PUT', { 'If-None-Match': '*' });
        expectOdataError(put, 400, 'InvalidInput', 'If-None-Match HTTP header cannot be specified for PUT operations.');
        const remove = await tell('DELETE', { 'If-None-Match': STALE });
        expectOdataError(
          remove,
          400,
          'InvalidInput',
          'If-None-Match HTTP header cannot be specified for DELETE operations.',
        );
        const both = await tell('PUT', { 'If-None-Match': '*', 'If-Match': '*' });
        expectOdataError(both, 400, 'InvalidInput');
        expect(await table.getEntity('p', 'r')).toMatchObject({ a: 1, b: 2 });
      });

      it('lose no update among many clients that use ETags', async () => {
        const { table } = await withEntity();
        const [clients, each] = [4, 5];
        const raise = async () => {
          for (;;) {
            const { etag, a } = await table.getEntity<{ a: number }>('p', 'r');
            try {
              await table.updateEntity({ partitionKey: 'p', rowKey: 'r', a: a + 1 }, 'Merge', { etag });
              return;
            } catch (error) {
              if ((error as { statusCode?: number }).statusCode !== 412) throw error;
            }
          }
        };
        await Promise.all(
          Array.from({ length: clients }, async () => {
            for (let at = 0; at < each; at++) await raise();
          }),
        );
        expect((await table.getEntity('p', 'r')).a).toBe(1 + clients * each);
      });
    });
  });
});
