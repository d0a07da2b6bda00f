/** Access record of one request for Storage Analytics. */
import type { AccessRecord, RequestKind } from '../../rules/analytics/access-record.ts';
import type { ServiceName } from '../../services/common/names.ts';
import type { Method } from '../operation.ts';
import { bodyLength, type Reply } from '../reply.ts';
import { accountUrl, type RequestContext, type Routable } from '../request.ts';
import { redactedUrl } from './request-log.ts';

export interface Analytics {
  /** Whether logging or metrics are enabled for any account. */
  readonly isOn: boolean;
  record(request: AccessRecord): void;
}

interface Timing {
  readonly now: bigint;
  readonly milliseconds: number;
  readonly serverMilliseconds: number;
}

/** Undefined: the request names no account of this server. No reply: the client disconnected. */
export function buildAccessRecord(
  ctx: RequestContext,
  service: ServiceName,
  reply: Reply | undefined,
  bytesOut: number,
  { now, milliseconds, serverMilliseconds }: Timing,
): AccessRecord | undefined {
  const { incoming, request } = ctx;
  if (!request) return undefined;
  const { headers, account, version, rawPath, base } = request;
  const requestHeader = (name: string) => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  const replyHeader = (name: string) => {
    const value = reply?.headers?.[name];
    return value === undefined ? undefined : String(value);
  };
  const { socket } = incoming;
  return {
    ...{ account, service, version, milliseconds, serverMilliseconds, bytesOut },
    operation: analyticsOperation(ctx.operation, request, service),
    kind: KINDS[request.method as Method] ?? 'write',
    by: credentialKind(request),
    status: reply?.status,
    code: ctx.code,
    started: now - BigInt(Math.round(milliseconds * 10_000)),
    id: ctx.id,
    url: absoluteUrl(incoming, request),
    objectKey: `/${account}${rawPath.slice(base.length)}`,
    from: `${socket.remoteAddress ?? ''}:${socket.remotePort ?? ''}`,
    headerBytes: countHeaderBytes(incoming.rawHeaders),
    bytesIn: incoming.complete ? Number(headers['content-length'] ?? 0) : 0,
    contentLength: requestHeader('content-length'),
    sentMd5: requestHeader('content-md5') ?? requestHeader('x-ms-blob-content-md5'),
    md5: replyHeader('Content-MD5'),
    etag: replyHeader('ETag'),
    lastModified: replyHeader('Last-Modified'),
    conditions: CONDITIONS.flatMap((name) => {
      const value = requestHeader(name.toLowerCase());
      return value === undefined ? [] : [`${name}=${value}`];
    }),
    userAgent: requestHeader('user-agent'),
    referrer: requestHeader('referer'),
    clientRequestId: requestHeader('x-ms-client-request-id'),
  };
}

const KINDS: Readonly<Partial<Record<Method, RequestKind>>> = {
  GET: 'read',
  HEAD: 'read',
  OPTIONS: 'read',
  DELETE: 'delete',
};

/** In a request to a proxy the URL is absolute already. */
function absoluteUrl(incoming: RequestContext['incoming'], request: Routable): string {
  const url = redactedUrl(incoming, 'XXXXX')!;
  return url.startsWith('/') ? `${accountUrl({ ...request, base: '' }).slice(0, -1)}${url}` : url;
}

const CONDITIONS = ['If-Modified-Since', 'If-Unmodified-Since', 'If-Match', 'If-None-Match'];

/** By the credential that was sent, valid or not. */
function credentialKind({ headers, query }: Routable): AccessRecord['by'] {
  const { authorization } = headers;
  if (authorization !== undefined) return /^bearer /i.test(String(authorization)) ? 'token' : 'key';
  return query.sig === undefined ? 'anonymous' : 'SAS';
}

/** The operation names of the REST reference without spaces, with a few exceptions. */
function analyticsOperation(name: string | undefined, request: Routable, service: ServiceName): string | undefined {
  if (request.method === 'OPTIONS') return `${capitalize(service)}PreflightRequest`;
  if (name === undefined) return undefined;
  const [, leased] = /^Lease (Blob|Container|Share|File)$/.exec(name) ?? [];
  if (leased) return `${capitalize(String(request.headers['x-ms-lease-action']).toLowerCase())}${leased}Lease`;
  if (name === 'Get Entity') return 'QueryEntity';
  if (request.shape === '/Tables({table})' && name === 'Query Tables') return 'QueryTable';
  return name.replaceAll(' ', '');
}

const capitalize = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`;

/** Each header counts with its colon, space and line end. */
function countHeaderBytes(rawHeaders: readonly string[]): number {
  return rawHeaders.reduce((sum, text) => sum + text.length + 2, 0);
}

/** For a body that is not a stream. */
export function sentBodyBytes({ body }: Reply, method: string | undefined): number {
  return method === 'HEAD' ? 0 : bodyLength(body);
}
