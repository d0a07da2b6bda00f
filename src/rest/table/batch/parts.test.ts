import { describe, expect, it } from 'vitest';
import type { Storage } from '../../../services/common/storage.ts';
import type { BatchPart } from '../../multipart.ts';
import type { ContextFor, Request } from '../../operation.ts';
import { type ChangeHead, createHeadReader, readQuery } from './batch.ts';

const outer: Request = {
  id: 'id',
  method: 'POST',
  rawPath: '/devstoreaccount1/$batch',
  rawQuery: '',
  account: 'devstoreaccount1',
  secondary: false,
  base: '/devstoreaccount1',
  readsHosts: true,
  secure: false,
  container: '',
  item: '',
  query: {},
  headers: { host: '127.0.0.1:10002' },
  rawHeaders: [],
  version: '2019-02-02',
};
const headers = { 'content-type': 'application/json' };
const part = (method: string, url: string, body = '', sent: BatchPart['headers'] = headers): BatchPart => ({
  method,
  url,
  headers: sent,
  body: Buffer.from(body),
  contentId: undefined,
  headBytes: 0,
});
const insert = (rowKey: string) => part('POST', '/mine', `{"PartitionKey":"p","RowKey":"${rowKey}"}`);
const ENTITY = "/mine(PartitionKey='p',RowKey='r')";
const storage = {} as Storage;

function reading() {
  const authorized: [string, unknown][] = [];
  const contextFor: ContextFor<Storage> = ({ permission }, table) => {
    authorized.push([table, permission]);
    return storage;
  };
  return { authorized, contextFor, readHead: createHeadReader(outer, contextFor) };
}

const changeOf = ({ operation, input }: ChangeHead, { body }: BatchPart) => operation.readChange(input, body);

describe('A part of a change set', () => {
  it('shares its head with like parts, and has a change of its own', () => {
    const { readHead, authorized } = reading();
    const parts = ['1', '2', '3'].map(insert);
    const heads = parts.map(readHead);
    const before = structuredClone(heads[0]!.input);
    const changes = heads.map((head, at) => changeOf(head, parts[at]!));
    expect(new Set(heads).size).toBe(1);
    expect(authorized).toEqual([['mine', 'add']]);
    expect(heads[0]!.input).toEqual(before);
    expect(changes).toEqual(
      ['1', '2', '3'].map((rowKey) => ({
        kind: 'insert',
        table: 'mine',
        entity: { partitionKey: 'p', rowKey, properties: [] },
      })),
    );
  });

  it.each([
    ['another method', part('MERGE', ENTITY, '{}')],
    ['another address', part('PUT', '/mine(PartitionKey="p",RowKey="s")'.replaceAll('"', "'"), '{}')],
    ['other headers', part('PUT', ENTITY, '{}', { ...headers, 'if-match': '*' })],
  ])('has a head of its own with %s', (_, other) => {
    const { readHead } = reading();
    const first = part('PUT', ENTITY, '{}');
    const change = changeOf(readHead(first), first);
    expect(changeOf(readHead(other), other)).not.toEqual(change);
    expect(changeOf(readHead(first), first)).toEqual(change);
  });

  it('that deletes has no body', () => {
    const remove = part('DELETE', ENTITY, 'any text', { 'if-match': '*' });
    expect(changeOf(reading().readHead(remove), remove)).toEqual({
      kind: 'delete',
      table: 'mine',
      partitionKey: 'p',
      rowKey: 'r',
      ifMatch: '*',
    });
  });

  it('is no query, and a query is no change', () => {
    const { contextFor, readHead } = reading();
    const query = part('GET', ENTITY);
    expect(() => readHead(query)).toThrow('A query must stand alone in its batch.');
    expect(() => readQuery(insert('1'), outer, contextFor)).toThrow('A change must be part of a change set.');
    expect(readQuery(query, outer, contextFor).row.name).toBe('Get Entity');
  });
});
