/**
 * The contract of a command: a row of the table in commands.ts.
 *
 * A row has the struct of its request and of its response (`wire/create.ts`), what it needs, and the handler (`handlers/create.ts`).
 * The dispatcher has verified the signature, decoded the request, and found the session, the tree and the open before a handler runs:
 *
 *     create: command({ code: 5, request: CreateRequest, response: CreateResponse, needs: 'tree', disk: create, pipe: openPipe }),
 *     read: command({ code: 8, request: ReadRequest, response: ReadResponse, needs: 'open', disk: read, pipe: readPipe }),
 *
 * - `needs: 'tree'`: `context.tree`. The row names a handler for trees of shares (`disk`) and one for IPC$ (`pipe`); a missing one
 *   answers STATUS_INVALID_DEVICE_REQUEST. `needs: 'open'`: also `context.open`, by the request's field `fileId`; the dispatcher
 *   replaces the FileId of all ones, "the open of the message before", and answers STATUS_FILE_CLOSED for an unknown one.
 * - A handler returns the value of the response struct, or `withStatus('BUFFER_OVERFLOW', value)` for another status with a full body.
 *   It throws `new SmbError('SHARING_VIOLATION')`; an error of a service becomes a status by statuses.ts.
 *   A CREATE returns its `fileId`, which the following messages of a related compound get.
 * - Payloads of requests are views of the received packet. They stay valid: a packet's memory is never used again.
 * - Handlers of one connection run at the same time, and answers leave as they are ready; the messages of a compound run one after the other.
 *   A handler that checks and then acts does both in one transaction of the service.
 * - An answer that may take long calls `context.goAsync()` first: the client gets STATUS_PENDING with an AsyncId. `context.signal` is aborted
 *   by CANCEL, and when the session or the connection ends: the handler then throws `new SmbError('CANCELLED')`.
 * - New opens: `session.opens.add((fileId) => open)`. `open.close()` is called once: by `session.opens.close(open)`, which CLOSE calls,
 *   or when its tree, session or last connection ends.
 */
import type { Storage } from '../services/common/storage.ts';
import type { Connection } from './connection.ts';
import type { FileOpen } from './file-open.ts';
import type { Open } from './opens.ts';
import type { PipeOpen } from './pipe-open.ts';
import type { AnswerSettings } from './running-request.ts';
import type { Session } from './session.ts';
import { STATUS, type StatusName } from './statuses.ts';
import type { DiskTree, PipeTree } from './trees.ts';
import type { FileId } from './wire/file-id.ts';
import type { Header } from './wire/header.ts';
import type { Struct } from './wire/struct.ts';

export interface RequestContext {
  readonly connection: Connection;
  readonly header: Header;
  /** The message from its header on: SESSION_SETUP hashes it. */
  readonly message: Buffer;
  readonly isEncrypted: boolean;
  readonly isSigned: boolean;
  readonly signal: AbortSignal;
  /** The answer's session, tree and signature: for the commands that make a session or a tree. */
  readonly answer: AnswerSettings;
  /** Sends STATUS_PENDING, once; not for messages of a compound before the last. */
  goAsync(): void;
}

export interface SessionContext extends RequestContext {
  readonly session: Session;
  /** Of the session's account: the first argument of the services. */
  readonly storage: Storage;
}

export interface TreeContext<Tree = DiskTree> extends SessionContext {
  readonly tree: Tree;
  /** An open of this tree, as with `needs: 'open'`: for commands that need one or not, as IOCTL does. */
  findOpen(fileId: FileId): Open;
}

export interface OpenContext<Tree = DiskTree, O = FileOpen> extends TreeContext<Tree> {
  readonly open: O;
}

export type Handler<Request, Context, Response> = (
  request: Request,
  context: Context,
) => HandlerResult<Response> | Promise<HandlerResult<Response>>;

export type HandlerResult<Response> = Response | Reply<Response>;

/** A full response body under another status than success. */
export class Reply<Response> {
  readonly status: number;
  readonly body: Response;

  constructor(status: number, body: Response) {
    this.status = status;
    this.body = body;
  }
}

export function withStatus<Response>(status: StatusName, body: Response): Reply<Response> {
  return new Reply(STATUS[status], body);
}

interface RowBase<Request, Response> {
  readonly code: number;
  readonly request: Struct<Request>;
  readonly response: Struct<Response>;
  /** Bytes of the payload, by which the CreditCharge is verified: those sent, or those asked for. */
  readonly payloadBytes?: (request: Request) => number;
}

interface ConnectionRow<Request, Response> extends RowBase<Request, Response> {
  readonly needs: 'connection';
  readonly run: Handler<Request, RequestContext, Response>;
}

interface SessionRow<Request, Response> extends RowBase<Request, Response> {
  readonly needs: 'session';
  readonly run: Handler<Request, SessionContext, Response>;
}

interface TreeRow<Request, Response> extends RowBase<Request, Response> {
  readonly needs: 'tree';
  readonly disk?: Handler<Request, TreeContext, Response>;
  readonly pipe?: Handler<Request, TreeContext<PipeTree>, Response>;
}

interface OpenRow<Request, Response> extends RowBase<Request, Response> {
  readonly needs: 'open';
  readonly disk?: Handler<Request, OpenContext, Response>;
  readonly pipe?: Handler<Request, OpenContext<PipeTree, PipeOpen>, Response>;
}

/** The row as the dispatcher sees it. */
export type Command =
  | ConnectionRow<unknown, unknown>
  | SessionRow<unknown, unknown>
  | TreeRow<unknown, unknown>
  | OpenRow<{ readonly fileId: FileId }, unknown>;

/** Verifies that the parts of a row fit together; their types end here. */
export function command<Request, Response>(
  row: ConnectionRow<Request, Response> | SessionRow<Request, Response> | TreeRow<Request, Response>,
): Command;
export function command<Request extends { readonly fileId: FileId }, Response>(
  row: OpenRow<Request, Response>,
): Command;
export function command(row: unknown): Command {
  return row as Command;
}
