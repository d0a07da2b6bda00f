import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { MONDAY } from '../../../test/support/access-record.ts';
import { parseAddress } from '../address.ts';
import { parseBlobPath } from '../blob/address.ts';
import { parseRequest } from '../request.ts';
import type { RequestContext } from '../request-context.ts';
import { parseTablePath } from '../table/address.ts';
import { buildAccessRecord, sentBodyBytes } from './analytics-record.ts';

interface Asked {
  readonly url?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly operation?: string;
  readonly service?: 'blob' | 'table';
  readonly complete?: boolean;
}

function answered(asked: Asked, reply: Parameters<typeof buildAccessRecord>[2] = { status: 200 }) {
  const { url = '/me/c/b', method = 'GET', headers = {}, service = 'blob', complete = true } = asked;
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
  const exchange = { incoming, request, id: 'the-id', operation: asked.operation, code: undefined } as RequestContext;
  return buildAccessRecord(exchange, service, reply, 7, { now: MONDAY, milliseconds: 1.5, serverMilliseconds: 1 })!;
}

describe('What is told of a request', () => {
  it.each<[Asked, string | undefined]>([
    [{ operation: 'Get Blob' }, 'GetBlob'],
    [{ operation: 'Lease Blob', headers: { 'x-ms-lease-action': 'Acquire' } }, 'AcquireBlobLease'],
    [{ operation: 'Lease Container', headers: { 'x-ms-lease-action': 'break' } }, 'BreakContainerLease'],
    [{ method: 'OPTIONS' }, 'BlobPreflightRequest'],
    [{ operation: 'Query Tables', service: 'table', url: '/me/Tables' }, 'QueryTables'],
    [{ operation: 'Query Tables', service: 'table', url: "/me/Tables('t')" }, 'QueryTable'],
    [{ operation: 'Get Entity', service: 'table' }, 'QueryEntity'],
    [{}, undefined],
  ])('names %j %s', (asked, name) => expect(answered(asked).operation).toBe(name));

  it.each([
    ['GET', 'read'],
    ['HEAD', 'read'],
    ['OPTIONS', 'read'],
    ['DELETE', 'delete'],
    ['PUT', 'write'],
    ['POST', 'write'],
    ['MERGE', 'write'],
  ])('says of %s that it is a %s', (method, kind) => expect(answered({ method }).kind).toBe(kind));

  it.each<[Asked, string]>([
    [{ headers: { authorization: 'SharedKey me:x' } }, 'key'],
    [{ headers: { authorization: 'Bearer x' } }, 'token'],
    [{ url: '/me/c/b?sv=1&sig=x' }, 'SAS'],
    [{}, 'anonymous'],
  ])('says of %j that %s asked', (asked, by) => expect(answered(asked).by).toBe(by));

  it('has whole addresses, and no signature in them', () => {
    expect(answered({ url: '/me/c/b%20c?sv=1&sig=secret' })).toMatchObject({
      url: 'http://here:10000/me/c/b%20c?sv=1&sig=XXXXX',
      objectKey: '/me/c/b%20c',
      from: '10.0.0.1:4362',
    });
    expect(answered({ url: 'http://here/me/c/b?sig=secret' }).url).toBe('http://here/me/c/b?sig=XXXXX');
  });

  it('counts a body only if all of it has come', () => {
    const headers = { 'content-length': '12' };
    expect(answered({ method: 'PUT', headers })).toMatchObject({ bytesIn: 12, contentLength: '12', bytesOut: 7 });
    expect(answered({ method: 'PUT', headers, complete: false })).toMatchObject({ bytesIn: 0, contentLength: '12' });
  });

  it('begins when the request did, and has no status if nobody took the answer', () => {
    expect(answered({})).toMatchObject({ started: MONDAY - 15_000n, status: 200 });
    const exchange = { request: undefined } as RequestContext;
    expect(buildAccessRecord(exchange, 'blob', undefined, 0, { now: 0n, milliseconds: 0, serverMilliseconds: 0 })).toBe(
      undefined,
    );
  });

  it('knows how long a body is that is no stream', () => {
    expect(sentBodyBytes({ status: 200, body: 'ä' }, 'GET')).toBe(2);
    expect(sentBodyBytes({ status: 200, body: Buffer.alloc(3) }, 'GET')).toBe(3);
    expect(sentBodyBytes({ status: 200, body: [Buffer.alloc(3), Buffer.alloc(4)] }, 'GET')).toBe(7);
    expect(sentBodyBytes({ status: 200, body: 'text' }, 'HEAD')).toBe(0);
    expect(sentBodyBytes({ status: 200 }, 'GET')).toBe(0);
  });
});
