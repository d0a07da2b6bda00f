/** Batch request parser: a change set, or one query. */
import type { SlicedWork } from '../../../base/time-slices.ts';
import { CHANGES_MAX } from '../../../services/table/entities.ts';
import type { Request } from '../../operation.ts';
import { parseQuery, type Routable } from '../../request.ts';
import { fail } from '../errors.ts';
import { parseTablePath } from '../params.ts';
import {
  decodeUtf8,
  type Head,
  lineAt,
  type PartHeaders,
  parseBoundary,
  parseHead,
  skipEmptyLines,
  splitParts,
  startsWithHead,
  type TextRange,
} from './multipart.ts';

export type Batch =
  | { readonly kind: 'changes'; readonly parts: readonly BatchPart[] }
  | { readonly kind: 'query'; readonly part: BatchPart };

/** An HTTP request within the body. Parts with the same header lines share the `headers` object. */
export interface BatchPart {
  readonly method: string;
  readonly url: string;
  readonly headers: PartHeaders;
  readonly body: Buffer;
}

/** After this many bytes of parts the event loop gets its turn. */
const SLICE_BYTES = 256 << 10;

export function* readBatch(bytes: Buffer, contentType: string | string[] | undefined): SlicedWork<Batch> {
  const text = bytes.toString('latin1');
  const all = yield* splitParts(text, { from: 0, to: text.length }, requireBoundary(String(contentType)), 2);
  const [only, ...more] = all.map((part) => ({ ...part, head: parseHead(text, part, undefined) }));
  if (!only || more.length > 0) throw fail('BatchSyntax');
  const inner = parseBoundary(only.head.headers['content-type']);
  if (inner === undefined) return { kind: 'query', part: createPartReader(bytes, text)(only) };
  const ranges = yield* splitParts(
    text,
    { from: only.from + only.head.text.length, to: only.to },
    inner,
    CHANGES_MAX + 1,
  );
  // The search for the parts of a long body was a slice.
  if (text.length > SLICE_BYTES) yield;
  const parts: BatchPart[] = [];
  const readPart = createPartReader(bytes, text);
  for (let next = 0; ; ) {
    next = readSlice(parts, readPart, text, ranges, next);
    if (next === ranges.length) return { kind: 'changes', parts };
    yield;
  }
}

/** Outside of the generator, whose loops are slower. Skips empty parts. Returns the index of the first range that was not read. */
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

function requireBoundary(contentType: string): string {
  const boundary = parseBoundary(contentType);
  if (boundary === undefined) throw fail('BatchSyntax');
  return boundary;
}

/** Most parts differ only in their bodies and addresses, so lines that are those of the part before are not parsed again. */
function createPartReader(bytes: Buffer, text: string): (part: TextRange) => BatchPart {
  let outer: Head | undefined;
  let requestLine: RequestLine | undefined;
  let inner: Head | undefined;
  let lastHead: (Head & Pick<BatchPart, 'method' | 'url'>) | undefined;
  return ({ from, to }) => {
    if (!lastHead || !startsWithHead(text, { from, to }, lastHead)) {
      const outerHead = parseHead(text, { from, to }, outer);
      if (outerHead !== outer) checkType(outerHead.headers);
      outer = outerHead;
      const { line, end } = lineAt(text, { from: skipEmptyLines(text, { from: from + outer.text.length, to }), to });
      if (line !== requestLine?.line) requestLine = parseRequestLine(line, decodeUtf8(line));
      inner = parseHead(text, { from: end, to }, inner);
      lastHead = {
        ...inner,
        text: text.slice(from, end + inner.text.length),
        method: requestLine.method,
        url: requestLine.url,
      };
    }
    const { method, url, headers } = lastHead;
    return { method, url, headers, body: bytes.subarray(from + lastHead.text.length, to) };
  };
}

function checkType({ 'content-type': type }: PartHeaders): void {
  if (type !== undefined && !/^application\/http\b/i.test(type)) throw fail('BatchSyntax');
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
  if (text.length > URL_BYTES_MAX) throw fail('BatchSyntax');
  const [method] = METHOD.exec(text) ?? [];
  const url = text
    .slice(method?.length ?? 0)
    .trimEnd()
    .replace(PROTOCOL, '')
    .trim();
  if (method === undefined || url === '') throw fail('BatchSyntax');
  return { line, method: method.trimEnd().toUpperCase(), url };
}

const ORIGIN = /^https?:\/\/[^/?#]*/i;

/** The URL may have a host and an account or not: the account is that of the batch. */
export function partRequest({ method, url, headers }: BatchPart, outer: Request): Routable {
  const target = url.replace(ORIGIN, '');
  const question = target.indexOf('?');
  const path = question < 0 ? target : target.slice(0, question);
  const rawQuery = question < 0 ? '' : target.slice(question + 1);
  const rawPath = path.startsWith('/') ? path : `/${path}`;
  const { id, account, secondary, base, readsHosts, secure, version } = outer;
  const prefix = [base, `/${account}`].find((start) => start !== '' && rawPath.startsWith(`${start}/`)) ?? '';
  const { container, item, shape } = parseTablePath(rawPath.slice(prefix.length));
  return {
    id,
    method,
    rawPath,
    rawQuery,
    account,
    secondary,
    base,
    readsHosts,
    secure,
    container,
    item,
    shape,
    query: parseQuery(rawQuery),
    headers: { ...headers, host: outer.headers.host },
    rawHeaders: [],
    version,
  };
}
