/** What the server answers for itself, outside all accounts. */
import type { IncomingMessage } from 'node:http';
import { commonErrors, raising } from '../../services/common/errors.ts';
import { checkOwnSite } from '../../services/common/web-pages.ts';
import type { Reply } from '../reply.ts';

const fail = raising(commonErrors);
const BODY_BYTES_MAX = 64 * 1024;

export interface OwnCall {
  readonly query: Readonly<Record<string, string>>;
  readonly incoming: IncomingMessage;
  /** Refused where it is long. */
  body(): Promise<Buffer>;
}

export type OwnEndpoint = (call: OwnCall) => Promise<Reply>;
/** By method and path: 'POST /_holdfast/reset'. */
export type OwnEndpoints = Readonly<Record<string, OwnEndpoint>>;

export function health(isReady: () => boolean = () => true): OwnEndpoints {
  const say = (status: number, text: string): Reply => ({
    status,
    headers: { 'Content-Type': 'text/plain' },
    body: text,
  });
  return {
    'GET /health/live': async () => say(200, 'live\n'),
    'HEAD /health/live': async () => say(200, ''),
    'HEAD /health/ready': async () => say(isReady() ? 200 : 503, ''),
    'GET /health/ready': async () => (isReady() ? say(200, 'ready\n') : say(503, 'not ready\n')),
  };
}

/** Refused to pages of other sites: their browser would send the request, whatever it then keeps from them. */
export function forOwnSite(endpoints: OwnEndpoints = {}): OwnEndpoints {
  const guarded = Object.entries(endpoints).map(([at, work]): [string, OwnEndpoint] => [
    at,
    async (call) => {
      checkOwnSite(call.incoming.headers);
      return work(call);
    },
  ]);
  return Object.fromEntries(guarded);
}

/** Of the body of a call, by what the headers say. */
export function ownLength({ headers }: IncomingMessage): number {
  const declared = headers['content-length'];
  if (declared === undefined) throw fail('MissingContentLengthHeader');
  if (Number(declared) > BODY_BYTES_MAX) throw fail('RequestBodyTooLarge');
  return Number(declared);
}
