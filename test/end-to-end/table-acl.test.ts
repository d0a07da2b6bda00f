import { generateAccountSas, generateTableSas, type TransactionAction } from '@azure/data-tables';
import { describe, expect, it } from 'vitest';
import {
  ask,
  credential,
  entityPath,
  expectRefused,
  newName,
  newTable,
  rowKeysOf,
  tablesWith,
  tableWith,
} from '../support/tables.ts';
import { onEveryEngine } from '../support/test-server.ts';

const HOUR = 3_600_000;
/** Whole seconds: the client sends no others. */
const from = (hours: number) => new Date(Math.floor(Date.now() / 1_000) * 1_000 + hours * HOUR);
const expectXmlError = (answer: Awaited<ReturnType<typeof ask>>, status: number, code: string) => {
  expect([answer.status, answer.headers['x-ms-error-code'], answer.headers['content-type']]).toEqual([
    status,
    code,
    'application/xml',
  ]);
  expect(answer.text).toContain(
    `<m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><m:code>${code}</m:code><m:message xml:lang="en-US">`,
  );
};

describe('What Set Table ACL stores and Get Table ACL returns', () => {
  onEveryEngine((running) => {
    it('is empty at first, and is given back as it was set', async () => {
      const table = await newTable(running);
      expect(await table.getAccessPolicy()).toEqual([]);
      const empty = await ask(running, 'GET', `/${table.tableName}?comp=acl`);
      expect(empty.text).toContain('<SignedIdentifiers />');
      expect(empty.headers['cache-control']).toBeUndefined();
      const accessPolicy = { start: from(-1), expiry: from(1), permission: 'raud' };
      await table.setAccessPolicy([{ id: 'one', accessPolicy }, { id: 'two' }]);
      expect(await table.getAccessPolicy()).toMatchObject([{ id: 'one', accessPolicy }, { id: 'two' }]);
      const head = await ask(running, 'HEAD', `/${table.tableName}?comp=acl`);
      expect([head.status, head.text]).toEqual([200, '']);
      const body = '<SignedIdentifiers></SignedIdentifiers>';
      const put = await ask(running, 'PUT', `/${table.tableName}?comp=acl`, { body });
      expect([put.status, put.text]).toEqual([204, '']);
      expect(await table.getAccessPolicy()).toEqual([]);
    });

    it('is refused in XML', async () => {
      const { tableName } = await newTable(running);
      const put = (body: string) => ask(running, 'PUT', `/${tableName}?comp=acl`, { body });
      const many = Array.from({ length: 6 }, (_, at) => `<SignedIdentifier><Id>${at}</Id></SignedIdentifier>`).join('');
      expectXmlError(await put(`<SignedIdentifiers>${many}</SignedIdentifiers>`), 400, 'InvalidXmlDocument');
      expectXmlError(await put('<Signed'), 400, 'InvalidXmlDocument');
      expectXmlError(await ask(running, 'GET', `/${newName()}?comp=acl`), 404, 'ResourceNotFound');
      expectXmlError(await ask(running, 'GET', '/aa?comp=acl'), 400, 'OutOfRangeInput');
      expectXmlError(await ask(running, 'GET', '/1table?comp=acl'), 400, 'InvalidResourceName');
      expectXmlError(await ask(running, 'GET', `/${tableName}?comp=nothing`), 400, 'InvalidQueryParameterValue');
    });

    it('decides at once what signatures that name its policies are good for', async () => {
      const table = await newTable(running);
      const { tableName: name } = table;
      await table.createEntity({ partitionKey: 'p', rowKey: 'r' });
      const set = (permission: string, expiry = from(1)) =>
        table.setAccessPolicy([{ id: 'policy', accessPolicy: { start: from(-1), expiry, permission } }]);
      const client = tableWith(running, name, generateTableSas(name, credential, { identifier: 'policy' }));
      await expectRefused(client.getEntity('p', 'r'), 403, 'AuthenticationFailed');
      await set('r');
      expect(await client.getEntity('p', 'r')).toMatchObject({ rowKey: 'r' });
      await expectRefused(
        client.createEntity({ partitionKey: 'p', rowKey: 's' }),
        403,
        'AuthorizationPermissionMismatch',
      );
      await set('a');
      await client.createEntity({ partitionKey: 'p', rowKey: 's' });
      await expectRefused(client.getEntity('p', 'r'), 403, 'AuthorizationPermissionMismatch');
      await set('ra', from(-0.5));
      await expectRefused(client.getEntity('p', 'r'), 403, 'AuthenticationFailed');
      await table.setAccessPolicy([]);
      await expectRefused(client.getEntity('p', 'r'), 403, 'AuthenticationFailed');
      // A table made anew is another one.
      await set('r');
      await table.deleteTable();
      await table.createTable();
      await expectRefused(client.getEntity('p', 'r'), 403, 'AuthenticationFailed');
    });
  });
});

describe('A shared access signature', () => {
  onEveryEngine((running) => {
    const letters = (text: string) => ({
      query: text.includes('r'),
      add: text.includes('a'),
      update: text.includes('u'),
      delete: text.includes('d'),
    });
    const entity = (partitionKey: string, rowKey: string) => ({ partitionKey, rowKey, a: 1 });

    it('for a table permits the operations of its letters, single and in transactions', async () => {
      const table = await newTable(running);
      const { tableName: name } = table;
      await table.createEntity(entity('p', 'r'));
      const using = (text: string) =>
        tableWith(
          running,
          name,
          generateTableSas(name, credential, { permissions: letters(text), expiresOn: from(1) }),
        );
      const refused = (call: Promise<unknown>) => expectRefused(call, 403, 'AuthorizationPermissionMismatch');
      const calls: Record<string, (client: typeof table) => Promise<unknown>> = {
        r: (client) => client.getEntity('p', 'r'),
        a: (client) => client.createEntity(entity('p', newName())),
        u: (client) => client.updateEntity(entity('p', 'r'), 'Merge'),
        au: (client) => client.upsertEntity(entity('p', 'r'), 'Replace'),
        d: async (client) => {
          const rowKey = newName();
          await table.createEntity(entity('p', rowKey));
          await client.deleteEntity('p', rowKey);
        },
      };
      for (const [needed, call] of Object.entries(calls)) {
        await call(using(needed));
        const others = [...'raud'].filter((letter) => !needed.includes(letter)).join('');
        await refused(call(using(others)));
        for (const letter of needed.length > 1 ? needed : '') await refused(call(using(letter)));
      }
      const actions: TransactionAction[] = [
        ['create', entity('p', 'new')],
        ['update', entity('p', 'r'), 'Merge'],
      ];
      await refused(using('a').submitTransaction(actions));
      await refused(using('u').submitTransaction(actions));
      expect(await rowKeysOf(table)).not.toContain('new');
      await using('au').submitTransaction(actions);
      expect(await rowKeysOf(table)).toContain('new');
    });

    it('for a table opens no other, and nothing but entities', async () => {
      const [table, other] = [await newTable(running), await newTable(running)];
      const sas = generateTableSas(table.tableName, credential, { permissions: letters('raud'), expiresOn: from(1) });
      const inOther = tableWith(running, other.tableName, sas);
      await expectRefused(inOther.createEntity(entity('p', 'r')), 403, 'AuthorizationFailure');
      await expectRefused(inOther.submitTransaction([['create', entity('p', 'r')]]), 403, 'AuthorizationFailure');
      expect(await rowKeysOf(other)).toEqual([]);
      const client = tableWith(running, table.tableName, sas);
      await client.createEntity(entity('p', 'r'));
      await expectRefused(client.deleteTable(), 403, 'AuthorizationFailure');
      await expectRefused(tablesWith(running, sas).listTables().next(), 403, 'AuthorizationFailure');
      expect((await ask(running, 'GET', `/${table.tableName}?comp=acl&${sas}`, { unsigned: true })).status).toBe(403);
    });

    it('with a range of keys reaches the entities in it only, whatever is done to them', async () => {
      const table = await newTable(running);
      const { tableName: name } = table;
      for (const [p, r] of ['a1', 'b1', 'b2', 'b3', 'c1', 'c2', 'd1']) await table.createEntity(entity(p!, r!));
      const range = { startPartitionKey: 'b', startRowKey: '2', endPartitionKey: 'c', endRowKey: '1' };
      const sas = generateTableSas(name, credential, { permissions: letters('raud'), expiresOn: from(1), ...range });
      const client = tableWith(running, name, sas);
      const keys = [];
      for await (const { partitionKey, rowKey } of client.listEntities()) keys.push(`${partitionKey}${rowKey}`);
      expect(keys).toEqual(['b2', 'b3', 'c1']);
      expect(await rowKeysOf(client, "PartitionKey eq 'a' or PartitionKey eq 'd'")).toEqual([]);
      const out = (call: Promise<unknown>) => expectRefused(call, 403, 'AuthorizationFailure');
      for (const [p, r] of ['a1', 'b1', 'c2', 'd1'] as const) {
        await out(client.getEntity(p!, r!));
        await out(client.updateEntity(entity(p!, r!), 'Merge'));
        await out(client.upsertEntity(entity(p!, r!), 'Replace'));
        await out(client.deleteEntity(p!, r!));
        await out(client.createEntity(entity(p!, `${r}x`)));
      }
      await client.createEntity(entity('b', '25'));
      await client.deleteEntity('b', '3');
      await out(
        client.submitTransaction([
          ['create', entity('b', '4')],
          ['delete', entity('b', '1')],
        ]),
      );
      expect(await rowKeysOf(table)).toEqual(['1', '1', '2', '25', '1', '2', '1']);
    });

    it('with an empty end of its range is refused: its holder could leave that out', async () => {
      const table = await newTable(running);
      const { tableName: name } = table;
      const sas = generateTableSas(name, credential, { permissions: letters('r'), expiresOn: from(1) });
      for (const [query, status] of [
        ['', 200],
        ['&spk=&srk=', 200],
        ['&epk=', 403],
        ['&epk=a&erk=', 403],
      ] as const) {
        const answer = await ask(running, 'GET', `/${name}()?${sas}${query}`, { unsigned: true });
        expect([query, answer.status]).toEqual([query, status]);
      }
    });

    it('for the account allows its letters on its kinds of resources', async () => {
      const table = await newTable(running);
      const { tableName: name } = table;
      await table.createEntity(entity('p', 'r'));
      const sasOf = (permissions: object, resourceTypes: string) =>
        generateAccountSas(credential, { permissions, resourceTypes, expiresOn: from(1) });
      const query = sasOf({ query: true }, 'o');
      expect(await rowKeysOf(tableWith(running, name, query))).toEqual(['r']);
      await expectRefused(tablesWith(running, query).listTables().next(), 403, 'AuthorizationResourceTypeMismatch');
      await expectRefused(
        tableWith(running, name, query).deleteEntity('p', 'r'),
        403,
        'AuthorizationPermissionMismatch',
      );
      await expectRefused(
        tableWith(running, name, sasOf({ query: true }, 'c')).getEntity('p', 'r'),
        403,
        'AuthorizationResourceTypeMismatch',
      );
      const made = newName();
      const lists = tablesWith(running, sasOf({ list: true }, 'c'));
      await expectRefused(lists.createTable(made), 403, 'AuthorizationPermissionMismatch');
      await tablesWith(running, sasOf({ write: true }, 'c')).createTable(made);
      await expectRefused(
        tablesWith(running, sasOf({ write: true }, 'c')).deleteTable(made),
        403,
        'AuthorizationPermissionMismatch',
      );
      await tablesWith(running, sasOf({ delete: true }, 'c')).deleteTable(made);
      expect(
        (
          await tablesWith(running, sasOf({ list: true }, 'c'))
            .listTables()
            .next()
        ).value.name,
      ).toBeDefined();
      await tableWith(running, name, sasOf({ add: true }, 'o')).submitTransaction([['create', entity('p', 's')]]);
      const blobs = generateAccountSas(credential, { services: { blob: true } as never, expiresOn: from(1) });
      const wrong = await ask(running, 'GET', `/${name}()?${blobs.replace('ss=t', 'ss=b')}`, { unsigned: true });
      expect(wrong.status).toBe(403);
    });

    it('is refused as JSON or XML, as the caller reads', async () => {
      const { tableName } = await newTable(running);
      const path = entityPath(tableName, 'p', 'r');
      const json = await ask(running, 'GET', path, { key: Buffer.alloc(64).toString('base64') });
      expect([json.status, json.headers['content-type'], json.headers['x-ms-error-code']]).toEqual([
        403,
        'application/json',
        'AuthenticationFailed',
      ]);
      expect(JSON.parse(json.text)['odata.error'].code).toBe('AuthenticationFailed');
      const headers = { Accept: 'application/xml' };
      const xml = await ask(running, 'GET', path, { headers, key: Buffer.alloc(64).toString('base64') });
      expectXmlError(xml, 403, 'AuthenticationFailed');
      const anonymous = await ask(running, 'GET', path, { unsigned: true });
      expect(anonymous.status).toBe(401);
      expect(anonymous.headers['www-authenticate']).toBeDefined();
      const batch = { 'Content-Type': 'multipart/mixed; boundary=b' };
      expect((await ask(running, 'POST', '/$batch', { unsigned: true, headers: batch, body: '' })).status).toBe(401);
    });
  });
});
