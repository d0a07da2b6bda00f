import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runSliced, type SlicedWork } from '../../base/time-slices.ts';
import { StorageError } from '../../services/common/errors.ts';
import type { Request } from '../operation.ts';
import { compileRouter } from '../router.ts';
import { type BatchRequest, partRequest, readBlobBatch } from './batch-request.ts';
import { blobOperations } from './operations.ts';

const router = compileRouter(blobOperations.filter(({ name }) => name === 'Delete Blob' || name === 'Set Blob Tier'));

const outer = (base: string, container = '', readsHosts = true): Request => ({
  id: '01234567-89ab-4def-8123-456789abcdef',
  method: 'POST',
  rawPath: `${base}/${container}`,
  rawQuery: 'comp=batch',
  account: 'photos',
  secondary: false,
  base,
  secure: false,
  readsHosts,
  container,
  item: '',
  query: { comp: 'batch' },
  headers: { host: base === '' ? 'photos.localhost:10000' : '127.0.0.1:10000', 'if-match': '*' },
  rawHeaders: [],
  version: '2025-07-05',
});

const steps = (text: string, request = outer('/photos')): SlicedWork<readonly BatchRequest[]> =>
  readBlobBatch(Buffer.from(text), 'b', request, router);
const read = (text: string) => runSliced(steps(text), 0) as readonly BatchRequest[];

const lines = (...all: string[]) => all.join('\r\n');
const remove = (at: number, url: string) =>
  lines(
    '--b',
    'Content-Type: application/http',
    `Content-ID: ${at}`,
    '',
    `DELETE ${url} HTTP/1.1`,
    'x-ms-date: now',
    '',
    '',
  );
const text = `${remove(0, '/photos/c/one')}${remove(1, '/c/two?snapshot=s')}--b--`;

describe('A part of a blob batch', () => {
  it.each([
    ['/photos', '/photos/c/dir/b%20b'],
    ['/photos', '/c/dir/b%20b'],
    ['/photos', 'http://127.0.0.1:10000/photos/c/dir/b%20b'],
    ['/photos', 'https://photos.blob.core.windows.net/c/dir/b%20b'],
    ['', '/c/dir/b%20b'],
    ['', 'http://photos.localhost:10000/c/dir/b%20b'],
    ['', 'http://127.0.0.1:10000/photos/c/dir/b%20b'],
  ])('of a batch at "%s" has its address in %s', (base, url) => {
    const request = partRequest({ method: 'DELETE', url, headers: {} }, outer(base), 0);
    expect(request).toMatchObject({ account: 'photos', container: 'c', item: 'dir/b b', shape: '/{container}/{blob}' });
    // What the client has signed.
    expect(request.rawPath).toBe(url.replace(/^https?:\/\/[^/]*/, ''));
  });

  it('has a container with the name of the account, where the host names the account', () => {
    const request = partRequest({ method: 'DELETE', url: '/photos/c/b', headers: {} }, outer(''), 0);
    expect(request).toMatchObject({ container: 'photos', item: 'c/b' });
  });

  it('is not of another account', () => {
    for (const url of ['https://other.blob.core.windows.net/c/b', 'http://127.0.0.1:10000/other/c/b'])
      expect(() => partRequest({ method: 'DELETE', url, headers: {} }, outer('/photos'), 0)).toThrow(StorageError);
    const readsPathsOnly = outer('/photos', '', false);
    const url = 'https://photos.blob.core.windows.net/c/b';
    expect(() => partRequest({ method: 'DELETE', url, headers: {} }, readsPathsOnly, 0)).toThrow(StorageError);
  });

  it('has its own headers and query, none of the batch, and an id by which the batch is found', () => {
    const part = { method: 'DELETE', url: '/c/b?Snapshot=s', headers: { 'x-ms-date': 'now' } };
    const { headers, rawHeaders, query, id, version } = partRequest(part, outer('/photos'), 254);
    expect(headers).toEqual({ 'x-ms-date': 'now', host: '127.0.0.1:10000' });
    expect(rawHeaders).toEqual(['x-ms-date', 'now']);
    expect(query.snapshot).toBe('s');
    expect([id, version]).toEqual(['01234567-89ab-4def-8123-456789ab00ff', '2025-07-05']);
  });
});

describe('The headers of a part', () => {
  it('are those that are sent, whatever their names are', () => {
    const sent = ['__proto__: one', 'Constructor: two', 'toString:three', 'x-ms-meta-a: ä'];
    const [part] = read(`${remove(0, '/c/b').replace('x-ms-date: now', sent.join('\r\n'))}--b--`);
    const { headers, rawHeaders } = part!.request;
    expect(rawHeaders).toEqual(['__proto__', 'one', 'constructor', 'two', 'tostring', 'three', 'x-ms-meta-a', 'ä']);
    expect(['__proto__', 'constructor', 'tostring', 'x-ms-meta-a'].map((name) => headers[name])).toEqual([
      'one',
      'two',
      'three',
      'ä',
    ]);
  });

  it('are none but those that are sent', () => {
    const [part] = read(`${remove(0, '/c/b')}--b--`);
    const { headers } = part!.request;
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty'])
      expect(headers[name]).toBe(undefined);
    expect(Object.keys(headers)).toEqual(['x-ms-date', 'host']);
  });
});

describe('The body of a blob batch', () => {
  it('is read part by part', () => {
    const seen = read(text).map(({ contentId, row, request }) => [contentId, row.name, request.item]);
    expect(seen).toEqual([
      ['0', 'Delete Blob', 'one'],
      ['1', 'Delete Blob', 'two'],
    ]);
  });

  it('fails cleanly, whatever it is', () => {
    const cuts = fc.array(
      fc.tuple(fc.nat(text.length), fc.nat(30), fc.constantFrom('', '\r\n', '--', '--b', ':', '%', '&sig=1', 'PUT ')),
    );
    fc.assert(
      fc.property(cuts, (all) => {
        let changed = text;
        for (const [at, length, instead] of all) changed = changed.slice(0, at) + instead + changed.slice(at + length);
        try {
          for (const { row, request } of read(changed)) {
            expect(row.name).toBe('Delete Blob');
            expect(request.item).not.toBe('');
          }
        } catch (error) {
          expect(error).toBeInstanceOf(StorageError);
          expect((error as StorageError).status).toBe(400);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('has parts that are each read as if they were alone', () => {
    const part = fc.record({
      id: fc.constantFrom('Content-ID: 1', 'content-id: 1', 'X: y'),
      line: fc.constantFrom('DELETE /c/b HTTP/1.1', 'DELETE /photos/c/b?', 'GET /c/b HTTP/1.1', 'DELETE /c HTTP/1.1'),
      headers: fc.constantFrom(
        '',
        'a: b\r\n',
        'If-Match: é\r\nc: d\r\n',
        'Content-Length: 0\r\n',
        'Content-Length: 1\r\n',
      ),
      body: fc.constantFrom('', '\r\n', '\r\n\r\n', '\r\nx'),
    });
    const batchOf = (parts: readonly string[]) => `${parts.map((one) => `--b\r\n${one}\r\n`).join('')}--b--`;
    const outcome = (parts: readonly string[]): unknown[] => {
      try {
        return read(batchOf(parts)).map(({ request: { id: _, ...request } }) => request);
      } catch (error) {
        return [(error as StorageError).code];
      }
    };
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), (made) => {
        const parts = made.map(({ id, line, headers, body }) => `${id}\r\n\r\n${line}\r\n${headers}${body}`);
        const alone = parts.flatMap((one) => outcome([one]));
        expect(outcome(parts)).toEqual(alone.includes('InvalidInput') ? ['InvalidInput'] : alone);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is read in short slices', () => {
    const slices = (body: string) => {
      const work = steps(body);
      let count = 1;
      for (; !work.next().done; count++);
      return count;
    };
    expect(slices(text)).toBe(1);
    const long = Array.from({ length: 250 }, (_, at) => remove(at, `/c/b?x=${'y'.repeat(15_000)}`)).join('');
    expect(slices(`${long}--b--`)).toBeGreaterThan(long.length / (32 << 10));
  });
});
