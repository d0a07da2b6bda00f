import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StorageError } from '../../services/common/errors.ts';
import {
  type Account,
  authScheme,
  createSharedKeyCheck,
  type SignedRequest,
  sharedKeyLiteStringToSign,
  sharedKeyStringToSign,
} from './shared-key.ts';

const key = Buffer.from('a key that is used in this test only').toString('base64');
const otherKey = Buffer.from('another key').toString('base64');
const account: Account = { name: 'devstoreaccount1', keys: [otherKey, key] };
const DATE = 'Wed, 01 May 2019 10:20:30 GMT';
const wall = () => Date.parse(DATE);
const check = createSharedKeyCheck(account, 'blob', wall);

function signed(headers: Record<string, string>, url = '/devstoreaccount1/c/b', method = 'GET'): SignedRequest {
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const [rawPath = '', rawQuery = ''] = url.split('?');
  return { method, rawPath, rawQuery, headers: lower, rawHeaders: Object.entries(headers).flat() };
}

/** Signs a string that the test spells out itself. */
function withSignature(request: SignedRequest, text: string, name = account.name, scheme = 'SharedKey'): SignedRequest {
  const signature = createHmac('sha256', Buffer.from(key, 'base64')).update(text).digest('base64');
  return { ...request, headers: { ...request.headers, authorization: `${scheme} ${name}:${signature}` } };
}

function refusal(request: SignedRequest): StorageError {
  try {
    check(request);
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

describe('SharedKey', () => {
  it('accepts a signature of the documented string', () => {
    const request = signed(
      {
        'Content-Length': '11',
        'Content-MD5': 'XrY7u+Ae7tCTyyK7j1rNww==',
        'Content-Type': 'text/plain',
        Date: 'Wed, 01 May 2019 00:00:00 GMT',
        'If-None-Match': '*',
        Range: 'bytes=0-1',
        'x-ms-version': '2019-02-02',
        'X-Ms-Date': DATE,
        'x-ms-meta-b': 'two',
        'x-ms-meta-A': 'one',
      },
      '/devstoreaccount1/c/a%20b?timeout=30&Comp=metadata&x=b&x=a%2Fc',
      'PUT',
    );
    const text = [
      'PUT\n\n\n11\nXrY7u+Ae7tCTyyK7j1rNww==\ntext/plain\n\n\n\n*\n\nbytes=0-1',
      `x-ms-date:${DATE}`,
      'x-ms-meta-a:one',
      'x-ms-meta-b:two',
      'x-ms-version:2019-02-02',
      '/devstoreaccount1/devstoreaccount1/c/a%20b',
      'comp:metadata',
      'timeout:30',
      'x:a/c,b',
    ].join('\n');
    expect(sharedKeyStringToSign(account.name, request)).toBe(text);
    expect(() => check(withSignature(request, text))).not.toThrow();
  });

  it('leaves a length of 0 out, and signs Date where x-ms-date is absent', () => {
    const request = signed({ 'Content-Length': '0', Date: DATE }, '/devstoreaccount1/c', 'PUT');
    const text = `PUT\n\n\n\n\n\n${DATE}\n\n\n\n\n\n/devstoreaccount1/devstoreaccount1/c`;
    expect(() => check(withSignature(request, text))).not.toThrow();
  });

  it('accepts white space inside a value as sent or folded', () => {
    const request = signed({ 'x-ms-date': DATE, 'x-ms-meta-a': 'one  two' });
    const text = `GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:${DATE}\nx-ms-meta-a:one  two\n/devstoreaccount1/devstoreaccount1/c/b`;
    expect(() => check(withSignature(request, text))).not.toThrow();
    expect(() => check(withSignature(request, text.replace('one  two', 'one two')))).not.toThrow();
  });

  it('refuses another signature and discloses the string-to-sign, for the account whose key is public', () => {
    const request = signed({ 'x-ms-date': DATE });
    const error = refusal(withSignature(request, 'something else'));
    expect(error).toMatchObject({ status: 403, code: 'AuthenticationFailed' });
    expect(error.details?.AuthenticationErrorDetail).toContain(sharedKeyStringToSign(account.name, request));
    const mine = createSharedKeyCheck({ name: 'mine', keys: [otherKey] }, 'blob', wall);
    expect(() => mine(withSignature(request, 'something else', 'mine'))).toThrow(
      expect.objectContaining({ details: { AuthenticationErrorDetail: expect.not.stringContaining('\n') } }),
    );
  });

  it('refuses a signature that is cut or longer', () => {
    const request = signed({ 'x-ms-date': DATE });
    const good = String(withSignature(request, sharedKeyStringToSign(account.name, request)).headers.authorization);
    for (const authorization of [good.slice(0, -1), `${good}=`, good.slice(0, good.indexOf(':') + 2)]) {
      expect(refusal({ ...request, headers: { ...request.headers, authorization } }).status).toBe(403);
    }
  });

  it('refuses a date that is missing, broken or a quarter of an hour away', () => {
    for (const date of ['nonsense', 'Wed, 01 May 2019 10:00:00 GMT', 'Wed, 01 May 2019 10:40:00 GMT']) {
      const request = signed({ 'x-ms-date': date });
      const error = refusal(withSignature(request, sharedKeyStringToSign(account.name, request)));
      expect(error).toMatchObject({ status: 403, code: 'AuthenticationFailed' });
    }
    const request = signed({});
    expect(refusal(withSignature(request, sharedKeyStringToSign(account.name, request))).status).toBe(403);
  });

  it('refuses malformed credentials', () => {
    for (const authorization of ['', 'SharedKey', 'SharedKey devstoreaccount1', 'SharedKey :abc', 'Basic abc', 'x']) {
      expect(refusal(signed({ authorization, 'x-ms-date': DATE })), authorization).toMatchObject({
        status: 400,
        code: 'InvalidAuthenticationInfo',
      });
    }
  });

  it('names the account of a signature for another account', () => {
    const request = signed({ 'x-ms-date': DATE });
    expect(refusal(withSignature(request, 'x', 'other')).details?.AuthenticationErrorDetail).toContain('other');
  });

  it('sorts the names of headers by their characters, or as Azure does', () => {
    const request = signed({ 'x-ms-date': DATE, 'x-ms-meta-ab': '1', 'x-ms-meta-a_b': '2', 'x-ms-meta-a-b': '3' });
    const textWith = (...lines: string[]) =>
      `GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:${DATE}\n${lines.join('\n')}\n/devstoreaccount1/devstoreaccount1/c/b`;
    const [ab, underscore, hyphen] = ['x-ms-meta-ab:1', 'x-ms-meta-a_b:2', 'x-ms-meta-a-b:3'] as const;
    expect(() => check(withSignature(request, textWith(hyphen, underscore, ab)))).not.toThrow();
    expect(() => check(withSignature(request, textWith(underscore, ab, hyphen)))).not.toThrow();
    expect(refusal(withSignature(request, textWith(ab, underscore, hyphen))).status).toBe(403);
  });

  it('accepts bytes beyond ASCII as UTF-8 of Latin-1, or as sent', () => {
    const asBytes = (text: string) => Buffer.from(text).toString('latin1');
    const request = signed(
      { 'x-ms-date': DATE, 'x-ms-meta-a': asBytes('é') },
      `/devstoreaccount1/c/${asBytes('ü')}?x=%C3%A9`,
    );
    const text = `GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:${DATE}\nx-ms-meta-a:é\n/devstoreaccount1/devstoreaccount1/c/ü\nx:é`;
    expect(() => check(withSignature(request, text))).not.toThrow();
    expect(() => check(withSignature(request, sharedKeyStringToSign(account.name, request)))).not.toThrow();
    expect(refusal(withSignature(request, text.replace('x:é', 'x:e'))).status).toBe(403);
  });

  it('leaves a length of 0 in before version 2015-02-21', () => {
    const request = signed(
      { 'Content-Length': '0', 'x-ms-date': DATE, 'x-ms-version': '2014-02-14' },
      '/devstoreaccount1/c',
      'PUT',
    );
    expect(sharedKeyStringToSign(account.name, request)).toMatch(/^PUT\n\n\n0\n/);
  });
});

describe('SharedKeyLite', () => {
  const headers = {
    'Content-MD5': 'XrY7u+Ae7tCTyyK7j1rNww==',
    'Content-Type': 'text/plain',
    'x-ms-version': '2019-02-02',
  };

  it('accepts a signature of the documented string', () => {
    const request = signed(
      { ...headers, 'Content-Length': '11', Date: DATE, 'x-ms-date': DATE, 'If-Match': '*' },
      '/devstoreaccount1/c/a%20b?timeout=30&Comp=meta%64ata&x=b',
      'PUT',
    );
    const text = `PUT\nXrY7u+Ae7tCTyyK7j1rNww==\ntext/plain\n\nx-ms-date:${DATE}\nx-ms-version:2019-02-02\n/devstoreaccount1/devstoreaccount1/c/a%20b?comp=metadata`;
    expect(sharedKeyLiteStringToSign(account.name, request)).toBe(text);
    expect(() => check(withSignature(request, text, account.name, 'SharedKeyLite'))).not.toThrow();
    expect(refusal(withSignature(request, text)).status).toBe(403);
    expect(refusal(withSignature(request, text, 'other', 'SharedKeyLite'))).toMatchObject({
      code: 'AuthenticationFailed',
    });
  });

  it('signs Date where x-ms-date is absent, and no other part of the query', () => {
    const request = signed({ Date: DATE }, '/devstoreaccount1/c/b?restype=container');
    expect(sharedKeyLiteStringToSign(account.name, request)).toBe(
      `GET\n\n\n${DATE}\n/devstoreaccount1/devstoreaccount1/c/b`,
    );
  });

  it('is refused with its own string-to-sign, and for its date', () => {
    const request = signed({ 'x-ms-date': DATE });
    const error = refusal(withSignature(request, 'something else', account.name, 'SharedKeyLite'));
    expect(error.details?.AuthenticationErrorDetail).toContain(`'${sharedKeyLiteStringToSign(account.name, request)}'`);
    const late = signed({ 'x-ms-date': 'Wed, 01 May 2019 10:40:00 GMT' });
    const sent = withSignature(late, sharedKeyLiteStringToSign(account.name, late), account.name, 'SharedKeyLite');
    expect(refusal(sent).details?.AuthenticationErrorDetail).toContain('15 minutes');
  });
});

describe('a scheme', () => {
  it('is the first word of the header', () => {
    expect(['Bearer abc', 'SharedKey a:b', 'Bearer', ''].map(authScheme)).toEqual([
      'Bearer',
      'SharedKey',
      'Bearer',
      '',
    ]);
  });
});

describe('the signatures of @azure/storage-blob', () => {
  const seen: string[] = [];
  const verify = createSharedKeyCheck({ name: 'devstoreaccount1', keys: [key] }, 'blob');
  const server = createServer((incoming: IncomingMessage, outgoing) => {
    try {
      const { url = '', method = '', headers, rawHeaders } = incoming;
      const [rawPath = '', rawQuery = ''] = url.split('?');
      verify({ method, rawPath, rawQuery, headers, rawHeaders });
      seen.push('verified');
    } catch (error) {
      seen.push(`${(error as StorageError).code}: ${JSON.stringify((error as StorageError).details)}`);
    }
    incoming.resume();
    incoming.on('end', () => outgoing.writeHead(200, { 'Content-Length': '0' }).end());
  });
  let service: BlobServiceClient;

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/devstoreaccount1`;
    service = new BlobServiceClient(url, new StorageSharedKeyCredential('devstoreaccount1', key), {
      retryOptions: { maxTries: 1 },
    });
  });
  afterAll(() => server.close());

  it('are all verified, whatever the names, parameters and headers', async () => {
    const container = service.getContainerClient('con');
    const calls: (() => Promise<unknown>)[] = [];
    for (const name of [
      'plain',
      'a/b//c',
      'space and +plus',
      'percent%41',
      'ünï\u{1f600}',
      "q?&=#'()*!~",
      '.dots..',
      'a\\b',
    ]) {
      const blob = container.getBlockBlobClient(name);
      calls.push(
        () =>
          blob.upload('content', 7, {
            metadata: { Colour: 'light  blue', a: '', a_b: '1', ab: '2', A1: '3', b_: '4', b1: '5', b: '6' },
            conditions: { ifNoneMatch: '*' },
          }),
        () => blob.upload('', 0, { blobHTTPHeaders: { blobContentType: 'text/plain; charset=utf-8' } }),
        () => blob.getProperties({ conditions: { ifModifiedSince: new Date(), leaseId: 'x' } }),
        () => blob.delete({ deleteSnapshots: 'include' }),
      );
    }
    calls.push(
      () => container.create({ metadata: { x: 'y' } }),
      () => container.getBlobLeaseClient().acquireLease(15),
      () => container.getBlobClient('b').download(1, 5),
      () => container.listBlobsByHierarchy('/', { prefix: 'a b+c/é', includeMetadata: true }).next(),
      () => service.listContainers({ prefix: 'x&y=z' }).next(),
    );
    for (const call of calls) await call().catch(() => {});
    expect(seen.length).toBeGreaterThanOrEqual(calls.length);
    expect(seen.filter((verdict) => verdict !== 'verified')).toEqual([]);
  });
});
