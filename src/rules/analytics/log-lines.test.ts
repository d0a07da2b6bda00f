import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anAnswered } from '../../../test/support/access-record.ts';
import { ticksFromUnix } from '../../base/time.ts';
import { formatLogLine } from './log-lines.ts';

const fieldsOf = (line: string): string[] => [...`${line};`.matchAll(/("[^"]*"|[^;"]*);/g)].map(([, field]) => field!);

const marks = fc.constantFrom(';', '"', '&', '<', '\r', '\n', '\u2028');
const anyText = fc.array(fc.oneof(marks, fc.string({ unit: 'binary' }))).map((parts) => parts.join(''));

describe('A line of the log', () => {
  it('has the thirty fields of format 1.0', () => {
    const started = ticksFromUnix(Date.UTC(2026, 10, 16, 9, 5, 7)) + 1_234_567n;
    const line = formatLogLine(anAnswered({ started, milliseconds: 27.6, serverMilliseconds: 20.2 }), '1.0');
    expect(fieldsOf(line)).toEqual([
      ...['1.0', '2026-11-16T09:05:07.1234567Z', 'PutBlob', 'Success', '201', '28', '20'],
      ...['authenticated', 'me', 'me', 'blob', '"http://me.example/c/b?timeout=30"', '"/me/c/b"', 'the-id', '0'],
      ...['10.0.0.1:4362', '2025-07-05', '438', '100', '', '0', '100', '"sent=="', '"made=="', '"&quot;0x8D&quot;"'],
      ...['Monday, 16-Nov-26 09:05:07 GMT', '"If-Match=*;If-None-Match=*"', '"agent"', '', '"mine"'],
    ]);
  });

  it('has eight more in format 2.0, which are empty', () => {
    const line = formatLogLine(anAnswered({}), '2.0');
    expect(fieldsOf(line)).toHaveLength(38);
    expect(fieldsOf(line).slice(30)).toEqual(Array(8).fill(''));
  });

  it('has the kind of credentials, and the account only for its key or a token', () => {
    const fieldsFor = (by: 'key' | 'token' | 'SAS' | 'anonymous') => {
      const fields = fieldsOf(formatLogLine(anAnswered({ by }), '1.0'));
      return [fields[3], fields[7], fields[8]];
    };
    expect(fieldsFor('key')).toEqual(['Success', 'authenticated', 'me']);
    expect(fieldsFor('token')).toEqual(['OAuthSuccess', 'bearer', 'me']);
    expect(fieldsFor('SAS')).toEqual(['SASSuccess', 'sas', '']);
    expect(fieldsFor('anonymous')).toEqual(['AnonymousSuccess', 'anonymous', '']);
  });

  it('has Unknown as the status of an answer that no client received', () => {
    const fields = fieldsOf(formatLogLine(anAnswered({ status: undefined, operation: undefined }), '1.0'));
    expect(fields.slice(2, 5)).toEqual(['Unknown', 'NetworkError', 'Unknown']);
  });

  it('is one line of as many fields, whatever a client sent', () => {
    fc.assert(
      fc.property(anyText, fc.constantFrom('1.0', '2.0'), (text, version) => {
        const own = { url: text, objectKey: text, etag: text, userAgent: text, referrer: text, clientRequestId: text };
        const headers = { version: text, contentLength: text, sentMd5: text, lastModified: text, conditions: [text] };
        const line = formatLogLine(anAnswered({ ...own, ...headers }), version);
        expect(line).not.toMatch(/[\r\n]/);
        expect(fieldsOf(line)).toHaveLength(version === '1.0' ? 30 : 38);
      }),
    );
  });
});
