/** Tables for tests, and requests that Microsoft's client cannot send. */
import { randomUUID } from 'node:crypto';
import {
  AzureNamedKeyCredential,
  AzureSASCredential,
  type RestError,
  TableClient,
  TableServiceClient,
} from '@azure/data-tables';
import { expect } from 'vitest';
import { type Answer, account, accountKey, type RawRequest, type Running } from './test-server.ts';

export const credential = new AzureNamedKeyCredential(account, accountKey);

export const newName = () => `t${randomUUID().replaceAll('-', '')}`;

/** With a unique name. */
export async function newTable(running: Running): Promise<TableClient> {
  const table = running.table(newName());
  await table.createTable();
  return table;
}

const JSON_TYPE = 'application/json';

/** A signed request to the Table service. */
export function ask(running: Running, method: string, path: string, request: RawRequest = {}): Promise<Answer> {
  const type = request.body === undefined ? undefined : JSON_TYPE;
  const headers = { Accept: JSON_TYPE, 'Content-Type': type, ...request.headers };
  return running.request(method, path, { of: 'table', ...request, headers });
}

export const entityPath = (table: string, partitionKey: string, rowKey: string) =>
  `/${table}(PartitionKey='${quoted(partitionKey)}',RowKey='${quoted(rowKey)}')`;

const quoted = (key: string) => encodeURIComponent(key.replaceAll("'", "''"));

const insecure = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

/** Clients with a shared access signature instead of a key. */
export const tableWith = (running: Running, name: string, sas: string) =>
  new TableClient(running.server.tableUrl, name, new AzureSASCredential(sas), insecure);
export const tablesWith = (running: Running, sas: string) =>
  new TableServiceClient(running.server.tableUrl, new AzureSASCredential(sas), insecure);

/** An error reply. */
export function expectOdataError(answer: Answer, status: number, code: string, message?: string): void {
  const { 'odata.error': error } = answer.status < 300 ? { 'odata.error': undefined } : JSON.parse(answer.text);
  expect([answer.status, error?.code]).toEqual([status, code]);
  expect(error.message.lang).toBe('en-US');
  expect(error.message.value).toMatch(/\nRequestId:[0-9a-f-]{36}\nTime:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
  if (message !== undefined) expect(error.message.value.split('\n')[0]).toBe(message);
}

/** The error that Microsoft's client throws. */
export async function expectRefused(call: Promise<unknown>, status: number, code: string): Promise<void> {
  const error = (await call.then(
    () => new Error('the call succeeded'),
    (reason: unknown) => reason,
  )) as RestError & { details?: { odataError?: { code?: string } } };
  if (error.statusCode === undefined) throw error;
  expect([error.statusCode, error.details?.odataError?.code ?? error.code]).toEqual([status, code]);
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

export async function rowKeysOf(table: TableClient, filter?: string): Promise<string[]> {
  const queryOptions = filter === undefined ? {} : { filter };
  return (await all(table.listEntities({ queryOptions }))).map(({ rowKey }) => rowKey!);
}
