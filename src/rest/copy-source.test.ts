import { describe, expect, it } from 'vitest';
import { copySource, parseCopySource } from './copy-source.ts';
import type { Request } from './operation.ts';

const PATH = { host: 'localhost:10000', base: '/mine' };
const HOST = { host: 'mine.blob.localhost:10000', base: '' };

function requestFrom({ host, base }: typeof PATH, source: string, readsHosts = true): Request {
  const own = { id: 'id', account: 'mine', secondary: false, secure: false, version: '2021-06-08' };
  const headers = { host, 'x-ms-copy-source': source };
  return {
    ...{ ...own, base, readsHosts, headers, method: 'PUT', rawPath: '/', rawQuery: '', container: 'c', item: 'to' },
    ...{ query: {}, rawHeaders: [] },
  };
}

const NAMES = {
  service: 'blob' as const,
  serviceAt: (port: string) => (port === '10003' ? ('file' as const) : undefined),
  isAccount: (name: string) => name === 'mine' || name === 'theirs',
  hostNames: ['nas', '10.0.0.5'],
  copyOrigins: new Set(['https://named.example', 'https://theirs.blob.core.windows.net']),
};
const parse = (request: Request) => parseCopySource(request, NAMES);

describe('A copy source', () => {
  it.each([
    [PATH, 'http://localhost:10000/mine/c/b'],
    [PATH, 'http://127.0.0.1:10000/mine/c/b'],
    [PATH, 'http://mine.blob.localhost:10000/c/b'],
    [PATH, 'https://mine.blob.core.windows.net/c/b'],
    [HOST, 'http://mine.blob.localhost:10000/c/b'],
    [HOST, 'http://localhost:10000/mine/c/b'],
    [HOST, 'http://[::1]:10000/mine/c/b'],
    [HOST, 'https://mine.blob.core.windows.net/c/b'],
    [{ host: 'mine.example:10000', base: '/mine' }, 'http://mine.example:10000/mine/c/b'],
    [PATH, 'http://nas:10000/mine/c/b'],
    [PATH, 'http://10.0.0.5:10000/mine/c/b'],
  ])('of a request to %j is this server at %s', (caller, source) => {
    expect(parse(requestFrom(caller, source))).toMatchObject({ account: 'mine', container: 'c', item: 'b' });
  });

  it.each([
    [PATH, 'http://localhost:10001/mine/c/b'],
    [PATH, 'https://other.blob.core.windows.net/c/b'],
    [HOST, 'http://elsewhere:10000/mine/c/b'],
    [PATH, 'http://nas:10001/mine/c/b'],
    [PATH, 'http://nas/mine/c/b'],
    [PATH, 'https://named.example:8443/mine/c/b'],
    [PATH, 'http://named.example/mine/c/b'],
  ])('of a request to %j is another server at %s', (caller, source) => {
    expect(() => parse(requestFrom(caller, source))).toThrow('--copy-from');
  });

  it.each(['http://localhost:10000/theirs/c/b', 'http://theirs.blob.localhost:10000/c/b'])(
    'is in another account at %s',
    (source) => {
      expect(parse(requestFrom(PATH, source))).toMatchObject({ account: 'theirs', container: 'c', item: 'b' });
    },
  );

  it.each([
    ['http://localhost:10003/mine/s/d/f', 'file'],
    ['http://mine.file.localhost:10003/s/d/f', 'file'],
    ['https://mine.file.core.windows.net/s/d/f', 'file'],
    ['http://nas:10003/mine/s/d/f', 'file'],
    ['https://mine.blob.core.windows.net/s/d/f', 'blob'],
  ])('is of the service that its port or its host names at %s', (source, service) => {
    const found = { account: 'mine', service, container: 's', item: 'd/f' };
    expect(parse(requestFrom(PATH, source))).toMatchObject(found);
    expect(parse(requestFrom(HOST, source))).toMatchObject(found);
  });

  it('has no account in its host where only the path names accounts', () => {
    expect(() => parse(requestFrom(PATH, 'https://mine.blob.core.windows.net/c/b', false))).toThrow('--copy-from');
    expect(parse(requestFrom(PATH, 'http://127.0.0.1:10000/mine/c/b', false))).toMatchObject({ item: 'b' });
  });

  it.each([
    'https://named.example/any/path?a=b',
    'https://named.example:443/x',
    'HTTPS://NAMED.example/x',
    // Named as another server, although its first label is an account.
    'https://theirs.blob.core.windows.net/c/b',
  ])('is on another server that is named at %s', (source) => {
    expect(parse(requestFrom(PATH, source))).toEqual({ url: source, isRemote: true });
  });

  it.each([
    ['', ''],
    ['?a=b', '?a=b'],
    ['?sv=1&sig=abc', ''],
    ['?X-Amz-Signature=abc&a=b', ''],
    ['?a=sig', '?a=sig'],
  ])('with the query %s is shown with %s', (query, shown) => {
    const source = `https://named.example/x${query}`;
    const request = requestFrom(PATH, source);
    const read = copySource('as owner').read({ ...request, copySource: parse(request) });
    expect(read).toMatchObject({ url: `https://named.example/x${shown}`, remote: { url: source } });
  });

  it.each(['http://user@localhost:10000/mine/c/b', 'https://named.example@evil.example/x'])(
    'has no credentials in its host: %s',
    (source) => {
      expect(() => parse(requestFrom(PATH, source))).toThrow('HTTP headers');
    },
  );
});
