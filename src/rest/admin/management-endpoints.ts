/** Management endpoints: paths of the server itself, outside all accounts. */
import type { IncomingMessage } from 'node:http';
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import { checkSameSite } from '../../services/common/web-pages.ts';
import type { RequestBody } from '../http/request-body.ts';
import type { Reply } from '../reply.ts';

const fail = errorFactory(commonErrors);
const BODY_BYTES_MAX = 64 * 1024;

export interface ManagementCall {
  readonly query: Readonly<Record<string, string>>;
  readonly incoming: IncomingMessage;
  readonly body: RequestBody;
}

export type ManagementEndpoint = (call: ManagementCall) => Promise<Reply>;
/** By method and path: 'POST /_holdfast/reset'. */
export type ManagementEndpoints = Readonly<Record<string, ManagementEndpoint>>;

/** The certificate of the server's own authority, for clients that are to trust it: not a secret. */
export function certificateEndpoint(pem: string | undefined): ManagementEndpoints {
  if (pem === undefined) return {};
  return {
    'GET /_holdfast/certificate': async () => ({
      status: 200,
      headers: { 'Content-Type': 'application/x-pem-file' },
      body: pem,
    }),
  };
}

export function healthEndpoints(isReady: () => boolean = () => true): ManagementEndpoints {
  const textReply = (status: number, text: string): Reply => ({
    status,
    headers: { 'Content-Type': 'text/plain' },
    body: text,
  });
  return {
    'GET /health/live': async () => textReply(200, 'live\n'),
    'HEAD /health/live': async () => textReply(200, ''),
    'HEAD /health/ready': async () => textReply(isReady() ? 200 : 503, ''),
    'GET /health/ready': async () => (isReady() ? textReply(200, 'ready\n') : textReply(503, 'not ready\n')),
  };
}

/** For a browser only: to any other client the root is an address without an account. */
export function welcomeEndpoint(
  { method, url, headers }: IncomingMessage,
  { welcomePage }: { readonly welcomePage?: () => string },
): ManagementEndpoint | undefined {
  if (!welcomePage || method !== 'GET' || url !== '/' || !headers.accept?.includes('text/html')) return undefined;
  return async () => ({
    status: 200,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
      'X-Content-Type-Options': 'nosniff',
    },
    body: welcomePage(),
  });
}

/** Refuses requests from pages of other sites: a browser sends them, though it withholds the reply from the page. */
export function sameSiteOnly(endpoints: ManagementEndpoints = {}): ManagementEndpoints {
  const guarded = Object.entries(endpoints).map(([key, endpoint]): [string, ManagementEndpoint] => [
    key,
    async (call) => {
      checkSameSite(call.incoming.headers);
      return endpoint(call);
    },
  ]);
  return Object.fromEntries(guarded);
}

/** Reads the body of a call. Throws if it is too long. */
export async function readManagementBody({ body }: ManagementCall): Promise<Buffer> {
  const length = body.declaredLength();
  if (length > BODY_BYTES_MAX) throw fail('RequestBodyTooLarge');
  body.sendContinue();
  return await body.readWhole(length);
}
