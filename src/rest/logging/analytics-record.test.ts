import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { MONDAY } from '../../../test/support/access-record.ts';
import { parseBlobPath } from '../blob/params.ts';
import { parseAddress, parseRequest, type RequestContext } from '../request.ts';
import { parseTablePath } from '../table/params.ts';
import { buildAccessRecord, sentBodyBytes } from './analytics-record.ts';

interface SentRequest {
  readonly url?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly operation?: string;
  readonly service?: 'blob' | 'table';
  readonly complete?: boolean;
}

function accessRecord(sent: SentRequest, reply: Parameters<typeof buildAccessRecord>[2] = { status: 200 }) {
  const { url = '/me/c/b', method = 'GET', headers = {}, service = 'blob', complete = true } = sent;
  const socket = { remoteAddress: '10.0.0.1', remotePort: 4362 };
  const all = { host: 'here:10000', ...headers };
  const rawHeaders = Object.entries(all).flat();
  const incoming = { url, method, headers: all, rawHeaders, socket, complete } as unknown as IncomingMessage;
  const path = service === 'blob' ? parseBlobPath : parseTablePath;
  const request = parseRequest(
    incoming,
    'the-id',
    parseAddress(url, undefined, (name) => name === 'me', path),
  );
  const ctx = { incoming, request, id: 'the-id', operation: sent.operation, code: undefined } as RequestContext;
  return buildAccessRecord(ctx, service, reply, 7, { now: MONDAY, milliseconds: 1.5, serverMilliseconds: 1 })!;
}

describe('The access record of a request', () => {
  it.each<[SentRequest, string | undefined]>([
    [{ operation: 'Get Blob' }, 'GetBlob'],
    [{ operation: 'Lease Blob', headers: { 'x-ms-lease-action': 'Acquire' } }, 'AcquireBlobLease'],
    [{ operation: 'Lease Container', headers: { 'x-ms-lease-action': 'break' } }, 'BreakContainerLease'],
    [{ method: 'OPTIONS' }, 'BlobPreflightRequest'],
    [{ operation: 'Query Tables', service: 'table', url: '/me/Tables' }, 'QueryTables'],
    [{ operation: 'Query Tables', service: 'table', url: "/me/Tables('t')" }, 'QueryTable'],
    [{ operation: 'Get Entity', service: 'table' }, 'QueryEntity'],
    [{}, undefined],
  ])('names %j %s', (sent, name) => expect(accessRecord(sent).operation).toBe(name));

  it.each([
    ['GET', 'read'],
    ['HEAD', 'read'],
    ['OPTIONS', 'read'],
    ['DELETE', 'delete'],
    ['PUT', 'write'],
    ['POST', 'write'],
    ['MERGE', 'write'],
  ])('counts %s as a %s', (method, kind) => expect(accessRecord({ method }).kind).toBe(kind));

  it.each<[SentRequest, string]>([
    [{ headers: { authorization: 'SharedKey me:x' } }, 'key'],
    [{ headers: { authorization: 'Bearer x' } }, 'token'],
    [{ url: '/me/c/b?sv=1&sig=x' }, 'SAS'],
    [{}, 'anonymous'],
  ])('has the credential kind of %j: %s', (sent, by) => expect(accessRecord(sent).by).toBe(by));

  it('has absolute URLs without signatures', () => {
    expect(accessRecord({ url: '/me/c/b%20c?sv=1&sig=secret' })).toMatchObject({
      url: 'http://here:10000/me/c/b%20c?sv=1&sig=XXXXX',
      objectKey: '/me/c/b%20c',
      from: '10.0.0.1:4362',
    });
    expect(accessRecord({ url: 'http://here/me/c/b?sig=secret' }).url).toBe('http://here/me/c/b?sig=XXXXX');
  });

  it('counts a body only if all of it was received', () => {
    const headers = { 'content-length': '12' };
    expect(accessRecord({ method: 'PUT', headers })).toMatchObject({ bytesIn: 12, contentLength: '12', bytesOut: 7 });
    expect(accessRecord({ method: 'PUT', headers, complete: false })).toMatchObject({
      bytesIn: 0,
      contentLength: '12',
    });
  });

  it('has the start time of the request, and no status if the client disconnected', () => {
    expect(accessRecord({})).toMatchObject({ started: MONDAY - 15_000n, status: 200 });
    const ctx = { request: undefined } as RequestContext;
    expect(buildAccessRecord(ctx, 'blob', undefined, 0, { now: 0n, milliseconds: 0, serverMilliseconds: 0 })).toBe(
      undefined,
    );
  });

  it('has the length of a body that is not a stream', () => {
    expect(sentBodyBytes({ status: 200, body: 'ä' }, 'GET')).toBe(2);
    expect(sentBodyBytes({ status: 200, body: Buffer.alloc(3) }, 'GET')).toBe(3);
    expect(sentBodyBytes({ status: 200, body: [Buffer.alloc(3), Buffer.alloc(4)] }, 'GET')).toBe(7);
    expect(sentBodyBytes({ status: 200, body: 'text' }, 'HEAD')).toBe(0);
    expect(sentBodyBytes({ status: 200 }, 'GET')).toBe(0);
  });
});
