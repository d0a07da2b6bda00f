/** Readers that operation rows share: each parses and validates a part of the request. */

import { parseHttpDate } from '../base/time.ts';
import { runSliced, type SlicedWork } from '../base/time-slices.ts';
import { parseXml, type XmlElement, XmlError } from '../base/xml.ts';
import { crc64Base64, md5Base64 } from '../hashing/hasher.ts';
import type { Conditions, ETags } from '../rules/conditions.ts';
import { commonErrors, errorFactory, type StorageError } from '../services/common/errors.ts';
import { checkHashes, type Hashes, type SentContent, WHOLE_BYTES_MAX } from '../services/common/upload.ts';
import { type BodyReader, notImplemented, type Reader, type Request } from './operation.ts';

const fail = errorFactory(commonErrors);

/** 0: the container; 1: the item in it. */
export function pathPart(at: 0 | 1): Reader<string> {
  return reader(at === 0 ? (request) => request.container : (request) => request.item);
}

export const account: Reader<string> = reader((request) => request.account);

export function header(name: string): Reader<string | undefined> {
  const key = name.toLowerCase();
  return reader((request) => headerValue(request, key));
}

export function requiredHeader(name: string): Reader<string> {
  const key = name.toLowerCase();
  return reader((request) => {
    const value = headerValue(request, key);
    if (value === undefined) throw fail('MissingRequiredHeader', { HeaderName: name });
    return value;
  });
}

/** The value of a reader of this header, which must have been sent. */
export const required = <T>(name: string, of: Reader<T | undefined>): Reader<T> =>
  reader((request) => {
    const value = of.read(request);
    if (value === undefined) throw fail('MissingRequiredHeader', { HeaderName: name });
    return value;
  });

/** For operations without a body: append and page blobs are created empty, and what is read from a URL is the content. */
export const noContent: Reader<void> = reader(({ headers }) => {
  const length = headers['content-length'];
  if (length !== undefined && Number(length) !== 0) throw invalidHeader('Content-Length', String(length));
});

export function query(name: string): Reader<string | undefined> {
  const key = name.toLowerCase();
  return reader((request) => request.query[key]);
}

export function requiredQuery(name: string): Reader<string> {
  return reader(({ query }) => {
    const value = query[name];
    if (value === undefined) throw fail('MissingRequiredQueryParameter', { QueryParameterName: name });
    return value;
  });
}

interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

export function integerHeader(name: string, { min = 0, max = Number.MAX_SAFE_INTEGER }: Bounds = {}) {
  const key = name.toLowerCase();
  return reader((request): number | undefined => {
    const text = headerValue(request, key);
    if (text === undefined) return undefined;
    const value = parseInteger(text);
    if (value === undefined || value < min || value > max) throw invalidHeader(name, text);
    return value;
  });
}

export function integerQuery(name: string, { min = 0, max = Number.MAX_SAFE_INTEGER }: Bounds = {}) {
  const key = name.toLowerCase();
  return reader((request): number | undefined => {
    const text = request.query[key];
    if (text === undefined || text === '') return undefined;
    const value = parseInteger(text);
    if (value === undefined) throw invalidQuery(name, text, 'The value is not an integer.');
    if (value < min || value > max) {
      throw fail('OutOfRangeQueryParameterValue', {
        QueryParameterName: name,
        QueryParameterValue: text,
        MinimumAllowed: String(min),
        MaximumAllowed: String(max),
      });
    }
    return value;
  });
}

export function booleanHeader(name: string): Reader<boolean | undefined> {
  const key = name.toLowerCase();
  return reader((request) => {
    const text = headerValue(request, key)?.toLowerCase();
    if (text !== undefined && text !== 'true' && text !== 'false') throw invalidHeader(name, text);
    return text === undefined ? undefined : text === 'true';
  });
}

/**
 * A comma-separated choice, as in include=metadata,snapshots. Values that Azure has and this server does not yet are refused rather
 * than ignored.
 */
export function listQuery<const Value extends string>(
  name: string,
  allowed: readonly Value[],
  notImplementedValues: readonly string[] = [],
): Reader<readonly Value[]> {
  const key = name.toLowerCase();
  return reader((request) => {
    const text = request.query[key];
    if (!text) return [];
    return text.split(',').map((part) => {
      const value = part.trim().toLowerCase();
      const found = allowed.find((one) => one === value);
      if (found !== undefined) return found;
      if (!notImplementedValues.includes(value)) throw invalidQuery(name, text, `Unknown value: ${part}`);
      throw notImplemented(`${name}=${value} is not implemented by this server yet.`, {
        QueryParameterName: name,
        QueryParameterValue: text,
      });
    });
  });
}

const NO_CONDITIONS: Conditions = Object.freeze({});

/** If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since. */
export const conditions: Reader<Conditions> = reader((request) => {
  const { headers } = request;
  if (
    headers['if-match'] === undefined &&
    headers['if-none-match'] === undefined &&
    headers['if-modified-since'] === undefined &&
    headers['if-unmodified-since'] === undefined
  ) {
    return NO_CONDITIONS;
  }
  const ifMatch = parseETags(headerValue(request, 'if-match'));
  const ifNoneMatch = parseETags(headerValue(request, 'if-none-match'));
  return {
    ...(ifMatch !== undefined && { ifMatch }),
    ...(ifNoneMatch !== undefined && { ifNoneMatch }),
    ...parseDateConditions(request),
  };
});

/** For operations that honour no conditions: ignoring one would be worse than refusing it. */
export const rejectConditions: Reader<void> = reader(({ headers }) => {
  rejectHeaders(headers, CONDITION_HEADERS);
});

/** The same of the conditions on the source of a copy. */
export const rejectSourceConditions: Reader<void> = reader(({ headers }) => {
  rejectHeaders(headers, SOURCE_CONDITION_HEADERS);
});

const CONDITION_HEADERS = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'];
const SOURCE_CONDITION_HEADERS = CONDITION_HEADERS.map((name) => `x-ms-source-${name}`);

function rejectHeaders(headers: Request['headers'], names: readonly string[]): void {
  for (const name of names)
    if (headers[name] !== undefined) throw fail('ConditionHeadersNotSupported', { HeaderName: name });
}

/** Containers honour the dates only. */
export const dateConditions: Reader<Conditions> = reader(parseDateConditions);

/** As sent: the services decide whether it is a GUID. */
export const leaseId: Reader<string | undefined> = header('x-ms-lease-id');

/** As sent; x-ms-range takes precedence. */
export const range: Reader<string | undefined> = reader(
  (request) => singleHeader(request, 'x-ms-range') ?? singleHeader(request, 'range'),
);

export type Metadata = readonly (readonly [name: string, value: string])[];
const NO_METADATA: Metadata = Object.freeze([]);

/** x-ms-meta-*: the pairs as sent, with the case of their names; a name sent twice is in the list twice. */
export const metadata: Reader<Metadata> = reader(({ rawHeaders }) => {
  let found: [name: string, value: string][] | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length < 10 || name.slice(0, 10).toLowerCase() !== 'x-ms-meta-') continue;
    found ??= [];
    found.push([name.slice(10), rawHeaders[at + 1]!.trim()]);
  }
  return found ?? NO_METADATA;
});

export interface ContentHeaders {
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly contentLanguage: string | undefined;
  readonly contentDisposition: string | undefined;
  readonly cacheControl: string | undefined;
  /** Base64. */
  readonly contentMd5: string | undefined;
}

/** The x-ms-blob-content-* headers of Set Blob Properties and Put Block List: no bytes are sent that the MD5 could be verified against. */
export const blobContentHeaders: Reader<ContentHeaders> = reader((request) => ({
  contentType: headerValue(request, 'x-ms-blob-content-type'),
  contentEncoding: headerValue(request, 'x-ms-blob-content-encoding'),
  contentLanguage: headerValue(request, 'x-ms-blob-content-language'),
  contentDisposition: headerValue(request, 'x-ms-blob-content-disposition'),
  cacheControl: headerValue(request, 'x-ms-blob-cache-control'),
  contentMd5: base64Header(request, 'x-ms-blob-content-md5'),
}));

/** The content headers of Put Blob: where an x-ms-blob-content-* header is absent, the HTTP header counts. */
export const contentHeaders: Reader<ContentHeaders> = reader((request) => {
  const own = blobContentHeaders.read(request);
  return {
    contentType: own.contentType ?? singleHeader(request, 'content-type'),
    contentEncoding: own.contentEncoding ?? headerValue(request, 'content-encoding'),
    contentLanguage: own.contentLanguage ?? headerValue(request, 'content-language'),
    contentDisposition: own.contentDisposition,
    cacheControl: own.cacheControl ?? headerValue(request, 'cache-control'),
    contentMd5: own.contentMd5,
  };
});

export interface ContentOptions {
  readonly bytesMax: number;
  /** The error for a longer body; by default 413 RequestBodyTooLarge. */
  readonly tooLarge?: (request: Request) => StorageError;
  /** Headers with the MD5 of the body, of which the first that was sent counts; by default Content-MD5. */
  readonly md5Headers?: readonly string[] | undefined;
}

/** The bytes of the body, streamed if it is long. The operation that uses them verifies them against the checksums of the request. */
export function contentBody({ bytesMax, tooLarge, md5Headers }: ContentOptions): BodyReader<SentContent> {
  return {
    kind: 'body',
    bytesMax,
    tooLarge: tooLarge ?? (() => bodyTooLarge(bytesMax)),
    check: (request) => {
      expectedHashes(request, md5Headers);
    },
    wholeBytesMax: WHOLE_BYTES_MAX,
    read: (whole, request) => ({
      length: whole.length,
      expected: expectedHashes(request, md5Headers),
      whole,
      bytes: () => singlePiece(whole),
    }),
    stream: (bytes, request) => ({
      length: Number(request.headers['content-length']),
      expected: expectedHashes(request, md5Headers),
      bytes: () => bytes,
    }),
  };
}

/** The checksums of a copy's source. */
export const sourceHashes: Reader<Hashes> = reader((request) => {
  const md5 = canonicalBase64(md5Header(request, 'x-ms-source-content-md5'));
  const crc64 = canonicalBase64(crc64Header(request, 'x-ms-source-content-crc64'));
  if (md5 !== undefined && crc64 !== undefined) throw fail('BothCrc64AndMd5HeaderPresent');
  return { md5, crc64 };
});

const NOTHING_EXPECTED: Hashes = Object.freeze({});

export function expectedHashes(request: Request, md5Headers: readonly string[] = ['content-md5']): Hashes {
  const crc64 = canonicalBase64(crc64Header(request));
  if (crc64 !== undefined && md5Header(request, 'content-md5') !== undefined)
    throw fail('BothCrc64AndMd5HeaderPresent');
  let md5: string | undefined;
  for (const name of md5Headers) {
    const sent = canonicalBase64(md5Header(request, name));
    md5 ??= sent;
  }
  return md5 === undefined && crc64 === undefined ? NOTHING_EXPECTED : { md5, crc64 };
}

/** Base64 has several spellings of one hash: the last character has unused bits. */
function canonicalBase64(base64: string | undefined): string | undefined {
  return base64 && Buffer.from(base64, 'base64').toString('base64');
}

async function* singlePiece(whole: Buffer): AsyncGenerator<Buffer> {
  if (whole.length > 0) yield whole;
}

const XML_BYTES_MAX = 64 * 1024;

/** An XML document whose root element has this name; undefined: the body is empty. */
export function xmlBody(
  root: string,
  bytesMax = XML_BYTES_MAX,
): BodyReader<XmlElement | undefined | Promise<XmlElement | undefined>> {
  return {
    kind: 'body',
    bytesMax,
    tooLarge: () => bodyTooLarge(bytesMax),
    check: (request) => {
      expectedHashes(request);
    },
    read: (bytes, request) => runSliced(parseDocument(root, bytes, request), bytes.length),
  };
}

export function* parseDocument(root: string, bytes: Buffer, request: Request): SlicedWork<XmlElement | undefined> {
  checkBodyHashes(bytes, request);
  if (bytes.length === 0) return undefined;
  try {
    const element = yield* parseXml(bytes);
    if (element.name === root) return element;
    throw new XmlError(`The root element is ${element.name}, not ${root}.`, element.line, element.column);
  } catch (error) {
    if (error instanceof XmlError) throw invalidXml(error.line, error.column, error.message);
    throw error;
  }
}

/** Verifies a body against the checksums of its request. */
export function checkBodyHashes(bytes: Buffer, request: Request): void {
  const expected = expectedHashes(request);
  checkHashes(expected, {
    md5: expected.md5 && md5Base64(bytes),
    crc64: expected.crc64 && crc64Base64(bytes),
  });
}

export function bodyTooLarge(bytesMax: number): StorageError {
  return fail('RequestBodyTooLarge', { MaxLimit: String(bytesMax) });
}

export function invalidXml(line: number, column: number, reason: string): StorageError {
  return fail('InvalidXmlDocument', { LineNumber: String(line), LinePosition: String(column), Reason: reason });
}

export function invalidHeader(name: string, value: string): StorageError {
  return fail('InvalidHeaderValue', { HeaderName: name, HeaderValue: value });
}

export function invalidQuery(name: string, value: string, reason?: string): StorageError {
  const details = { QueryParameterName: name, QueryParameterValue: value };
  return fail('InvalidQueryParameterValue', reason === undefined ? details : { ...details, Reason: reason });
}

export function reader<Value>(read: (request: Request) => Value): Reader<Value> {
  return { kind: 'head', read };
}

function headerValue(request: Request, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' || value === undefined ? value : value.join(',');
}

/** For headers of which Node keeps the first of several, or which would be ignored when two were joined. */
export function singleHeader(request: Request, name: string): string | undefined {
  const value = headerValue(request, name);
  if (value === undefined) return undefined;
  let count = 0;
  for (let at = 0; at < request.rawHeaders.length; at += 2) {
    const raw = request.rawHeaders[at]!;
    if (raw.length === name.length && raw.toLowerCase() === name && ++count > 1) throw invalidHeader(name, value);
  }
  return value;
}

/** A number of many digits is not exact, but out of all bounds anyway. */
function parseInteger(text: string): number | undefined {
  const trimmed = text.trim();
  return /^-?\d{1,20}$/.test(trimmed) ? Number(trimmed) : undefined;
}

/** Quoted or not; a weak mark is ignored, since Azure compares all tags alike. */
function parseETags(text: string | undefined): ETags | undefined {
  if (text === undefined) return undefined;
  if (text.trim() === '*') return '*';
  const tags: string[] = [];
  for (const part of text.split(',')) {
    let tag = part.trim();
    if (tag.startsWith('W/')) tag = tag.slice(2);
    if (tag.length >= 2 && tag.startsWith('"') && tag.endsWith('"')) tag = tag.slice(1, -1);
    if (tag !== '') tags.push(tag);
  }
  return tags;
}

/** A date that does not parse is ignored, as in Azure. */
function parseDateConditions(request: Request): Conditions {
  const since = singleHeader(request, 'if-modified-since');
  const until = singleHeader(request, 'if-unmodified-since');
  if (since === undefined && until === undefined) return NO_CONDITIONS;
  const ifModifiedSince = since === undefined ? undefined : parseHttpDate(since);
  const ifUnmodifiedSince = until === undefined ? undefined : parseHttpDate(until);
  return {
    ...(ifModifiedSince !== undefined && { ifModifiedSince }),
    ...(ifUnmodifiedSince !== undefined && { ifUnmodifiedSince }),
  };
}

function md5Header(request: Request, name: string): string | undefined {
  const text = base64Header(request, name);
  if (text !== undefined && Buffer.byteLength(text, 'base64') !== MD5_BYTES)
    throw fail('InvalidMd5', { HeaderName: name, HeaderValue: text });
  return text;
}

const MD5_BYTES = 16;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** An empty header counts as absent. */
export function base64Header(request: Request, name: string): string | undefined {
  const text = headerValue(request, name);
  if (text === undefined || text === '') return undefined;
  if (!BASE64.test(text)) throw invalidHeader(name, text);
  return text;
}

function crc64Header(request: Request, name = 'x-ms-content-crc64'): string | undefined {
  const text = headerValue(request, name);
  if (text !== undefined && !/^[A-Za-z0-9+/]{11}=$/.test(text)) throw invalidHeader(name, text);
  return text;
}
