/** Bodies of several parts (RFC 2046), as loosely as clients write them: lines may end with a line feed alone. */
import { fail } from './errors.ts';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const DASH = 0x2d;
const BOUNDARY_MAX = 200;
const HEAD_BYTES_MAX = 64 * 1024;

export type Headers = Readonly<Record<string, string>>;

/** A beginning of lines, and what stands behind the empty one. */
export interface Headed {
  readonly headers: Headers;
  readonly body: Buffer;
}

const BOUNDARY = /;\s*boundary\s*=\s*(?:"([^"]+)"|([^\s";,]+))/i;

/** Undefined: it is not a body of several parts. */
export function boundaryOf(contentType: string | undefined): string | undefined {
  if (!contentType || contentType.length > HEAD_BYTES_MAX || !/^\s*multipart\/mixed\s*;/i.test(contentType)) {
    return undefined;
  }
  const [, quoted, bare] = BOUNDARY.exec(contentType) ?? [];
  const boundary = quoted ?? bare;
  return boundary === undefined || boundary.length > BOUNDARY_MAX ? undefined : boundary;
}

/** Those behind the last one that is wanted are not looked at. */
export function partsOf(bytes: Buffer, boundary: string, partsMax: number): Buffer[] {
  const marker = Buffer.from(`--${boundary}`);
  const parts: Buffer[] = [];
  let start: number | undefined;
  for (let at = bytes.indexOf(marker); at >= 0; at = bytes.indexOf(marker, at + marker.length)) {
    const line = delimiterAt(bytes, at, at + marker.length);
    if (line === undefined) continue;
    if (start !== undefined) parts.push(bytes.subarray(start, Math.max(start, lineEndBefore(bytes, at))));
    if (line.closes || parts.length === partsMax) return parts;
    start = line.end;
  }
  // What is cut off must not be taken for all.
  throw fail('BatchSyntax');
}

interface Delimiter {
  /** No part follows. */
  readonly closes: boolean;
  /** Where the next line begins. */
  readonly end: number;
}

/** A line that consists of the marker, two dashes perhaps, and spaces. */
function delimiterAt(bytes: Buffer, from: number, to: number): Delimiter | undefined {
  if (from > 0 && bytes[from - 1] !== LINE_FEED) return undefined;
  const closes = bytes[to] === DASH && bytes[to + 1] === DASH;
  let at = closes ? to + 2 : to;
  while (at < bytes.length && isSpace(bytes[at]!)) at++;
  if (at < bytes.length && bytes[at] !== LINE_FEED) return undefined;
  return { closes, end: Math.min(at + 1, bytes.length) };
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === CARRIAGE_RETURN;
}

/** The line break in front of a delimiter belongs to it. */
function lineEndBefore(bytes: Buffer, at: number): number {
  if (at === 0) return 0;
  return bytes[at - 2] === CARRIAGE_RETURN ? at - 2 : at - 1;
}

const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)$/;

/** Names in lower case; of a repeated one all values. What ends without an empty line has no body. */
export function headedOf(bytes: Buffer): Headed {
  const headers: Record<string, string> = Object.create(null);
  for (let at = 0; ; ) {
    const { text, end } = lineAt(bytes, at);
    if (text === '') return { headers, body: bytes.subarray(end) };
    const [, name, value = ''] = HEADER.exec(text) ?? [];
    if (name === undefined || end > HEAD_BYTES_MAX) throw fail('BatchSyntax');
    const key = name.toLowerCase();
    headers[key] = headers[key] === undefined ? value.trim() : `${headers[key]}, ${value.trim()}`;
    at = end;
  }
}

/** Behind empty lines. */
export function firstTextIn(bytes: Buffer): number {
  let at = 0;
  while (bytes[at] === LINE_FEED || bytes[at] === CARRIAGE_RETURN) at++;
  return at;
}

/** `text` without its end; '' also behind the last line. */
export function lineAt(bytes: Buffer, at: number): { readonly text: string; readonly end: number } {
  const found = bytes.indexOf(LINE_FEED, at);
  const end = found < 0 ? bytes.length : found;
  if (end - at > HEAD_BYTES_MAX) throw fail('BatchSyntax');
  const stop = end > at && bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end;
  return { text: bytes.toString('utf8', at, stop), end: Math.min(end + 1, bytes.length) };
}
