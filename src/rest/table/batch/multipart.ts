/**
 * Multipart (RFC 2046): the parser of a batch, as lenient as clients need (lines may end with a line feed alone), and its reply.
 * It works on Latin-1 text, one character per byte, which is searched faster than a buffer.
 */

import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { FALSE_BOUNDARIES_MAX, PART_HEADERS_MAX } from '../../../base/input-limits.ts';
import type { SlicedWork } from '../../../base/time-slices.ts';
import { bodyPieces, type Reply } from '../../reply.ts';
import { fail } from '../errors.ts';
import { COMMON_HEADERS } from '../replies.ts';

const SPACE = 0x20;
const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const DASH = 0x2d;
const BOUNDARY_MAX = 200;
const HEAD_BYTES_MAX = 64 * 1024;
const EMPTY_BYTES_MAX = 64 * 1024;
/** Searched in one slice: in text of dashes, each of which may begin a boundary, that takes 1 ms. */
const SEARCH_BYTES = 128 * 1024;

export type PartHeaders = Readonly<Record<string, string>>;

/** Half-open: excludes `to`. */
export interface TextRange {
  readonly from: number;
  readonly to: number;
}

const BOUNDARY = /;\s*boundary\s*=\s*(?:"([^"]+)"|([^\s";,]+))/i;

/** Undefined: the type is not multipart/mixed. */
export function parseBoundary(contentType: string | undefined): string | undefined {
  if (!contentType || contentType.length > HEAD_BYTES_MAX || !/^\s*multipart\/mixed\s*;/i.test(contentType)) {
    return undefined;
  }
  const [, quoted, bare] = BOUNDARY.exec(contentType) ?? [];
  const boundary = quoted ?? bare;
  return boundary === undefined || boundary.length > BOUNDARY_MAX ? undefined : boundary;
}

/** Stops after `partsMax` parts. */
export function* splitParts(
  text: string,
  { from, to }: TextRange,
  boundary: string,
  partsMax: number,
): SlicedWork<TextRange[]> {
  const marker = Buffer.from(`--${boundary}`).toString('latin1');
  const parts: TextRange[] = [];
  let start: number | undefined;
  let falseMatches = 0;
  let at = from;
  for (let searchEnd = from + SEARCH_BYTES; at < to; ) {
    const found = text.slice(at, searchEnd + marker.length - 1).indexOf(marker);
    if (found < 0) {
      at = Math.max(at, searchEnd);
      searchEnd = at + SEARCH_BYTES;
      if (at < to) yield;
      continue;
    }
    at += found;
    const markerEnd = at + marker.length;
    const line = parseDelimiter(text, at, markerEnd, { from, to });
    if (line) {
      if (start !== undefined) parts.push({ from: start, to: Math.max(start, lineEndBefore(text, at)) });
      if (line.isClosing || parts.length === partsMax) return parts;
      start = line.end;
    } else if (++falseMatches > FALSE_BOUNDARIES_MAX) break;
    at = markerEnd;
  }
  // Without its closing boundary the body is truncated.
  throw fail('BatchSyntax');
}

interface Delimiter {
  /** It ends the last part. */
  readonly isClosing: boolean;
  /** The offset of the next line. */
  readonly end: number;
}

/** A line that consists of the marker, two dashes if it is the last one, and spaces. */
function parseDelimiter(
  text: string,
  start: number,
  markerEnd: number,
  { from, to }: TextRange,
): Delimiter | undefined {
  if (markerEnd > to || (start > from && text.charCodeAt(start - 1) !== LINE_FEED)) return undefined;
  const isClosing =
    markerEnd + 2 <= to && text.charCodeAt(markerEnd) === DASH && text.charCodeAt(markerEnd + 1) === DASH;
  let at = isClosing ? markerEnd + 2 : markerEnd;
  while (at < to && isSpace(text.charCodeAt(at))) at++;
  if (at < to && text.charCodeAt(at) !== LINE_FEED) return undefined;
  return { isClosing, end: Math.min(at + 1, to) };
}

function isSpace(unit: number): boolean {
  return unit === SPACE || unit === TAB || unit === CARRIAGE_RETURN;
}

/** The line break before a delimiter belongs to it. */
function lineEndBefore(text: string, at: number): number {
  return text.charCodeAt(at - 2) === CARRIAGE_RETURN ? at - 2 : at - 1;
}

/** Header lines up to and including the empty line. */
export interface Head {
  readonly text: string;
  readonly headers: PartHeaders;
  /** False: it ended with the part. Then text that begins with it can be longer, so it is never reused. */
  readonly endsWithEmptyLine: boolean;
}

const EMPTY_LINE_LAST = /(?:^|\n)\r?\n$/;
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)$/;

/** Names in lower case; the values of a repeated header are joined. `known`: returned if the text begins with it again. */
export function parseHead(text: string, { from, to }: TextRange, known: Head | undefined): Head {
  if (known && startsWithHead(text, { from, to }, known)) return known;
  const headers: Record<string, string> = Object.create(null);
  for (let at = from, lines = 0; ; lines++) {
    const { line, end } = lineAt(text, { from: at, to });
    if (line === '') {
      const all = text.slice(from, end);
      return { text: all, headers, endsWithEmptyLine: EMPTY_LINE_LAST.test(all) };
    }
    const [, name, value = ''] = HEADER.exec(decodeUtf8(line)) ?? [];
    if (name === undefined || end - from > HEAD_BYTES_MAX || lines >= PART_HEADERS_MAX) throw fail('BatchSyntax');
    const key = name.toLowerCase();
    headers[key] = headers[key] === undefined ? value.trim() : `${headers[key]}, ${value.trim()}`;
    at = end;
  }
}

export function startsWithHead(text: string, { from, to }: TextRange, known: Head): boolean {
  const end = from + known.text.length;
  // startsWith takes ten times as long.
  return known.endsWithEmptyLine && end <= to && text.slice(from, end) === known.text;
}

/** The offset after empty lines. If there are more than allowed, one of them is left, and refused as a request line. */
export function skipEmptyLines(text: string, { from, to }: TextRange): number {
  const end = Math.min(to, from + EMPTY_BYTES_MAX);
  let at = from;
  while (at < end && (text.charCodeAt(at) === LINE_FEED || text.charCodeAt(at) === CARRIAGE_RETURN)) at++;
  return at;
}

/** Not decoded, without the line break; '' also after the last line. */
export function lineAt(text: string, { from, to }: TextRange): { readonly line: string; readonly end: number } {
  const found = text.indexOf('\n', from);
  const end = found < 0 || found > to ? to : found;
  if (end - from > HEAD_BYTES_MAX) throw fail('BatchSyntax');
  const stop = end > from && text.charCodeAt(end - 1) === CARRIAGE_RETURN ? end - 1 : end;
  return { line: text.slice(from, stop), end: Math.min(end + 1, to) };
}

/** Lines are UTF-8. The result is a copy: a slice of the text would keep all of it in memory. */
export function decodeUtf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString();
}

export interface PartReply {
  /** Of the part that it answers. */
  readonly requestHeaders: PartHeaders;
  readonly reply: Reply;
}

/** `isChangeSet`: the parts answer changes, not a query. */
export function batchReply(parts: readonly PartReply[], isChangeSet: boolean): Reply {
  const batch = `batchresponse_${randomUUID()}`;
  const inner = isChangeSet ? `changesetresponse_${randomUUID()}` : batch;
  const start = `--${inner}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n`;
  const pieces: Buffer[] = [];
  let text = isChangeSet ? `--${batch}\r\nContent-Type: multipart/mixed; boundary=${inner}\r\n\r\n` : '';
  let previous: PartReply | undefined;
  let head = '';
  for (const part of parts) {
    if (!previous || !haveSameHead(part, previous)) head = headLines(start, part);
    previous = part;
    text += `${head}${otherLines(part.reply)}\r\n`;
    for (const bytes of bodyBuffers(part.reply.body)) {
      if (bytes.length > INLINE_BYTES_MAX) {
        pieces.push(Buffer.from(text), bytes);
        text = '';
      } else text += bytes.toString();
    }
    text += '\r\n';
  }
  if (isChangeSet) text += `--${inner}--\r\n`;
  return {
    status: 202,
    headers: { ...COMMON_HEADERS, 'Content-Type': `multipart/mixed; boundary=${batch}` },
    body: [...pieces, Buffer.from(`${text}--${batch}--\r\n`)],
  };
}

/** A longer body is sent as it is: to decode and encode it again would hold the event loop. */
const INLINE_BYTES_MAX = 4 << 10;

const COMMON_LINES = Object.entries(COMMON_HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
/** These headers come first, in this order. */
const HEAD_NAMES = new Set([...Object.keys(COMMON_HEADERS), 'Preference-Applied']);

/** Whether `headLines` are the same for both. */
function haveSameHead(one: PartReply, other: PartReply): boolean {
  return (
    one.reply.status === other.reply.status &&
    one.requestHeaders['content-id'] === other.requestHeaders['content-id'] &&
    one.reply.headers?.['Preference-Applied'] === other.reply.headers?.['Preference-Applied'] &&
    dataServiceVersion(one.reply) === dataServiceVersion(other.reply)
  );
}

/** `join` gives a flat string: one of `+` would be flattened again for each part. */
function headLines(start: string, { requestHeaders, reply }: PartReply): string {
  const contentId = requestHeaders['content-id'];
  const applied = reply.headers?.['Preference-Applied'];
  return [
    start,
    `HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}\r\n`,
    contentId === undefined ? '' : `Content-ID: ${contentId}\r\n`,
    COMMON_LINES,
    applied === undefined ? '' : `Preference-Applied: ${applied}\r\n`,
    `DataServiceVersion: ${dataServiceVersion(reply)}\r\n`,
  ].join('');
}

function dataServiceVersion({ headers, body }: Reply): string {
  return body !== undefined || headers?.Location !== undefined ? '3.0;' : '1.0;';
}

function otherLines({ headers }: Reply): string {
  let text = '';
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && !HEAD_NAMES.has(name)) text += `${name}: ${value}\r\n`;
  }
  return text;
}

/** Operations that can be parts do not stream their replies. */
function bodyBuffers(body: Reply['body']): readonly Buffer[] {
  return body === undefined ? [] : (bodyPieces(body) as readonly Buffer[]);
}
