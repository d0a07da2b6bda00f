/** A request on its way: its two ends, and what has become known of it so far. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Share } from './http/byte-budget.ts';
import type { BodyStream } from './http/request-body.ts';
import type { Reply } from './reply.ts';
import type { Routable } from './request.ts';

export interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly id: string;
  /** The caller holds its body back until it is asked for it. */
  awaitsContinue: boolean;
  /** Once it is known whose account it is for. */
  request: Routable | undefined;
  operation: string | undefined;
  /** Of the error that it is answered with. */
  code: string | undefined;
  /** A body that had not come when the request was taken up. */
  body: BodyStream | undefined;
  /** Too much of the body was still to come when it was answered. */
  burdened: boolean;
  /** What its answer counts for in the memory for bodies. */
  readonly answerShare: Share;
  /** Headers that go with the answer, whatever it is. */
  besides: ((reply: Reply) => Reply['headers']) | undefined;
}

export function exchangeOf(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  awaitsContinue: boolean,
  answerShare: Share,
): Exchange {
  const id = randomUUID();
  return {
    incoming,
    outgoing,
    id,
    awaitsContinue,
    request: undefined,
    operation: undefined,
    code: undefined,
    body: undefined,
    burdened: false,
    answerShare,
    besides: undefined,
  };
}
