/** The body of an Entity Group Transaction: a set of changes, or one query. */
import type { Steps } from '../../../base/time-slices.ts';
import { CHANGES_MAX } from '../../../services/table/batches.ts';
import type { Request } from '../../operation.ts';
import { queryOf, type Routable } from '../../request.ts';
import { tablePath } from '../address.ts';
import { fail } from '../errors.ts';
import {
  beginsSo,
  boundaryOf,
  decoded,
  firstTextIn,
  type Head,
  type Headers,
  headAt,
  lineAt,
  partsOf,
  type Stretch,
} from './multipart.ts';

export type Batch =
  | { readonly kind: 'changes'; readonly parts: readonly Part[] }
  | { readonly kind: 'query'; readonly part: Part };

/** A request as it stands in the body. */
export interface Part {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** To read so many bytes of parts holds the event loop long enough. */
const SLICE_BYTES = 256 << 10;

export function* readBatch(bytes: Buffer, contentType: string | string[] | undefined): Steps<Batch> {
  const text = bytes.toString('latin1');
  const all = yield* partsOf(text, { from: 0, to: text.length }, boundaryIn(String(contentType)), 2);
  const [only, ...more] = all.map((part) => ({ ...part, head: headAt(text, part, undefined) }));
  if (!only || more.length > 0) throw fail('BatchSyntax');
  const inner = boundaryOf(only.head.headers['content-type']);
  if (inner === undefined) return { kind: 'query', part: partsReader(bytes, text)(only) };
  const parts = yield* partsOf(text, { from: only.from + only.head.text.length, to: only.to }, inner, CHANGES_MAX + 1);
  const read = partsReader(bytes, text);
  const whole: Part[] = [];
  // To find the parts in a long one was a slice.
  let sliceEnd = SLICE_BYTES;
  for (const part of parts) {
    if (part.to > sliceEnd) {
      sliceEnd = part.to + SLICE_BYTES;
      yield;
    }
    if (firstTextIn(text, part) < part.to) whole.push(read(part));
  }
  return { kind: 'changes', parts: whole };
}

function boundaryIn(contentType: string): string {
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) throw fail('BatchSyntax');
  return boundary;
}

/** Parts are alike but for their bodies and addresses, mostly: what stands in one as in that before it is not read again. */
function partsReader(bytes: Buffer, text: string): (part: Stretch) => Part {
  let outer: Head | undefined;
  let asked: Asked | undefined;
  let inner: Head | undefined;
  let all: (Head & Pick<Part, 'method' | 'url'>) | undefined;
  return ({ from, to }) => {
    if (!all || !beginsSo(text, { from, to }, all)) {
      const outerHead = headAt(text, { from, to }, outer);
      if (outerHead !== outer) checkType(outerHead.headers);
      outer = outerHead;
      const { line, end } = lineAt(text, { from: firstTextIn(text, { from: from + outer.text.length, to }), to });
      if (line !== asked?.line) asked = askedIn(line, decoded(line));
      inner = headAt(text, { from: end, to }, inner);
      all = { ...inner, text: text.slice(from, end + inner.text.length), method: asked.method, url: asked.url };
    }
    const { method, url, headers } = all;
    return { method, url, headers, body: bytes.subarray(from + all.text.length, to) };
  };
}

function checkType({ 'content-type': type }: Headers): void {
  if (type !== undefined && !/^application\/http\b/i.test(type)) throw fail('BatchSyntax');
}

interface Asked {
  /** Not decoded. */
  readonly line: string;
  readonly method: string;
  readonly url: string;
}

const URL_BYTES_MAX = 32 * 1024;
const METHOD = /^[A-Za-z]+ /;
const PROTOCOL = / HTTP\/\d(?:\.\d)?$/;

function askedIn(line: string, text: string): Asked {
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

/** With or without a host, and with or without the account: the transaction itself says whose tables they are. */
export function partRequest({ method, url, headers }: Part, outer: Request): Routable {
  const target = url.replace(ORIGIN, '');
  const question = target.indexOf('?');
  const path = question < 0 ? target : target.slice(0, question);
  const rawQuery = question < 0 ? '' : target.slice(question + 1);
  const rawPath = path.startsWith('/') ? path : `/${path}`;
  const { id, account, secondary, base, readsHosts, secure, version } = outer;
  const prefix = [base, `/${account}`].find((start) => start !== '' && rawPath.startsWith(`${start}/`)) ?? '';
  const { container, item, shape } = tablePath(rawPath.slice(prefix.length));
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
    query: queryOf(rawQuery),
    headers: { ...headers, host: outer.headers.host },
    rawHeaders: [],
    version,
  };
}
