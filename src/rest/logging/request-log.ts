/** Log lines of requests. Signatures in URLs are redacted: a reader of the log could use them. */
import type { IncomingMessage } from 'node:http';
import { EpisodeLog } from '../../base/episode-log.ts';
import type { Log } from '../../base/log.ts';
import { isCorruption, isOutOfSpace, type StorageError } from '../../services/common/errors.ts';
import type { Reply } from '../reply.ts';
import type { RequestContext } from '../request.ts';
import type { AccessLog } from './access-log.ts';
import { sentBodyBytes } from './analytics-record.ts';
import { createRefusalLog } from './refusal-log.ts';

interface RequestLog {
  /** `started` is a time of performance.now(), here and below. */
  answered(ctx: RequestContext, reply: Reply, started: number, bytes?: number): void;
  slow(ctx: RequestContext, reply: Reply, started: number, bytes?: number): void;
  /** An error that the reply reports. */
  raised(ctx: RequestContext, error: unknown, reported: StorageError): void;
  /** A bug or corrupt data; `cut` if the failure interrupted a reply of which this many bytes were sent. */
  failed(ctx: RequestContext, error: unknown, cut?: { readonly bytes: number }): void;
  clientDisconnected(ctx: RequestContext, bytes?: number): void;
  /** Authentication or authorization failed. */
  refused(ctx: RequestContext, code: unknown): void;
}

export function createRequestLog(log: Log, accessLog?: AccessLog): RequestLog {
  const refusals = createRefusalLog(log);
  const outOfSpace = new EpisodeLog();
  const failed: RequestLog['failed'] = (ctx, error, cut) => {
    const fault = isCorruption(error) ? 'damaged bytes' : 'bug';
    log.error({ err: error, ...requestFields(ctx), ...cut }, cut ? `answer cut: ${fault}` : fault);
  };
  const refused = (ctx: RequestContext, code: unknown, details?: StorageError['details']) =>
    refusals.refused(ctx.incoming.socket.remoteAddress, { ...requestFields(ctx), code, ...refusalReason(details) });
  return {
    failed,
    refused,
    raised(ctx, error, reported) {
      if (isOutOfSpace(error)) outOfSpace.happened(() => log.error(error.message));
      else if (error !== reported && (isCorruption(error) || reported.code === 'InternalError')) failed(ctx, error);
      else if (isAuthError(reported)) refused(ctx, reported.code, reported.details);
    },
    answered(ctx, reply, started, bytes) {
      accessLog?.answered(ctx, reply, started, bytes ?? sentBodyBytes(reply, ctx.incoming.method));
      if (log.isLevelEnabled('debug')) log.debug(responseFields(ctx, reply, started, bytes), 'request');
    },
    slow(ctx, reply, started, bytes) {
      accessLog?.answered(ctx, reply, started, bytes ?? sentBodyBytes(reply, ctx.incoming.method));
      log.warn(responseFields(ctx, reply, started, bytes), 'slow request');
    },
    clientDisconnected: (ctx, bytes) => log.debug({ ...requestFields(ctx), bytes }, 'client went away'),
  };
}

function requestFields({ incoming, id, operation }: RequestContext) {
  return { requestId: id, method: incoming.method, url: redactedUrl(incoming), operation };
}

function responseFields(ctx: RequestContext, reply: Reply, started: number, bytes?: number) {
  const code = reply.headers?.['x-ms-error-code'];
  const ms = Math.round((performance.now() - started) * 10) / 10;
  return { ...requestFields(ctx), status: reply.status, code, ms, bytes };
}

/** `hidden` replaces the signature. */
export function redactedUrl({ url }: IncomingMessage, hidden = '...'): string | undefined {
  const question = url?.indexOf('?') ?? -1;
  if (url === undefined || question < 0) return url;
  const parts = url.slice(question + 1).split('&');
  return `${url.slice(0, question)}?${parts.map((part) => withoutSignature(part, hidden)).join('&')}`;
}

/** The name of a parameter may be percent-encoded. */
const SIGNATURE = /^(?:s|%[57]3)(?:i|%[46]9)(?:g|%[46]7)$/i;

function withoutSignature(part: string, hidden: string): string {
  const name = part.split('=', 1)[0]!;
  return SIGNATURE.test(name) ? `${name}=${hidden}` : part;
}

/** Whether the request failed authentication or authorization. */
function isAuthError({ status, code }: StorageError): boolean {
  return status === 401 || status === 403 || code === 'InvalidAuthenticationInfo';
}

/** Without the string-to-sign, which has many lines. */
function refusalReason(details: StorageError['details']): { reason?: string } {
  const reason = details?.AuthenticationErrorDetail?.split(/ String to sign | Server used /)[0];
  return reason === undefined ? {} : { reason };
}
