import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../../services/common/errors.ts';
import type { Request } from '../operation.ts';
import { entityKeys, parseTablePath } from './params.ts';

const keysOf = (path: string) => entityKeys.read(parseTablePath(path) as unknown as Request);

describe('An address of the Table service', () => {
  it.each([
    ['', '/', ''],
    ['/', '/', ''],
    ['/$batch', '/$batch', ''],
    ['/%24batch', '/$batch', ''],
    ['/$batch/', '/$batch', ''],
    ['/Tables', '/Tables', ''],
    ['/Tables()', '/Tables', ''],
    ['/Tables/', '/Tables', ''],
    ["/Tables('mine')", '/Tables({table})', 'mine'],
    ['/Tables(%27mine%27)', '/Tables({table})', 'mine'],
    ["/Tables(TableName='mine')", '/Tables({table})', 'mine'],
    ["/Tables('O''Neil')", '/Tables({table})', "O'Neil"],
    ['/mine', '/{table}', 'mine'],
    ['/mine()', '/{table}', 'mine'],
    ['/mine%28%29', '/{table}', 'mine'],
    ['/my_table', '/{table}', 'my_table'],
    ['/a%2F%2F', '/{table}', 'a'],
    ["/mine(PartitionKey='a',RowKey='b')", '/{table}({keys})', 'mine'],
    ["/a%2F%2F(PartitionKey='a',RowKey='b')", '/{table}({keys})', 'a'],
  ])('%s leads to %s of %s', (path, shape, container) => {
    expect(parseTablePath(path)).toMatchObject({ shape, container });
  });

  it.each([
    ["/t(PartitionKey='a',RowKey='b')", 'a', 'b'],
    ["/t(RowKey='b',PartitionKey='a')", 'a', 'b'],
    ["/t( PartitionKey = 'a' , RowKey = 'b' )", 'a', 'b'],
    ["/t(PartitionKey='',RowKey='')", '', ''],
    ["/t(PartitionKey='A%27%27a%22',RowKey='it''s')", 'A\'a"', "it's"],
    ["/t(PartitionKey='a,b=c',RowKey=')(')", 'a,b=c', ')('],
    ["/t(PartitionKey='%2B+%20%25',RowKey='%C3%A9')", '++ %', 'é'],
  ])('%s names the entity of %s and %s', (path, partitionKey, rowKey) => {
    expect(keysOf(path)).toEqual({ partitionKey, rowKey });
  });

  it.each([
    "/t(PartitionKey='a')",
    "/t('a','b')",
    "/t('a')",
    "/t(PartitionKey='a',RowKey='b',Other='c')",
    "/t(PartitionKey='a',PartitionKey='a',RowKey='b')",
    "/t(PartitionKey='a',RowKey='b'",
    "/t(PartitionKey='a',RowKey='b)",
    "/t(PartitionKey='a' RowKey='b')",
    '/t(PartitionKey=a,RowKey=b)',
    "/t(partitionkey='a',rowkey='b')",
    "/t(PartitionKey='a/b',RowKey='c')",
    "/t(PartitionKey='a%5Cb',RowKey='c')",
    "/t(PartitionKey='it's',RowKey='c')",
    "/(PartitionKey='a',RowKey='b')",
    '/t/u',
    '/t/u()',
    '/Tables(',
    '/Tables(mine)',
    "/Tables('a','b')",
    "/Tables('a',TableName='b')",
    "/Tables(Name='a')",
    '//',
  ])('%s is no address', (path) => {
    expect(() => keysOf(path)).toThrow('Bad Request - Error in query syntax.');
  });

  it('is undone as it was made, whatever the keys', () => {
    const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 });
    const key = units.map((codes) =>
      String.fromCharCode(...codes)
        .toWellFormed()
        .replace(/[/\\]/g, '.'),
    );
    fc.assert(
      fc.property(key, key, (partitionKey, rowKey) => {
        const [one, other] = [partitionKey, rowKey].map((text) => encodeURIComponent(text.replaceAll("'", "''")));
        expect(keysOf(`/t(PartitionKey='${one}',RowKey='${other}')`)).toEqual({ partitionKey, rowKey });
      }),
    );
  });

  it('fails cleanly, whatever it is', () => {
    const part = fc.constantFrom(
      "'",
      ',',
      '(',
      ')',
      '=',
      ' ',
      '/',
      '%',
      '%27',
      'PartitionKey',
      'RowKey',
      'Tables',
      'é',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        try {
          keysOf(`/${parts.join('')}`);
        } catch (error) {
          expect(error).toBeInstanceOf(StorageError);
          expect((error as StorageError).status).toBe(400);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
