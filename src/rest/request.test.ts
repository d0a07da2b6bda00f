import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../services/errors.ts';
import { addressOf, queryOf, requestOf } from './request.ts';

const incoming = (url: string, headers = {}) =>
  ({ method: 'GET', url, headers, rawHeaders: [] }) as unknown as IncomingMessage;

describe('the path', () => {
  it('is account, container and blob', () => {
    expect(addressOf('/acc')).toMatchObject({ account: 'acc', shape: '/' });
    expect(addressOf('/acc/?comp=list')).toMatchObject({ account: 'acc', shape: '/', rawQuery: 'comp=list' });
    expect(addressOf('/acc/con')).toMatchObject({ account: 'acc', container: 'con', shape: '/{container}' });
    expect(addressOf('/acc/con/')).toMatchObject({ container: 'con', blob: '', shape: '/{container}' });
    expect(addressOf('/acc/con/a/b')).toMatchObject({ container: 'con', blob: 'a/b', shape: '/{container}/{blob}' });
    expect(addressOf('http://host:1/acc/con/b?x')).toMatchObject({ rawPath: '/acc/con/b', blob: 'b', rawQuery: 'x' });
  });

  it('is kept as it was sent beside the name, which is decoded once', () => {
    expect(addressOf('/acc/con/a%2Fb//%2541%20c+d/')).toMatchObject({
      rawPath: '/acc/con/a%2Fb//%2541%20c+d/',
      blob: 'a/b//%41 c+d/',
    });
    expect(addressOf('/acc/con/%F0%9F%98%80').blob).toBe('\u{1f600}');
  });

  it('brings every name back', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (name) => {
        expect(addressOf(`/acc/con/${encodeURIComponent(name)}`).blob).toBe(name);
      }),
    );
  });

  it('is refused when its encoding is broken', () => {
    for (const url of ['/acc/con/%', '/acc/con/%zz', '/acc/con/%ff', '/%c3/con', '*', '']) {
      expect(() => addressOf(url), url).toThrow(expect.objectContaining({ status: 400, code: 'InvalidUri' }));
    }
  });
});

describe('the query', () => {
  it('is known by lower-case names and decoded values', () => {
    expect({ ...queryOf('Comp=list&prefix=a%2Fb+c%2B&x&=&&x=2') }).toEqual({
      comp: 'list',
      prefix: 'a/b c+',
      x: '',
      '': '',
    });
  });

  it('holds no name of its own', () => {
    expect(queryOf('')['constructor' as string]).toBeUndefined();
    expect(queryOf('a=1')['constructor' as string]).toBeUndefined();
    expect(Object.entries(queryOf('__proto__=1'))).toEqual([['__proto__', '1']]);
  });
});

describe('the version', () => {
  it('is any well-formed one', () => {
    for (const version of ['2009-09-19', '2019-02-02', '2099-12-31']) {
      expect(requestOf(incoming('/acc', { 'x-ms-version': version }), 'id').version).toBe(version);
    }
    expect(requestOf(incoming('/acc'), 'id').version).toBe('');
  });

  it('is refused in any other form', () => {
    for (const version of ['', 'latest', '2019-13-01', '2019-1-1', '2019-01-32', '2019-02-02 ']) {
      expect(() => requestOf(incoming('/acc', { 'x-ms-version': version }), 'id')).toThrow(
        expect.objectContaining({
          code: 'InvalidHeaderValue',
          details: { HeaderName: 'x-ms-version', HeaderValue: version },
        }),
      );
    }
  });
});

describe('any request line', () => {
  it('is an address or a clean refusal', () => {
    const character = fc.oneof(
      fc.constantFrom('/', '%', '?', '&', '=', '+', '#', '%2', '%00', '..'),
      fc.string({ maxLength: 3 }),
    );
    fc.assert(
      fc.property(fc.array(character, { maxLength: 20 }), (parts) => {
        try {
          requestOf(incoming(`/${parts.join('')}`), 'id');
        } catch (error) {
          expect(error).toBeInstanceOf(StorageError);
          expect((error as StorageError).status).toBe(400);
        }
      }),
    );
  });
});
