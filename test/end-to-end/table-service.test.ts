import { TableClient, TableServiceClient } from '@azure/data-tables';
import { describe, expect, it } from 'vitest';
import { ask, credential, newTable } from '../support/tables.ts';
import { account, onEveryEngine } from '../support/test-server.ts';

const page = 'https://page.example';
const rule = {
  allowedOrigins: page,
  allowedMethods: 'GET,MERGE',
  allowedHeaders: 'x-ms-*',
  exposedHeaders: 'x-ms-*',
  maxAgeInSeconds: 60,
};

describe('The Table service itself', () => {
  onEveryEngine((running) => {
    it('has properties of its own, apart from those of the other services', async () => {
      const before = await running.tables.getProperties();
      expect(before).toMatchObject({ logging: { version: '1.0', read: false }, cors: [] });
      await running.tables.setProperties({ cors: [rule] });
      expect((await running.tables.getProperties()).cors).toEqual([rule]);
      expect((await running.service.getProperties()).cors ?? []).toEqual([]);
    });

    it('answers browsers by its rules, on every address', async () => {
      const { tableName } = await newTable(running);
      await running.tables.setProperties({ cors: [rule] });
      const headers = {
        Origin: page,
        'Access-Control-Request-Method': 'MERGE',
        'Access-Control-Request-Headers': 'x-ms-date',
      };
      for (const path of [
        '/',
        '/Tables',
        `/${tableName}()`,
        `/${tableName}(PartitionKey='p',RowKey='r')`,
        '/a/b',
        '/$batch',
      ]) {
        const answer = await ask(running, 'OPTIONS', path, { unsigned: true, headers });
        expect([path, answer.status]).toEqual([path, 200]);
        expect(answer.headers['access-control-allow-methods']).toBe('MERGE');
      }
      const read = await ask(running, 'GET', `/${tableName}()`, { headers: { Origin: page } });
      expect(read.headers['access-control-allow-origin']).toBe(page);
      expect(read.headers['access-control-expose-headers']).toContain('x-ms-request-id');
      const foreign = await ask(running, 'GET', `/${tableName}()`, { headers: { Origin: 'https://other.example' } });
      expect([foreign.status, foreign.headers['access-control-allow-origin']]).toEqual([200, undefined]);
    });

    it('reports the state of replication at the secondary address, which can be read from', async () => {
      const table = await newTable(running);
      await table.createEntity({ partitionKey: 'p', rowKey: 'r' });
      const { origin } = new URL(running.server.tableUrl);
      const url = `${origin}/${account}-secondary`;
      const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
      const copy = new TableClient(url, table.tableName, credential, options);
      expect(await copy.getEntity('p', 'r')).toMatchObject({ rowKey: 'r' });
      await expect(copy.createEntity({ partitionKey: 'p', rowKey: 's' })).rejects.toMatchObject({ statusCode: 403 });
      const { geoReplication } = await new TableServiceClient(url, credential, options).getStatistics();
      expect(geoReplication).toMatchObject({ status: 'live' });
    });

    it('refuses verbs and paths that the service does not have', async () => {
      const { tableName } = await newTable(running);
      const codeOf = async (method: string, path: string, headers = {}) => {
        const body = method === 'POST' || method === 'PUT' ? { body: '{"PartitionKey":"p","RowKey":"r"}' } : {};
        const answer = await ask(running, method, path, { headers, ...body });
        const code = /<m:code>(\w+)/.exec(answer.text)?.[1] ?? JSON.parse(answer.text)['odata.error'].code;
        return `${answer.status} ${code}`;
      };
      const keys = `(PartitionKey='p',RowKey='r')`;
      expect(await codeOf('PUT', `/${tableName}`)).toBe('405 UnsupportedHttpVerb');
      expect(await codeOf('DELETE', `/${tableName}`)).toBe('405 UnsupportedHttpVerb');
      expect(await codeOf('POST', `/${tableName}${keys}`)).toBe('405 UnsupportedHttpVerb');
      expect(await codeOf('PUT', '/Tables')).toBe('405 UnsupportedHttpVerb');
      expect(await codeOf('GET', '/a/b')).toBe('400 InvalidInput');
      expect(await codeOf('GET', `/${tableName}(PartitionKey='p')`)).toBe('400 InvalidInput');
      expect(await codeOf('GET', `/${tableName}(PartitionKey='a/b',RowKey='c')`)).toBe('400 InvalidInput');
      expect(await codeOf('GET', `/${tableName}(PartitionKey='%ff',RowKey='c')`)).toBe('400 InvalidUri');
      expect(await codeOf('GET', `/${tableName}${keys}?$filter=a`)).toBe('400 InvalidInput');
      expect(await codeOf('GET', `/${tableName}${keys}?$expand=a`)).toBe('501 NotImplemented');
      expect(await codeOf('GET', '/?restype=service&comp=nothing')).toBe('400 InvalidQueryParameterValue');
      const atom = { Accept: 'application/atom+xml' };
      expect(await codeOf('GET', `/${tableName}()`, atom)).toBe('415 AtomFormatNotSupported');
      expect(await codeOf('POST', `/${tableName}`, atom)).toBe('415 AtomFormatNotSupported');
      const sendsAtom = { 'Content-Type': 'application/atom+xml' };
      expect(await codeOf('POST', `/${tableName}`, sendsAtom)).toBe('415 AtomFormatNotSupported');
      expect(await codeOf('POST', `/${tableName}`, { 'Content-Type': 'text/plain' })).toBe('415 MediaTypeNotSupported');
      const verbose = { Accept: 'application/json;odata=verbose' };
      expect(await codeOf('GET', `/${tableName}()`, verbose)).toBe('415 MediaTypeNotSupported');
      expect(await codeOf('POST', `/${tableName}`, { 'If-Match': '*' })).toBe('400 InvalidInput');
      expect((await ask(running, 'GET', `/${tableName}()`)).text).toContain('"value":[]');
    });

    it('leaks nothing of itself, whatever it is asked', async () => {
      const { tableName } = await newTable(running);
      for (const path of [
        "/(')",
        "/%00('",
        `/${tableName}(')')`,
        `/${tableName}()?$filter=%00`,
        '/$metadata',
        '/Tables(%27)',
      ]) {
        const { status, text } = await ask(running, 'GET', path);
        expect([path, status]).toEqual([path, 400]);
        expect(text).not.toMatch(/\.[jt]s\b|at \w+ \(/);
      }
    });
  });
});
