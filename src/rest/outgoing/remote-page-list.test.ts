import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { createRemoteSources } from './remote-client.ts';
import { pageListUrl } from './remote-page-list.ts';

let answer: (response: ServerResponse) => void = () => {};
const server = createServer((_, response) => answer(response)).listen(0, '127.0.0.1');
await once(server, 'listening');
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const remote = createRemoteSources({ origins: new Set([origin]) });
afterAll(() => server.close());

const list = (body: string | Buffer, status = 200) => {
  answer = (response) => response.writeHead(status, { ETag: '"0x1"' }).end(body);
  return remote.listPages({ url: `${origin}/a`, range: { from: 0, to: 1023 }, since: undefined, limit: 250 });
};
const range = (name: string, start: unknown, end: unknown) =>
  `<${name}><Start>${start}</Start><End>${end}</End></${name}>`;

describe('The page list of another server', () => {
  it('is requested beside the signature', () => {
    const request = { range: { from: 0, to: 1 }, limit: 250 };
    expect(pageListUrl({ ...request, url: 'http://a/b?sig=x%2B', since: undefined })).toBe(
      'http://a/b?sig=x%2B&comp=pagelist&maxresults=250',
    );
    const since = 638_000_000_000_000_000n;
    expect(pageListUrl({ ...request, url: 'http://a/b', since })).toMatch(
      /^http:\/\/a\/b\?comp=pagelist&maxresults=250&prevsnapshot=20\d\d-\d\d-\d\dT\d\d%3A/,
    );
  });

  it('has written and cleared ranges in order, and tells whether others follow', async () => {
    const xml = `<PageList>${range('PageRange', 1024, 2047)}${range('ClearRange', 0, 511)}<NextMarker/></PageList>`;
    expect(await list(xml)).toEqual({
      etag: '0x1',
      isAll: true,
      ranges: [
        { from: 0, to: 512, isWritten: false },
        { from: 1024, to: 2048, isWritten: true },
      ],
    });
    expect((await list(xml.replace('<NextMarker/>', '<NextMarker>x</NextMarker>'))).isAll).toBe(false);
    expect((await list('<PageList></PageList>')).ranges).toEqual([]);
  });

  it.each([
    ['bytes', Buffer.alloc(1000)],
    ['another document', '<EnumerationResults/>'],
    ['a range without an end', `<PageList>${range('PageRange', 0, '')}</PageList>`],
    ['a range that ends before it begins', `<PageList>${range('PageRange', 512, 0)}</PageList>`],
    ['a number that is none', `<PageList>${range('PageRange', 0, '1e400')}</PageList>`],
    ['a marker that leads nowhere', '<PageList><NextMarker>x</NextMarker></PageList>'],
    ['too much', `<PageList>${range('PageRange', 0, 511).repeat(20_000)}</PageList>`],
  ])('is not used if it is %s', async (_, body) => {
    await expect(list(body)).rejects.toMatchObject({ code: 'CannotVerifyCopySource', status: 409 });
  });

  it('is not there if the server refuses it', async () => {
    await expect(list('', 403)).rejects.toMatchObject({ status: 403 });
    await expect(list('x', 206)).rejects.toMatchObject({ status: 409 });
    await expect(list('', 302)).rejects.toMatchObject({ status: 409 });
  });
});
