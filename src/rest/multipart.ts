/**
 * Multipart (RFC 2046): the parser of a batch of HTTP requests, as lenient as clients need (lines may end with a line feed alone).
 * It works on Latin-1 text, one character per byte, which is searched faster than a buffer.
 */
import { FALSE_BOUNDARIES_MAX, PART_HEADERS_MAX } from '../base/input-limits.ts';
import type { SlicedWork } from '../base/time-slices.ts';
import type { BodyReader } from './operation.ts';
import { bodyTooLarge } from './params.ts';

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

/** The body is not a batch of requests. Each service has its own error for that. */
export class MalformedMultipart extends Error {}

const BATCH_BYTES_MAX = 4 << 20;

/** It is parsed when the operation runs, in slices: until then only the bytes are held. */
export const batchBody: BodyReader<Buffer> = {
  kind: 'body',
  bytesMax: BATCH_BYTES_MAX,
  tooLarge: () => bodyTooLarge(BATCH_BYTES_MAX),
  check: () => {},
  read: (bytes) => bytes,
};

export type PartHeaders = Readonly<Record<string, string>>;

/** As `Object.create(null)`, which V8 makes a hash table: that takes ten times as much memory as the few headers of a part, and as long to copy. */
export class HeaderRecord {
  [name: string]: string;
}
Object.setPrototypeOf(HeaderRecord.prototype, null);
Reflect.deleteProperty(HeaderRecord.prototype, 'constructor');

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
  throw new MalformedMultipart();
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
interface Head {
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
  const all = text.slice(from, headEnd(text, { from, to }));
  const headers = new HeaderRecord();
  // Decoded at once: a buffer for each line takes longer than all else here.
  const lines = decodeUtf8(all).split('\n', PART_HEADERS_MAX + 2);
  for (const [at, each] of lines.entries()) {
    const line = each.endsWith('\r') ? each.slice(0, -1) : each;
    if (line === '') break;
    const [, name, value = ''] = HEADER.exec(line) ?? [];
    if (name === undefined || at >= PART_HEADERS_MAX) throw new MalformedMultipart();
    const key = name.toLowerCase();
    headers[key] = headers[key] === undefined ? value.trim() : `${headers[key]}, ${value.trim()}`;
  }
  return { text: all, headers, endsWithEmptyLine: EMPTY_LINE_LAST.test(all) };
}

/** The offset after the first empty line, or the end of the part. */
function headEnd(text: string, { from, to }: TextRange): number {
  for (let at = from; ; ) {
    const { line, end } = lineAt(text, { from: at, to });
    if (line === '') return end;
    if (end - from > HEAD_BYTES_MAX) throw new MalformedMultipart();
    at = end;
  }
}

function startsWithHead(text: string, { from, to }: TextRange, known: Head): boolean {
  const end = from + known.text.length;
  // startsWith takes ten times as long.
  return known.endsWithEmptyLine && end <= to && text.slice(from, end) === known.text;
}

/** The offset after empty lines. If there are more than allowed, one of them is left, and refused as a request line. */
function skipEmptyLines(text: string, { from, to }: TextRange): number {
  const end = Math.min(to, from + EMPTY_BYTES_MAX);
  let at = from;
  while (at < end && (text.charCodeAt(at) === LINE_FEED || text.charCodeAt(at) === CARRIAGE_RETURN)) at++;
  return at;
}

/** Not decoded, without the line break; '' also after the last line. */
function lineAt(text: string, { from, to }: TextRange): { readonly line: string; readonly end: number } {
  const found = text.indexOf('\n', from);
  const end = found < 0 || found > to ? to : found;
  if (end - from > HEAD_BYTES_MAX) throw new MalformedMultipart();
  const stop = end > from && text.charCodeAt(end - 1) === CARRIAGE_RETURN ? end - 1 : end;
  return { line: text.slice(from, stop), end: Math.min(end + 1, to) };
}

/** Lines are UTF-8. The result is a copy: a slice of the text would keep all of it in memory. */
function decodeUtf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString();
}

/** An HTTP request within the body. Parts with the same header lines share the `headers` object. */
export interface BatchPart {
  readonly method: string;
  readonly url: string;
  readonly headers: PartHeaders;
  readonly body: Buffer;
  /** Of the part, not of the request in it. */
  readonly contentId: string | undefined;
  /** The length of all lines before the body. */
  readonly headBytes: number;
}

/** After this many bytes of parts the event loop gets its turn. */
const SLICE_BYTES = 256 << 10;

/** The requests in these ranges of the text; empty parts are skipped. */
export function* readParts(bytes: Buffer, text: string, ranges: readonly TextRange[]): SlicedWork<BatchPart[]> {
  // The search for the parts of a long body was a slice.
  if (text.length > SLICE_BYTES) yield;
  const parts: BatchPart[] = [];
  const readPart = createPartReader(bytes, text);
  for (let next = 0; ; ) {
    next = readSlice(parts, readPart, text, ranges, next);
    if (next === ranges.length) return parts;
    yield;
  }
}

/** Outside of the generator, whose loops are slower. Returns the index of the first range that was not read. */
function readSlice(
  parts: BatchPart[],
  readPart: (range: TextRange) => BatchPart,
  text: string,
  ranges: readonly TextRange[],
  from: number,
): number {
  let next = from;
  for (let bytes = 0; next < ranges.length && bytes < SLICE_BYTES; next++) {
    const range = ranges[next]!;
    bytes += range.to - range.from;
    if (skipEmptyLines(text, range) < range.to) parts.push(readPart(range));
  }
  return next;
}

/** Most parts differ only in their bodies and addresses, so lines that are those of the part before are not parsed again. */
export function createPartReader(bytes: Buffer, text: string): (part: TextRange) => BatchPart {
  let outer: Head | undefined;
  let requestLine: RequestLine | undefined;
  let inner: Head | undefined;
  let lastHead: (Head & Pick<BatchPart, 'method' | 'url' | 'contentId'>) | undefined;
  return ({ from, to }) => {
    if (!lastHead || !startsWithHead(text, { from, to }, lastHead)) {
      const outerHead = parseHead(text, { from, to }, outer);
      if (outerHead !== outer) checkType(outerHead.headers);
      outer = outerHead;
      const { line, end } = lineAt(text, { from: skipEmptyLines(text, { from: from + outer.text.length, to }), to });
      if (line !== requestLine?.line) requestLine = parseRequestLine(line, decodeUtf8(line));
      inner = parseHead(text, { from: end, to }, inner);
      lastHead = {
        text: text.slice(from, end + inner.text.length),
        headers: inner.headers,
        endsWithEmptyLine: inner.endsWithEmptyLine,
        method: requestLine.method,
        url: requestLine.url,
        contentId: outer.headers['content-id'],
      };
    }
    const { method, url, headers, contentId } = lastHead;
    const headBytes = lastHead.text.length;
    return { method, url, headers, body: bytes.subarray(from + headBytes, to), contentId, headBytes };
  };
}

function checkType({ 'content-type': type }: PartHeaders): void {
  if (type !== undefined && !/^application\/http\b/i.test(type)) throw new MalformedMultipart();
}

interface RequestLine {
  /** Latin-1, one character per byte. */
  readonly line: string;
  readonly method: string;
  readonly url: string;
}

const URL_BYTES_MAX = 32 * 1024;
const METHOD = /^[A-Za-z]+ /;
const PROTOCOL = / HTTP\/\d(?:\.\d)?$/;

function parseRequestLine(line: string, text: string): RequestLine {
  if (text.length > URL_BYTES_MAX) throw new MalformedMultipart();
  const [method] = METHOD.exec(text) ?? [];
  const url = text
    .slice(method?.length ?? 0)
    .trimEnd()
    .replace(PROTOCOL, '')
    .trim();
  if (method === undefined || url === '') throw new MalformedMultipart();
  return { line, method: method.trimEnd().toUpperCase(), url };
}
