import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../services/common/errors.ts';
import { parseBlobPath } from './blob/params.ts';
import { parseAddress, parseQuery, parseRequest } from './request.ts';

function request(url: string, headers = {}) {
  const incoming = { method: 'GET', url, headers, rawHeaders: [], socket: {} } as unknown as IncomingMessage;
  return parseRequest(
    incoming,
    'id',
    parseAddress(url, undefined, () => false, parseBlobPath),
  );
}

describe('the query', () => {
  it('has lower-case names and decoded values', () => {
    expect({ ...parseQuery('Comp=list&prefix=a%2Fb+c%2B&x&=&&x=2') }).toEqual({
      comp: 'list',
      prefix: 'a/b c+',
      x: '',
      '': '',
    });
  });

  it('has no inherited names', () => {
    expect(parseQuery('')['constructor' as string]).toBeUndefined();
    expect(parseQuery('a=1')['constructor' as string]).toBeUndefined();
    expect(Object.entries(parseQuery('__proto__=1'))).toEqual([['__proto__', '1']]);
  });
});

describe('the version', () => {
  it('is any well-formed one', () => {
    for (const version of ['2009-09-19', '2019-02-02', '2099-12-31']) {
      expect(request('/acc', { 'x-ms-version': version }).version).toBe(version);
    }
    expect(request('/acc').version).toBe('');
  });

  it('is refused in any other form', () => {
    for (const version of ['', 'latest', '2019-13-01', '2019-1-1', '2019-01-32', '2019-02-02 ']) {
      expect(() => request('/acc', { 'x-ms-version': version })).toThrow(
        expect.objectContaining({
          code: 'InvalidHeaderValue',
          details: { HeaderName: 'x-ms-version', HeaderValue: version },
        }),
      );
    }
  });
});

describe('any request line', () => {
  it('is parsed or refused with a StorageError', () => {
    const character = fc.oneof(
      fc.constantFrom('/', '%', '?', '&', '=', '+', '#', '%2', '%00', '..'),
      fc.string({ maxLength: 3 }),
    );
    fc.assert(
      fc.property(fc.array(character, { maxLength: 20 }), (parts) => {
        try {
          request(`/${parts.join('')}`);
        } catch (error) {
          expect(error).toBeInstanceOf(StorageError);
          expect((error as StorageError).status).toBe(400);
        }
      }),
    );
  });
});
