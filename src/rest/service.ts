/** Service definition: everything in which the REST interface of one service differs from those of the others. */
import type { IncomingMessage } from 'node:http';
import type { StorageError } from '../services/common/errors.ts';
import type { ServiceName } from '../services/common/names.ts';
import type { Operation, Request } from './operation.ts';
import type { Reply } from './reply.ts';
import type { ParsePath } from './request.ts';

export interface ServiceDefinition<Context> {
  readonly service: ServiceName;
  /** The value of the Server header. */
  readonly serverName: string;
  /** One row per operation. */
  readonly table: readonly Operation<Context>[];
  readonly parsePath: ParsePath;
  readonly errorReply: ErrorReply;
  /** Headers of every reply that does not set them itself. */
  readonly headers?: Reply['headers'];
  /** The method to run, where a header names another one than the request line, which was signed. */
  readonly effectiveMethod?: (request: Request) => string;
}

export type ErrorReply = (error: StorageError, requestId: string, now: bigint, incoming: IncomingMessage) => Reply;
