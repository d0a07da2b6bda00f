import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseBlobPath } from './blob/params.ts';
import { parseAddress, unknownAccount } from './request.ts';

const accounts = new Set(['acc', 'other', 'odd-secondary']);
const read = (url: string, host?: string) => parseAddress(url, host, (name) => accounts.has(name), parseBlobPath);

describe('the path', () => {
  it('is account, container and blob', () => {
    expect(read('/acc')).toMatchObject({ account: 'acc', shape: '/' });
    expect(read('/acc/?comp=list')).toMatchObject({ account: 'acc', shape: '/', rawQuery: 'comp=list' });
    expect(read('/acc/con')).toMatchObject({ account: 'acc', container: 'con', shape: '/{container}' });
    expect(read('/acc/con/')).toMatchObject({ container: 'con', item: '', shape: '/{container}' });
    expect(read('/acc/con/a/b')).toMatchObject({ container: 'con', item: 'a/b', shape: '/{container}/{blob}' });
    expect(read('http://host:1/acc/con/b?x')).toMatchObject({ rawPath: '/acc/con/b', item: 'b', rawQuery: 'x' });
  });

  it('is kept as it was sent beside the name, which is decoded once', () => {
    expect(read('/acc/con/a%2Fb//%2541%20c+d/')).toMatchObject({
      rawPath: '/acc/con/a%2Fb//%2541%20c+d/',
      item: 'a/b//%41 c+d/',
    });
    expect(read('/acc/con/%F0%9F%98%80').item).toBe('\u{1f600}');
  });

  it('decodes every encoded name to itself', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (name) => {
        expect(read(`/acc/con/${encodeURIComponent(name)}`).item).toBe(name);
      }),
    );
  });

  it('is refused when its encoding is broken', () => {
    for (const url of ['/acc/con/%', '/acc/con/%zz', '/acc/con/%ff', '/%c3/con', '*', '']) {
      expect(() => read(url), url).toThrow(expect.objectContaining({ status: 400, code: 'InvalidUri' }));
    }
  });
});

describe('the host', () => {
  it('names the account by its first label, if there is such an account', () => {
    for (const host of [
      'acc.blob.localhost',
      'acc.blob.localhost:10000',
      'ACC.blob.core.windows.net',
      'acc.anything',
    ]) {
      expect(read('/con/b/c?x', host), host).toMatchObject({
        account: 'acc',
        container: 'con',
        item: 'b/c',
        rawPath: '/con/b/c',
        base: '',
        secondary: false,
      });
    }
    expect(read('/', 'acc.blob.localhost')).toMatchObject({ account: 'acc', shape: '/' });
    expect(read('/con', 'acc.blob.localhost')).toMatchObject({ container: 'con', shape: '/{container}' });
  });

  it('otherwise leaves the account to the path', () => {
    for (const host of [
      undefined,
      '127.0.0.1:10000',
      'localhost',
      'acc',
      'acc:1',
      '[::1]:1',
      'blob.localhost',
      '.acc.x',
    ]) {
      expect(read('/other/con/b', host), host).toMatchObject({
        account: 'other',
        container: 'con',
        item: 'b',
        base: '/other',
      });
    }
  });
});

describe('a secondary address', () => {
  it('addresses the same account', () => {
    expect(read('/acc-secondary/con')).toMatchObject({
      account: 'acc',
      secondary: true,
      container: 'con',
      base: '/acc-secondary',
    });
    expect(read('/con', 'acc-secondary.blob.localhost')).toMatchObject({
      account: 'acc',
      secondary: true,
      container: 'con',
    });
  });

  it('is the primary address of an account that has that name', () => {
    expect(read('/odd-secondary/con')).toMatchObject({ account: 'odd-secondary', secondary: false });
  });
});

describe('the refusal of an unknown account', () => {
  it('says what was tried', () => {
    const tried = (url: string, host: string) => unknownAccount(read(url, host), host).message;
    expect(tried('/nobody/con', '127.0.0.1:1')).toContain('the first segment of the path, "nobody"');
    expect(tried('/nobody/con', '127.0.0.1:1')).toContain('"nobody", is not an account of this server');
    expect(tried('/nobody/con', '127.0.0.1:1')).not.toContain('label');
    expect(tried('/nobody/con', 'noone.blob.localhost')).toContain('the first label of the host, "noone"');
    expect(tried('/nobody/con', 'noone.blob.localhost')).toContain('"nobody"');
  });
});
