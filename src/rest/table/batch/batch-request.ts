/** Batch request parser: a change set, or one query. */
import type { SlicedWork } from '../../../base/time-slices.ts';
import { CHANGES_MAX } from '../../../services/table/entities.ts';
import {
  type BatchPart,
  createPartReader,
  MalformedMultipart,
  parseBoundary,
  parseHead,
  readParts,
  splitParts,
} from '../../multipart.ts';
import type { Request } from '../../operation.ts';
import { parseQuery, type Routable } from '../../request.ts';
import { fail } from '../errors.ts';
import { parseTablePath } from '../params.ts';

export type Batch =
  | { readonly kind: 'changes'; readonly parts: readonly BatchPart[] }
  | { readonly kind: 'query'; readonly part: BatchPart };

export function* readBatch(bytes: Buffer, contentType: string | string[] | undefined): SlicedWork<Batch> {
  try {
    return yield* parseBatch(bytes, contentType);
  } catch (error) {
    throw error instanceof MalformedMultipart ? fail('BatchSyntax') : error;
  }
}

function* parseBatch(bytes: Buffer, contentType: string | string[] | undefined): SlicedWork<Batch> {
  const text = bytes.toString('latin1');
  const outer = parseBoundary(String(contentType));
  if (outer === undefined) throw new MalformedMultipart();
  const all = yield* splitParts(text, { from: 0, to: text.length }, outer, 2);
  const [only, ...more] = all.map((part) => ({ ...part, head: parseHead(text, part, undefined) }));
  if (!only || more.length > 0) throw new MalformedMultipart();
  const inner = parseBoundary(only.head.headers['content-type']);
  if (inner === undefined) return { kind: 'query', part: createPartReader(bytes, text)(only) };
  const changes = { from: only.from + only.head.text.length, to: only.to };
  const ranges = yield* splitParts(text, changes, inner, CHANGES_MAX + 1);
  return { kind: 'changes', parts: yield* readParts(bytes, text, ranges) };
}

const ORIGIN = /^https?:\/\/[^/?#]*/i;

/** The URL may have a host and an account or not: the account is that of the batch. */
export function partRequest(
  { method, url, headers }: Pick<BatchPart, 'method' | 'url' | 'headers'>,
  outer: Request,
): Routable {
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
