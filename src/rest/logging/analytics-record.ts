/** What Storage Analytics is told of a request once it is answered. */
import type { AnsweredRequest, RequestKind } from '../../rules/analytics/access-record.ts';
import type { ServiceName } from '../../services/common/names.ts';
import type { Method } from '../operation.ts';
import { lengthOf, type Reply } from '../reply.ts';
import { endpointOf, type Routable } from '../request.ts';
import type { Exchange } from '../request-context.ts';
import { urlOf } from './request-log.ts';

export interface Analytics {
  /** Whether anybody wants to know. */
  readonly isOn: boolean;
  answered(request: AnsweredRequest): void;
}

export interface Timing {
  readonly now: bigint;
  readonly milliseconds: number;
  readonly serverMilliseconds: number;
}

/** Undefined: it is not known whose account it was for. Without a reply: there was nobody to answer. */
export function answeredOf(
  exchange: Exchange,
  service: ServiceName,
  reply: Reply | undefined,
  bytesOut: number,
  { now, milliseconds, serverMilliseconds }: Timing,
): AnsweredRequest | undefined {
  const { incoming, request } = exchange;
  if (!request) return undefined;
  const { headers, account, version, rawPath, base } = request;
  const text = (name: string) => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  const said = (name: string) => {
    const value = reply?.headers?.[name];
    return value === undefined ? undefined : String(value);
  };
  const { socket } = incoming;
  return {
    ...{ account, service, version, milliseconds, serverMilliseconds, bytesOut },
    operation: operationOf(exchange.operation, request, service),
    kind: KINDS[request.method as Method] ?? 'write',
    by: callerOf(request),
    status: reply?.status,
    code: exchange.code,
    started: now - BigInt(Math.round(milliseconds * 10_000)),
    id: exchange.id,
    url: wholeUrlOf(incoming, request),
    objectKey: `/${account}${rawPath.slice(base.length)}`,
    from: `${socket.remoteAddress ?? ''}:${socket.remotePort ?? ''}`,
    headerBytes: headerBytesOf(incoming.rawHeaders),
    bytesIn: incoming.complete ? Number(headers['content-length'] ?? 0) : 0,
    contentLength: text('content-length'),
    sentMd5: text('content-md5') ?? text('x-ms-blob-content-md5'),
    md5: said('Content-MD5'),
    etag: said('ETag'),
    lastModified: said('Last-Modified'),
    conditions: CONDITIONS.flatMap((name) => {
      const value = text(name.toLowerCase());
      return value === undefined ? [] : [`${name}=${value}`];
    }),
    userAgent: text('user-agent'),
    referrer: text('referer'),
    clientRequestId: text('x-ms-client-request-id'),
  };
}

const KINDS: Readonly<Partial<Record<Method, RequestKind>>> = {
  GET: 'read',
  HEAD: 'read',
  OPTIONS: 'read',
  DELETE: 'delete',
};

/** As a proxy is asked, it is whole already. */
function wholeUrlOf(incoming: Exchange['incoming'], request: Routable): string {
  const url = urlOf(incoming, 'XXXXX')!;
  return url.startsWith('/') ? `${endpointOf({ ...request, base: '' }).slice(0, -1)}${url}` : url;
}

const CONDITIONS = ['If-Modified-Since', 'If-Unmodified-Since', 'If-Match', 'If-None-Match'];

/** Whether it is genuine or not. */
function callerOf({ headers, query }: Routable): AnsweredRequest['by'] {
  const { authorization } = headers;
  if (authorization !== undefined) return /^bearer /i.test(String(authorization)) ? 'token' : 'key';
  return query.sig === undefined ? 'nobody' : 'SAS';
}

/** The names are those of the REST reference, written together, but for a few. */
function operationOf(name: string | undefined, request: Routable, service: ServiceName): string | undefined {
  if (request.method === 'OPTIONS') return `${titled(service)}PreflightRequest`;
  if (name === undefined) return undefined;
  const [, leased] = /^Lease (Blob|Container)$/.exec(name) ?? [];
  if (leased) return `${titled(String(request.headers['x-ms-lease-action']).toLowerCase())}${leased}Lease`;
  if (name === 'Get Entity') return 'QueryEntity';
  if (request.shape === '/Tables({table})' && name === 'Query Tables') return 'QueryTable';
  return name.replaceAll(' ', '');
}

const titled = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`;

/** Each with the colon, the space and the end of its line. */
function headerBytesOf(rawHeaders: readonly string[]): number {
  return rawHeaders.reduce((sum, text) => sum + text.length + 2, 0);
}

/** Of a body that is no stream. */
export function bodyBytesOf({ body }: Reply, method: string | undefined): number {
  return method === 'HEAD' ? 0 : lengthOf(body);
}
