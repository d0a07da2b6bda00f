/** A request as a line of a Storage Analytics log, in format 1.0 or 2.0. */
import { formatIso7, parseHttpDate, unixFromTicks } from '../../base/time.ts';
import type { AccessRecord } from './access-record.ts';
import { statusText } from './outcomes.ts';

/** Format 2.0 ends with the claims of a token, which this server does not read. */
const EMPTY_TOKEN_FIELDS = ';'.repeat(8);

const AUTHENTICATION = { key: 'authenticated', token: 'bearer', SAS: 'sas', anonymous: 'anonymous' } as const;

/** Without the end of the line. */
export function formatLogLine(request: AccessRecord, version: string): string {
  const fields = [
    version,
    formatIso7(request.started),
    request.operation ?? 'Unknown',
    statusText(request),
    request.status ?? 'Unknown',
    Math.round(request.milliseconds),
    Math.round(request.serverMilliseconds),
    AUTHENTICATION[request.by],
    request.by === 'key' || request.by === 'token' ? request.account : '',
    request.account,
    request.service,
    quoteField(request.url),
    quoteField(request.objectKey),
    request.id,
    0,
    request.from,
    plainField(request.version),
    request.headerBytes,
    request.bytesIn,
    // The length of the response headers is not known here.
    '',
    request.bytesOut,
    plainField(request.contentLength),
    quoteField(request.sentMd5),
    quoteField(request.md5),
    quoteField(request.etag),
    formatRfc850(request.lastModified),
    quoteField(request.conditions.join(';')),
    quoteField(request.userAgent),
    quoteField(request.referrer),
    quoteField(request.clientRequestId),
  ];
  return `${fields.join(';')}${version === '2.0' ? EMPTY_TOKEN_FIELDS : ''}`;
}

const ENCODED: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text of a client must not end the field or the line. */
function quoteField(text: string | undefined): string {
  if (text === undefined || text === '') return '';
  return `"${text.replace(/[&<>"]/g, (character) => ENCODED[character]!).replace(CONTROLS, ' ')}"`;
}

/** For fields without quotes. */
function plainField(text: string | undefined): string {
  return text === undefined ? '' : text.replace(/[;"]/g, '').replace(CONTROLS, ' ');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they would end a line
const CONTROLS = /[\x00-\x1f\x7f\u2028\u2029]/g;

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** Thursday, 19-Jun-14 22:58:10 GMT */
function formatRfc850(httpDate: string | undefined): string {
  const ticks = httpDate === undefined ? undefined : parseHttpDate(httpDate);
  if (ticks === undefined) return '';
  const date = new Date(unixFromTicks(ticks));
  const [, day, month, year, time] = date.toUTCString().split(' ');
  return `${DAYS[date.getUTCDay()]}, ${day}-${month}-${year!.slice(-2)} ${time} GMT`;
}
