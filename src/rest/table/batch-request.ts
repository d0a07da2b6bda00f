/** The body of an Entity Group Transaction: a set of changes, or one query. */
import { CHANGES_MAX } from '../../services/table/batches.ts';
import type { Request } from '../operation.ts';
import { queryOf, type Routable } from '../request.ts';
import { tablePath } from './address.ts';
import { fail } from './errors.ts';
import { boundaryOf, firstTextIn, type Headed, headedOf, lineAt, partsOf } from './multipart.ts';

export type Batch =
  | { readonly kind: 'changes'; readonly parts: readonly Part[] }
  | { readonly kind: 'query'; readonly part: Part };

/** A request as it stands in the body. */
export interface Part extends Headed {
  readonly method: string;
  readonly url: string;
}

export function readBatch(bytes: Buffer, contentType: string | string[] | undefined): Batch {
  const [only, ...more] = partsOf(bytes, boundaryIn(String(contentType)), 2).map(headedOf);
  if (!only || more.length > 0) throw fail('BatchSyntax');
  const inner = boundaryOf(only.headers['content-type']);
  if (inner === undefined) return { kind: 'query', part: partOf(only) };
  const parts = partsOf(only.body, inner, CHANGES_MAX + 1);
  return { kind: 'changes', parts: parts.map((part) => partOf(headedOf(part))) };
}

function boundaryIn(contentType: string): string {
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) throw fail('BatchSyntax');
  return boundary;
}

const URL_BYTES_MAX = 32 * 1024;
const METHOD = /^[A-Za-z]+ /;
const PROTOCOL = / HTTP\/\d(?:\.\d)?$/;

function partOf({ headers, body: bytes }: Headed): Part {
  const type = headers['content-type'];
  if (type !== undefined && !/^application\/http\b/i.test(type)) throw fail('BatchSyntax');
  const line = lineAt(bytes, firstTextIn(bytes));
  if (line.text.length > URL_BYTES_MAX) throw fail('BatchSyntax');
  const [method] = METHOD.exec(line.text) ?? [];
  const url = line.text
    .slice(method?.length ?? 0)
    .trimEnd()
    .replace(PROTOCOL, '')
    .trim();
  if (method === undefined || url === '') throw fail('BatchSyntax');
  return { method: method.trimEnd().toUpperCase(), url, ...headedOf(bytes.subarray(line.end)) };
}

const ORIGIN = /^https?:\/\/[^/?#]*/i;

/** With or without a host, and with or without the account: the transaction itself says whose tables they are. */
export function partRequest({ method, url, headers }: Part, outer: Request): Routable {
  const target = url.replace(ORIGIN, '');
  const question = target.indexOf('?');
  const path = question < 0 ? target : target.slice(0, question);
  const rawQuery = question < 0 ? '' : target.slice(question + 1);
  const rawPath = path.startsWith('/') ? path : `/${path}`;
  const { account, base } = outer;
  const prefix = [base, `/${account}`].find((start) => start !== '' && rawPath.startsWith(`${start}/`)) ?? '';
  return {
    ...outer,
    method,
    rawPath,
    rawQuery,
    ...tablePath(rawPath.slice(prefix.length)),
    query: queryOf(rawQuery),
    headers: { ...headers, host: outer.headers.host },
    rawHeaders: [],
  };
}
