/** What one service is on the wire: all in which its front end differs from those of the others. */
import type { IncomingMessage } from 'node:http';
import type { StorageError } from '../services/common/errors.ts';
import type { ServiceName } from '../services/common/names.ts';
import type { ParsePath } from './address.ts';
import type { Operation, Request } from './operation.ts';
import type { Reply } from './reply.ts';

export interface ServiceDefinition<Context> {
  readonly service: ServiceName;
  /** What the service calls itself. */
  readonly serverName: string;
  /** One row per operation. */
  readonly table: readonly Operation<Context>[];
  readonly parsePath: ParsePath;
  readonly errorReply: ErrorReply;
  /** On every answer that does not say otherwise. */
  readonly headers?: Reply['headers'];
  /** The verb that is meant, where a header names another one than the request line, which was signed. */
  readonly methodOf?: (request: Request) => string;
}

export type ErrorReply = (error: StorageError, requestId: string, now: bigint, incoming: IncomingMessage) => Reply;
