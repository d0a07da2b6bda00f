import { formatRfc1123, ticksFromUnix } from '../../src/base/time.ts';
import type { AccessRecord } from '../../src/rules/analytics/access-record.ts';

export const MONDAY = ticksFromUnix(Date.UTC(2026, 10, 16, 9, 5, 7));

/** The record of a successful Put Blob, with these fields changed. */
export function anAnswered(parts: Partial<AccessRecord>): AccessRecord {
  return {
    account: 'me',
    service: 'blob',
    operation: 'PutBlob',
    kind: 'write',
    by: 'key',
    status: 201,
    code: undefined,
    version: '2025-07-05',
    started: MONDAY,
    milliseconds: 10,
    serverMilliseconds: 5,
    id: 'the-id',
    url: 'http://me.example/c/b?timeout=30',
    objectKey: '/me/c/b',
    from: '10.0.0.1:4362',
    headerBytes: 438,
    bytesIn: 100,
    bytesOut: 0,
    contentLength: '100',
    sentMd5: 'sent==',
    md5: 'made==',
    etag: '"0x8D"',
    lastModified: formatRfc1123(MONDAY),
    conditions: ['If-Match=*', 'If-None-Match=*'],
    userAgent: 'agent',
    referrer: undefined,
    clientRequestId: 'mine',
    ...parts,
  };
}
