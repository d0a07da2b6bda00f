import { describe, expect, it } from 'vitest';
import type { RequestContext } from '../request.ts';
import { commonLogDate, createAccessLog } from './access-log.ts';

function lineOf(url: string, format: 'text' | 'json' = 'text', bytes = 0): string {
  let text = '';
  const log = createAccessLog({ gather: (line) => (text += line) }, format);
  const incoming = { url, method: 'GET', httpVersion: '1.1', socket: { remoteAddress: '::1' } };
  const ctx = { incoming, id: 'the-id', operation: 'Get Blob' } as unknown as RequestContext;
  log.answered(ctx, { status: 404, headers: { 'x-ms-error-code': 'BlobNotFound' } }, 0, bytes);
  return text;
}

describe('The access log', () => {
  it('has the common log format', () => {
    expect(lineOf('/account/container/blob?comp=list', 'text', 12)).toMatch(
      /^::1 - - \[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET \/account\/container\/blob\?comp=list HTTP\/1\.1" 404 12\n$/,
    );
    expect(lineOf('/')).toMatch(/ 404 -\n$/);
  });

  it('gives the date in UTC', () => {
    expect(commonLogDate(Date.UTC(2026, 10, 7, 5, 6, 7))).toBe('07/Nov/2026:05:06:07 +0000');
    expect(commonLogDate(Date.UTC(2026, 0, 31, 23, 59, 59, 999))).toBe('31/Jan/2026:23:59:59 +0000');
  });

  it('has no signatures, and one line for a request whatever its URL has', () => {
    expect(lineOf('/a?sig=secret&se=1')).toContain('"GET /a?sig=...&se=1 HTTP/1.1"');
    expect(lineOf('/a"b\\c\n\u00e9')).toContain('"GET /a\\x22b\\x5cc\\x0a\\xe9 HTTP/1.1"');
  });

  it('leaves out health checks', () => {
    expect(lineOf('/health/ready')).toBe('');
    expect(lineOf('/healthy/ready')).not.toBe('');
  });

  it('is JSON where the log is', () => {
    expect(JSON.parse(lineOf('/a?sig=secret', 'json', 5))).toMatchObject({
      ...{ level: 'info', msg: 'request', requestId: 'the-id', operation: 'Get Blob', from: '::1', method: 'GET' },
      ...{ url: '/a?sig=...', status: 404, code: 'BlobNotFound', bytes: 5, time: expect.stringMatching(/Z$/) },
    });
  });
});
