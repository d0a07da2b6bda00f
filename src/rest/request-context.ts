/** Request context: the state of one HTTP exchange. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BudgetShare } from './http/byte-budget.ts';
import type { RequestBody } from './http/request-body.ts';
import type { Reply } from './reply.ts';
import type { Routable } from './request.ts';

export interface RequestContext {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly id: string;
  readonly body: RequestBody;
  /** The bytes of the byte budget that the reply uses. */
  readonly replyShare: BudgetShare;
  /** Set once the account of the request is known. */
  request: Routable | undefined;
  /** The name of the operation, once the request is routed. */
  operation: string | undefined;
  /** The code of the error reply. */
  code: string | undefined;
  /** Headers that are added to every reply, errors included. */
  extraHeaders: ((reply: Reply) => Reply['headers']) | undefined;
}

export function createRequestContext(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  body: RequestBody,
  replyShare: BudgetShare,
): RequestContext {
  return {
    incoming,
    outgoing,
    id: randomUUID(),
    body,
    replyShare,
    request: undefined,
    operation: undefined,
    code: undefined,
    extraHeaders: undefined,
  };
}
