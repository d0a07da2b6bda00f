/** A request on its way: its two ends, and what has become known of it so far. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BudgetShare } from './http/byte-budget.ts';
import type { BodyStream } from './http/request-body.ts';
import type { Reply } from './reply.ts';
import type { Routable } from './request.ts';

export interface RequestContext {
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
  bodyUnread: boolean;
  /** What its answer counts for in the memory for bodies. */
  readonly replyShare: BudgetShare;
  /** Headers that go with the answer, whatever it is. */
  extraHeaders: ((reply: Reply) => Reply['headers']) | undefined;
}

export function createRequestContext(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  awaitsContinue: boolean,
  replyShare: BudgetShare,
): RequestContext {
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
    bodyUnread: false,
    replyShare,
    extraHeaders: undefined,
  };
}
