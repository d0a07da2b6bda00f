import { describe, expect, it } from 'vitest';
import { all, ask, expectOdataError, expectRefused, newName, newTable } from '../support/tables.ts';
import { account, onEveryEngine } from '../support/test-server.ts';

describe('Tables', () => {
  onEveryEngine((running) => {
    describe('Create Table', () => {
      it('shows the table, and where it is', async () => {
        const name = newName();
        const answer = await ask(running, 'POST', '/Tables', { body: JSON.stringify({ TableName: name }) });
        const { origin } = new URL(running.server.tableUrl);
        const place = `${origin}/${account}/Tables('${name}')`;
        expect(answer.status).toBe(201);
        expect(answer.headers).toMatchObject({
          location: place,
          'cache-control': 'no-cache',
          'x-content-type-options': 'nosniff',
          'content-type': 'application/json;odata=minimalmetadata;streaming=true;charset=utf-8',
          server: 'Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0',
        });
        expect(answer.headers['preference-applied']).toBeUndefined();
        expect(JSON.parse(answer.text)).toEqual({
          'odata.metadata': `${origin}/${account}/$metadata#Tables/@Element`,
          TableName: name,
        });
      });

      it('shows nothing, if the caller would rather see nothing', async () => {
        const name = newName();
        const headers = { Prefer: 'return-no-content' };
        const answer = await ask(running, 'POST', '/Tables', { headers, body: `{"TableName":"${name}"}` });
        expect([answer.status, answer.text]).toEqual([204, '']);
        expect(answer.headers['preference-applied']).toBe('return-no-content');
        expect(answer.headers.dataserviceid).toBe(answer.headers.location);
        const again = await ask(running, 'POST', '/Tables', { headers, body: `{"TableName":"${name}"}` });
        expectOdataError(again, 409, 'TableAlreadyExists', 'The table specified already exists.');
        expect(again.headers['preference-applied']).toBe('return-no-content');
      });

      it('treats names that differ in case as one, and keeps the first spelling', async () => {
        const name = `Mixed${newName()}`;
        await running.tables.createTable(name);
        const upper = await ask(running, 'POST', '/Tables', { body: `{"TableName":"${name.toUpperCase()}"}` });
        expectOdataError(upper, 409, 'TableAlreadyExists');
        const found = await ask(running, 'GET', `/Tables('${name.toLowerCase()}')`);
        expect(JSON.parse(found.text).TableName).toBe(name);
        // Microsoft's client is content with a table that is there.
        await running.tables.createTable(name.toLowerCase());
      });

      it.each([
        ['{"TableName":"my_table"}', 'InvalidResourceName'],
        ['{"TableName":"1table"}', 'InvalidResourceName'],
        ['{"TableName":"aa"}', 'OutOfRangeInput'],
        ['{"TableName":""}', 'OutOfRangeInput'],
        [`{"TableName":"${'a'.repeat(64)}"}`, 'OutOfRangeInput'],
        ['{"TableName":"ééé"}', 'InvalidResourceName'],
        ['{"TableName":"Tables"}', 'InvalidInput'],
        ['{"TableName":null}', 'PropertiesNeedValue'],
        ['{}', 'PropertiesNeedValue'],
        ['{"TableName":5}', 'InvalidInput'],
        ['{"TableName":', 'InvalidInput'],
        ['[]', 'InvalidInput'],
        ['', 'InvalidInput'],
      ])('refuses %s: %s', async (body, code) => {
        expectOdataError(await ask(running, 'POST', '/Tables', { body }), 400, code);
      });
    });

    describe('Query Tables', () => {
      it('lists them in order, page by page, filtered', async () => {
        const prefix = newName();
        const names = ['a', 'b', 'c', 'd', 'e'].map((letter) => prefix + letter);
        for (const name of names.toReversed()) await running.tables.createTable(name);
        const filter = `TableName ge '${prefix}' and TableName lt '${prefix}z'`;
        const listed = await all(running.tables.listTables({ queryOptions: { filter } }));
        expect(listed.map(({ name }) => name)).toEqual(names);
        const pages = [];
        for await (const page of running.tables.listTables({ queryOptions: { filter } }).byPage({ maxPageSize: 2 })) {
          pages.push(page.map(({ name }) => name));
        }
        expect(pages).toEqual([names.slice(0, 2), names.slice(2, 4), names.slice(4)]);
        const one = await all(running.tables.listTables({ queryOptions: { filter: `TableName eq '${names[2]}'` } }));
        expect(one.map(({ name }) => name)).toEqual([names[2]]);
      });

      it('returns a continuation token', async () => {
        const prefix = newName();
        for (const letter of ['a', 'b']) await running.tables.createTable(prefix + letter);
        const query = `$filter=${encodeURIComponent(`TableName ge '${prefix}'`)}&$top=1`;
        const first = await ask(running, 'GET', `/Tables?${query}`);
        const token = String(first.headers['x-ms-continuation-nexttablename']);
        expect(token).toMatch(/^1!\d+![\w*-]+$/);
        const second = await ask(running, 'GET', `/Tables?${query}&NextTableName=${encodeURIComponent(token)}`);
        expect(JSON.parse(second.text).value[0]).toEqual({ TableName: `${prefix}b` });
      });

      it('has each level of metadata', async () => {
        const { tableName: name } = await newTable(running);
        const filter = encodeURIComponent(`TableName eq '${name}'`);
        const ofLevel = async (level: string) => {
          const headers = { Accept: `application/json;odata=${level}` };
          const answer = await ask(running, 'GET', `/Tables?$filter=${filter}`, { headers });
          expect(answer.headers['content-type']).toBe(`application/json;odata=${level};streaming=true;charset=utf-8`);
          return JSON.parse(answer.text);
        };
        const endpoint = running.server.tableUrl;
        expect(await ofLevel('nometadata')).toEqual({ value: [{ TableName: name }] });
        expect(await ofLevel('minimalmetadata')).toEqual({
          'odata.metadata': `${endpoint}/$metadata#Tables`,
          value: [{ TableName: name }],
        });
        expect(await ofLevel('fullmetadata')).toEqual({
          'odata.metadata': `${endpoint}/$metadata#Tables`,
          value: [
            {
              'odata.type': `${account}.Tables`,
              'odata.id': `${endpoint}/Tables('${name}')`,
              'odata.editLink': `Tables('${name}')`,
              TableName: name,
            },
          ],
        });
      });

      it('shows one table, or says that it is not there', async () => {
        const { tableName: name } = await newTable(running);
        const found = await ask(running, 'GET', `/Tables('${name}')`);
        expect([found.status, JSON.parse(found.text).TableName]).toEqual([200, name]);
        expectOdataError(await ask(running, 'GET', `/Tables('${newName()}')`), 404, 'ResourceNotFound');
      });
    });

    describe('Delete Table', () => {
      it('removes the table and its entities, and the name is free at once', async () => {
        const table = await newTable(running);
        await table.createEntity({ partitionKey: 'p', rowKey: 'r' });
        const answer = await ask(running, 'DELETE', `/Tables('${table.tableName.toUpperCase()}')`);
        expect([answer.status, answer.text, answer.headers['content-type']]).toEqual([204, '', undefined]);
        await expectRefused(table.getEntity('p', 'r'), 404, 'TableNotFound');
        await table.createTable();
        await expectRefused(table.getEntity('p', 'r'), 404, 'ResourceNotFound');
      });

      it('says that it is not there', async () => {
        const answer = await ask(running, 'DELETE', `/Tables('${newName()}')`);
        expectOdataError(answer, 404, 'ResourceNotFound', 'The specified resource does not exist.');
      });

      it('knows no ETags', async () => {
        const { tableName } = await newTable(running);
        const answer = await ask(running, 'DELETE', `/Tables('${tableName}')`, { headers: { 'If-Match': '*' } });
        expectOdataError(answer, 400, 'InvalidInput');
      });
    });
  });
});
