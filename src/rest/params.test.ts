import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ticksFromUnix } from '../base/time.ts';
import type { XmlElement } from '../base/xml.ts';
import { crc64Base64, md5Base64 } from '../hashing/hasher.ts';
import { StorageError } from '../services/common/errors.ts';
import type { BodyReader, Reader, Request } from './operation.ts';
import * as params from './params.ts';
import { parseQuery } from './request.ts';

function request(headers: Record<string, string> = {}, rawQuery = ''): Request {
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    id: 'id',
    method: 'PUT',
    rawPath: '/devstoreaccount1/c/b',
    rawQuery,
    account: 'devstoreaccount1',
    secondary: false,
    base: '/devstoreaccount1',
    readsHosts: true,
    secure: false,
    container: 'c',
    item: 'b',
    query: parseQuery(rawQuery),
    headers: lower,
    rawHeaders: Object.entries(headers).flat(),
    version: '',
  };
}

function refusal(read: () => unknown): StorageError {
  try {
    read();
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

describe('conditions', () => {
  const { read } = params.conditions;

  it('accepts ETags with quotes, without, weak, and in lists with spaces', () => {
    expect(read(request({ 'If-Match': '"0x8D1"' }))).toEqual({ ifMatch: ['0x8D1'] });
    expect(read(request({ 'If-Match': '0x8D1' }))).toEqual({ ifMatch: ['0x8D1'] });
    expect(read(request({ 'If-None-Match': 'W/"0x8D1",  "0x8D2" , 0x8D3' }))).toEqual({
      ifNoneMatch: ['0x8D1', '0x8D2', '0x8D3'],
    });
    expect(read(request({ 'If-None-Match': ' * ' }))).toEqual({ ifNoneMatch: '*' });
  });

  it('accepts dates and ignores malformed ones', () => {
    const date = 'Wed, 01 May 2019 10:20:30 GMT';
    const instant = ticksFromUnix(Date.parse(date));
    expect(read(request({ 'If-Modified-Since': date }))).toEqual({ ifModifiedSince: instant });
    expect(read(request({ 'If-Unmodified-Since': 'Wednesday, 01-May-19 10:20:30 GMT' }))).toEqual({
      ifUnmodifiedSince: instant,
    });
    expect(read(request({ 'If-Modified-Since': 'null', 'If-Unmodified-Since': '2019' }))).toEqual({});
    expect(read(request())).toEqual({});
  });

  it('of containers are the dates only', () => {
    expect(params.dateConditions.read(request({ 'If-Match': '"0x8D1"' }))).toEqual({});
  });
});

describe('metadata', () => {
  it('keeps the case of the names, and a name that was sent twice', () => {
    const sent = { 'X-MS-Meta-Colour': ' red ', 'x-ms-meta-SIZE': '1', 'x-ms-metal': 'no', 'x-ms-meta-': 'empty' };
    const twice = request(sent);
    const rawHeaders = [...twice.rawHeaders, 'x-ms-meta-colour', 'blue'];
    expect(params.metadata.read({ ...twice, rawHeaders })).toEqual([
      ['Colour', 'red'],
      ['SIZE', '1'],
      ['', 'empty'],
      ['colour', 'blue'],
    ]);
  });
});

describe('ranges', () => {
  it('come from x-ms-range before Range', () => {
    expect(params.range.read(request({ Range: 'bytes=0-1' }))).toBe('bytes=0-1');
    expect(params.range.read(request({ Range: 'bytes=0-1', 'x-ms-range': 'bytes=2-3' }))).toBe('bytes=2-3');
  });
});

describe('integers', () => {
  const maxResults = params.integerQuery('maxresults', { min: 1, max: 5000 });

  it('are refused out of their bounds with the bounds', () => {
    expect(maxResults.read(request({}, 'maxresults=5000'))).toBe(5000);
    expect(maxResults.read(request())).toBeUndefined();
    expect(refusal(() => maxResults.read(request({}, 'maxresults=0')))).toMatchObject({
      code: 'OutOfRangeQueryParameterValue',
      details: {
        QueryParameterName: 'maxresults',
        QueryParameterValue: '0',
        MinimumAllowed: '1',
        MaximumAllowed: '5000',
      },
    });
  });

  it('are refused when they are not integers', () => {
    for (const text of ['abc', '1.5', '1e3', '0x10', '9'.repeat(21)]) {
      expect(refusal(() => maxResults.read(request({}, `maxresults=${text}`))).code).toBe('InvalidQueryParameterValue');
      const header = params.integerHeader('x-ms-lease-duration', { min: -1, max: 60 });
      expect(refusal(() => header.read(request({ 'x-ms-lease-duration': text })))).toMatchObject({
        code: 'InvalidHeaderValue',
        details: { HeaderName: 'x-ms-lease-duration', HeaderValue: text },
      });
    }
  });
});

describe('a range', () => {
  it('is refused when two were sent, which Node joins', () => {
    const rawHeaders = ['Range', 'bytes=0-0', 'range', 'bytes=1-1'];
    const twice = { ...request({ Range: 'bytes=0-0, bytes=1-1' }), rawHeaders };
    expect(refusal(() => params.range.read(twice))).toMatchObject({
      code: 'InvalidHeaderValue',
      details: { HeaderName: 'range' },
    });
    expect(params.range.read(request({ Range: 'bytes=0-0' }))).toBe('bytes=0-0');
  });
});

describe('choices', () => {
  const include = params.listQuery('include', ['metadata'], ['snapshots']);

  it('are known, not implemented yet, or unknown', () => {
    expect(include.read(request({}, 'include=Metadata'))).toEqual(['metadata']);
    expect(include.read(request({}, 'include='))).toEqual([]);
    expect(refusal(() => include.read(request({}, 'include=metadata,snapshots')))).toMatchObject({ status: 501 });
    expect(refusal(() => include.read(request({}, 'include=bogus'))).code).toBe('InvalidQueryParameterValue');
  });
});

describe('content headers', () => {
  it('of HTTP count on Put Blob, and not on Set Blob Properties', () => {
    const sent = request({
      'Content-Type': 'text/plain',
      'Cache-Control': 'no-cache',
      'x-ms-blob-cache-control': 'max-age=1',
    });
    expect(params.contentHeaders.read(sent)).toMatchObject({ contentType: 'text/plain', cacheControl: 'max-age=1' });
    expect(params.blobContentHeaders.read(sent).contentType).toBeUndefined();
  });

  it('accept any Base64 as an MD5', () => {
    const read = (md5: string) => params.blobContentHeaders.read(request({ 'x-ms-blob-content-md5': md5 })).contentMd5;
    for (const md5 of ['AAAA', 'AAAAAAAAAAA=', 'sQqNsWTgdUEFt6mb5y4/5Q==']) expect(read(md5)).toBe(md5);
    expect(read('')).toBeUndefined();
    for (const md5 of ['short', 'AAA', 'AA=A', '????', 'AAAA====', '='])
      expect(refusal(() => read(md5))).toMatchObject({
        code: 'InvalidHeaderValue',
        details: { HeaderName: 'x-ms-blob-content-md5', HeaderValue: md5 },
      });
  });
});

describe('a body of content', () => {
  const body = params.contentBody({ bytesMax: 10, md5Headers: ['x-ms-blob-content-md5', 'content-md5'] });
  const bytes = Buffer.from('abc');
  const md5 = md5Base64(bytes);

  it('is read whole, with its expected checksums', async () => {
    const crc64 = crc64Base64(bytes);
    const sent = body.read(bytes, request({ 'x-ms-blob-content-md5': md5, 'x-ms-content-crc64': crc64 }));
    expect(sent).toMatchObject({ length: 3, expected: { md5, crc64 }, whole: bytes });
    expect(await buffer(sent.bytes())).toEqual(bytes);
    expect(body.read(bytes, request()).expected).toEqual({});
    expect(await buffer(body.read(Buffer.alloc(0), request()).bytes())).toEqual(Buffer.alloc(0));
  });

  it('is a stream with its declared length', () => {
    const stream = (async function* () {})();
    const sent = body.stream!(stream, request({ 'Content-Length': '99999', 'x-ms-blob-content-md5': md5 }));
    expect(sent).toMatchObject({ length: 99_999, expected: { md5 } });
    expect(sent.whole).toBeUndefined();
    expect(sent.bytes()).toBe(stream);
  });

  it('normalizes the Base64 of checksums', () => {
    const other = `${md5.slice(0, 21)}${String.fromCharCode(md5.charCodeAt(21) + 1)}==`;
    expect(Buffer.from(other, 'base64')).toEqual(Buffer.from(md5, 'base64'));
    expect(body.read(bytes, request({ 'Content-MD5': other })).expected.md5).toBe(md5);
  });

  it('is refused before it is read when a checksum is malformed', () => {
    for (const name of ['Content-MD5', 'x-ms-blob-content-md5']) {
      expect(refusal(() => body.check(request({ [name]: 'nonsense' }))).code).toBe('InvalidMd5');
      expect(refusal(() => body.check(request({ [name]: 'no Base64' }))).code).toBe('InvalidHeaderValue');
    }
    expect(refusal(() => body.check(request({ 'x-ms-content-crc64': 'nonsense' }))).code).toBe('InvalidHeaderValue');
  });

  it('is verified against the first of two MD5s, and both must be well-formed', () => {
    const other = md5Base64(Buffer.from('abd'));
    const expected = (own: string, sent: string) =>
      body.read(bytes, request({ 'Content-MD5': sent, 'x-ms-blob-content-md5': own })).expected.md5;
    expect(expected(md5, other)).toBe(md5);
    expect(expected(other, md5)).toBe(other);
    expect(refusal(() => expected(md5, 'AAAA')).code).toBe('InvalidMd5');
  });
});

describe('a body of XML', () => {
  /** All are so short that parsing does not yield to the event loop. */
  const body = params.xmlBody('Wanted') as BodyReader<XmlElement | undefined>;

  it('has the expected root element, or is empty', () => {
    expect(body.read(Buffer.from('<Wanted><A>1</A></Wanted>'), request())?.children[0]?.text).toBe('1');
    expect(body.read(Buffer.alloc(0), request())).toBeUndefined();
  });

  it('is refused when a checksum differs', () => {
    const document = Buffer.from('<Wanted/>');
    const other = Buffer.from('<Wanted />');
    const codeOf = (headers: Record<string, string>) => refusal(() => body.read(document, request(headers))).code;
    const right = [{ 'Content-MD5': md5Base64(document) }, { 'x-ms-content-crc64': crc64Base64(document) }] as const;
    for (const headers of right) expect(body.read(document, request(headers))?.name).toBe('Wanted');
    expect(codeOf({ 'Content-MD5': md5Base64(other) })).toBe('Md5Mismatch');
    expect(codeOf({ 'Content-MD5': '', 'x-ms-content-crc64': crc64Base64(other) })).toBe('Crc64Mismatch');
  });

  it('has at most one checksum', () => {
    const both = { 'Content-MD5': md5Base64(Buffer.from('')), 'x-ms-content-crc64': crc64Base64(Buffer.from('')) };
    expect(refusal(() => body.check(request(both)))).toMatchObject({ code: 'BothCrc64AndMd5HeaderPresent' });
  });

  it('is refused with the position of the error', () => {
    expect(refusal(() => body.read(Buffer.from('\n<Other/>'), request()))).toMatchObject({
      code: 'InvalidXmlDocument',
      details: { LineNumber: '2', LinePosition: '2' },
    });
    expect(refusal(() => body.read(Buffer.from('<Wanted>'), request())).details).toHaveProperty('Reason');
  });
});

describe('any reader', () => {
  const heads: Reader<unknown>[] = [
    params.conditions,
    params.metadata,
    params.range,
    params.contentHeaders,
    params.integerHeader('range'),
    params.booleanHeader('if-match'),
    params.requiredHeader('x-ms-copy-source'),
    params.integerQuery('a', { max: 9 }),
    params.listQuery('a', ['x']),
  ];
  const bodies: BodyReader<unknown>[] = [params.contentBody({ bytesMax: 99 }), params.xmlBody('a')];
  const name = fc.constantFrom(
    'if-match',
    'if-modified-since',
    'range',
    'x-ms-meta-a',
    'x-ms-blob-content-md5',
    'content-md5',
  );
  const value = fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)) });

  it('returns a value or a StorageError for anything that HTTP can carry', () => {
    fc.assert(
      fc.property(fc.dictionary(name, value), value, fc.uint8Array(), (headers, text, bytes) => {
        const sent = request(headers, `a=${encodeURIComponent(text)}`);
        for (const read of [
          ...heads.map((head) => () => head.read(sent)),
          ...bodies.map((body) => () => body.read(Buffer.from(bytes), sent)),
        ]) {
          try {
            read();
          } catch (error) {
            expect(error).toBeInstanceOf(StorageError);
            expect((error as StorageError).status).toBe(400);
          }
        }
      }),
    );
  });
});
