/** Rows of the operation tables, and the operations that they are compiled into at start-up. */

import type { SmbAccess } from '../rules/file/share-mode.ts';
import { commonErrors, type Details, errorFactory, StorageError } from '../services/common/errors.ts';
import type { CopySourceAddress, CopySourceReads, RemoteAddress } from './copy-source.ts';
import type { Reply } from './reply.ts';

const fail = errorFactory(commonErrors);

export type Method = 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE' | 'PATCH' | 'MERGE' | 'OPTIONS';

/** The kind of resource that a path addresses: the account itself, or something in it. */
export type Shape = '/' | BlobShape | QueueShape | TableShape | FileShape;
type BlobShape = '/{container}' | '/{container}/{blob}';
type QueueShape = '/{queue}' | '/{queue}/messages' | '/{queue}/messages/{message}';
type TableShape = '/$batch' | '/Tables' | '/Tables({table})' | '/{table}' | '/{table}({keys})';
type FileShape = '/{share}' | '/{share}/{path}';

type Verb = Method | 'GET|HEAD' | 'PATCH|MERGE';
export type Route = `${Verb} ${Shape}`;

/** A parsed request, as the readers of a row see it; header names in `headers` are lower case. */
export interface Request {
  readonly id: string;
  readonly method: string;
  /** As on the request line: still encoded, without the query. */
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly account: string;
  /** Sent to the secondary, read-only address of the account. */
  readonly secondary: boolean;
  /** The part of the path before the container: /account, or empty if the host names the account. */
  readonly base: string;
  /** Whether the host may name an account. */
  readonly readsHosts: boolean;
  /** Received over TLS. */
  readonly secure: boolean;
  /** A container, queue, table or share. */
  readonly container: string;
  /** The resource in the container: a blob, a message, the path of a directory or file, or the keys of an entity as written between their parentheses. */
  readonly item: string;
  /** By lower-case name, decoded; of a repeated parameter the first value. */
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Name, value, name, value ... with the names as they were sent. */
  readonly rawHeaders: readonly string[];
  /** The x-ms-version that is served. */
  readonly version: string;
  /** Of an operation that reads from x-ms-copy-source, once the read is authorized. */
  readonly copySource?: CopySourceAddress | RemoteAddress;
}

/** Turns a part of the request into a typed value, or throws a StorageError. */
export interface Reader<Value> {
  readonly kind: 'head';
  read(request: Request): Value;
}

/** Turns the body into a typed value, after all other readers have accepted the request. */
export interface BodyReader<Value> {
  readonly kind: 'body';
  /** A longer Content-Length is refused before the body is read. */
  readonly bytesMax: number;
  /** The error for a body that is too long. */
  tooLarge(request: Request): StorageError;
  /** Throws for headers that rule the body out, before it is read. */
  check(request: Request): void;
  /** A longer body is not read before the operation runs: the operation gets a stream. */
  readonly wholeBytesMax?: number;
  /** May return a promise of the value, if parsing a large body yields to the event loop. */
  read(bytes: Buffer, request: Request): Value;
  stream?(bytes: AsyncIterable<Uint8Array>, request: Request): Value;
}

export type Readers = Readonly<Record<string, Reader<unknown> | BodyReader<unknown>>>;
export type Input<Row extends Readers> = {
  readonly [Name in keyof Row]: Row[Name] extends { read(...args: never[]): infer Value } ? Awaited<Value> : never;
};
type WithoutBody<Row extends Readers> = {
  readonly [Name in keyof Row as Row[Name] extends BodyReader<unknown> ? never : Name]: Input<Row>[Name];
};

export type Right =
  | 'read'
  | 'add'
  | 'create'
  | 'write'
  | 'delete'
  | 'permanent delete'
  | 'list'
  | 'update'
  | 'process'
  | 'tags'
  | 'filter';

/** The right that a shared access signature must grant; a list: any one of them suffices. */
export type Permission = Right | 'owner' | 'any' | readonly Right[] | { readonly all: readonly Right[] };

/** What an account SAS is for: the service, containers, or the objects in them. */
export type ResourceType = 's' | 'c' | 'o';

export type ConditionHeader = 'If-Match' | 'If-None-Match' | 'If-Modified-Since' | 'If-Unmodified-Since';

/** The context for one part of an operation that consists of others. Throws if the caller is not authorized for that part. */
export type ContextFor<Context> = (
  part: { readonly permission: Permission; readonly shape: Shape },
  container: string,
) => Context;

/** Runs a part that is a request of its own: authenticated by its own credentials, authorized and read as if it had come alone. */
export type RunPart<Context> = (row: Operation<Context>, part: Request) => Promise<Reply>;

interface RouteDescription {
  /** The name in Microsoft's REST reference. */
  readonly name: string;
  readonly route: Route;
  /** Query parameters that distinguish the operation from others on that route; true: any value. */
  readonly query?: Readonly<Record<string, string | true>>;
  /** Likewise, request headers. */
  readonly when?: Readonly<Record<string, string | true>>;
}

interface OperationRow<Context, Row extends Readers, Output> extends RouteDescription {
  readonly permission: Permission;
  /** False: not for anonymous callers, even where the container's access level permits other reads. */
  readonly anonymous?: boolean;
  /** The condition headers that the operation honours. */
  readonly conditions?: readonly ConditionHeader[];
  /** The answer has the ETag of the resource that was read or written. */
  readonly returnsETag?: boolean;
  /** Reads from x-ms-copy-source. */
  readonly readsCopySource?: CopySourceReads;
  /** Of an operation on a file or directory: what it counts as beside handles that SMB has open. Its service checks that. */
  readonly smbAccess?: SmbAccess;
  /** The end-to-end test that covers the operation. */
  readonly test: string;
  /**
   * Headers, and with a leading '?' query parameters, of features that are not implemented: refused, never ignored. They would change the
   * reply, the stored data, or whether the operation succeeds.
   */
  readonly unsupported?: readonly string[];
  /** Likewise, of features that change nothing of that: with --loose they are ignored. */
  readonly unsupportedUnlessLenient?: readonly string[];
  readonly input: Row;
  /** Judges the request before a client that sent `Expect: 100-continue` is asked for the body. */
  readonly precheck?: (context: Context, input: WithoutBody<Row>) => Promise<void>;
  /** For a reply that is produced whole and may be large: its estimated size, which is reserved in the byte budget before the operation runs. */
  readonly replyBytes?: (input: WithoutBody<Row>) => number;
  readonly run: (
    context: Context,
    input: Input<Row>,
    contextFor: ContextFor<Context>,
    runPart: RunPart<Context>,
  ) => Promise<Output>;
  readonly reply: (output: Output, request: Request) => Reply;
}

/** A compiled row. The type of its input is known to the row alone. */
export interface Operation<Context> extends RouteDescription {
  readonly methods: readonly Method[];
  readonly shape: Shape;
  readonly isImplemented: boolean;
  readonly permission: Permission;
  /** Where it is not that of the shape. */
  readonly resourceType?: ResourceType;
  readonly anonymous: boolean;
  readonly conditions: readonly ConditionHeader[];
  readonly returnsETag: boolean;
  /** Honours x-ms-lease-id. */
  readonly takesLeaseId: boolean;
  readonly unsupported: readonly string[];
  readonly unsupportedUnlessLenient: readonly string[];
  readonly readsCopySource: CopySourceReads | undefined;
  readonly smbAccess: SmbAccess | undefined;
  readonly test: string | undefined;
  readonly body: BodyReader<unknown> | undefined;
  /** Reads everything but the body. Lenient: `unsupportedUnlessLenient` is ignored. */
  read(request: Request, lenient?: boolean): unknown;
  readBody(input: unknown, bytes: Buffer | AsyncIterable<Uint8Array>, request: Request): void | Promise<void>;
  readonly precheck: ((context: Context, input: unknown) => Promise<void>) | undefined;
  readonly replyBytes: ((input: unknown) => number) | undefined;
  run(context: Context, input: unknown, contextFor: ContextFor<Context>, runPart: RunPart<Context>): Promise<unknown>;
  reply(output: unknown, request: Request): Reply;
}

/** `const operation = operationOn<Storage>()`: with the context given, the other types of a row are inferred. */
export function operationOn<Context>() {
  return <Row extends Readers, Output>(row: OperationRow<Context, Row, Output>): Operation<Context> => {
    const bodyNames = Object.keys(row.input).filter((name) => row.input[name]!.kind === 'body');
    if (bodyNames.length > 1) throw new Error(`${row.name} reads its body twice: ${bodyNames.join(', ')}`);
    const bodyName = bodyNames[0];
    const body = bodyName === undefined ? undefined : (row.input[bodyName] as BodyReader<unknown>);
    return {
      ...parseRoute(row),
      isImplemented: true,
      permission: row.permission,
      anonymous: row.anonymous ?? true,
      conditions: row.conditions ?? [],
      returnsETag: row.returnsETag ?? false,
      takesLeaseId: 'leaseId' in row.input,
      unsupported: row.unsupported ?? [],
      unsupportedUnlessLenient: row.unsupportedUnlessLenient ?? [],
      readsCopySource: row.readsCopySource,
      smbAccess: row.smbAccess,
      test: row.test,
      body,
      read: rejectUnsupported(row, compileReaders(row.input, body)),
      readBody: (input, bytes, request) => {
        const value = body && bodyValue(body, bytes, request);
        if (value instanceof Promise) return value.then((read) => setBody(input, bodyName!, read));
        if (body) setBody(input, bodyName!, value);
      },
      precheck: row.precheck as Operation<Context>['precheck'],
      replyBytes: row.replyBytes as Operation<Context>['replyBytes'],
      run: row.run as Operation<Context>['run'],
      reply: row.reply as Operation<Context>['reply'],
    };
  };
}

/** The columns of an operation that is never run. */
const NEVER_RUN = {
  permission: 'any',
  anonymous: false,
  conditions: [],
  returnsETag: false,
  takesLeaseId: false,
  unsupported: [],
  unsupportedUnlessLenient: [],
  readsCopySource: undefined,
  smbAccess: undefined,
  body: undefined,
  readBody: neverRun,
  precheck: undefined,
  replyBytes: undefined,
  run: neverRun,
  reply: neverRun,
} as const;

function neverRun(): never {
  throw new Error('an operation that is only listed has been run');
}

/** An operation that Azure has and this server does not yet: it is refused by its name. */
export function notImplementedOperation<Context>(
  name: string,
  route: Route,
  query: RouteDescription['query'] = {},
  when: RouteDescription['when'] = {},
): Operation<Context> {
  return {
    ...NEVER_RUN,
    ...parseRoute({ name, route, query, when }),
    isImplemented: false,
    test: undefined,
    read: () => {
      throw notImplemented(`${name} is not implemented by this server yet; docs/operations.md lists what is.`);
    },
  };
}

/** Listed as an operation, but replied to by the pipeline before an operation is looked for, whatever the path and query. */
export function preflightOperation<Context>(name: string, shape: Shape, test: string): Operation<Context> {
  const route = parseRoute({ name, route: `OPTIONS ${shape}` });
  return { ...NEVER_RUN, ...route, isImplemented: true, test, read: neverRun };
}

export function notImplemented(message: string, details?: Details): StorageError {
  return new StorageError('NotImplemented', 501, message, details);
}

function parseRoute(row: RouteDescription) {
  const [verbs, shape] = row.route.split(' ') as [string, Shape];
  return {
    name: row.name,
    route: row.route,
    methods: verbs.split('|') as Method[],
    shape,
    query: row.query ?? {},
    when: row.when ?? {},
  };
}

function setBody(input: unknown, name: string, value: unknown): void {
  (input as Record<string, unknown>)[name] = value;
}

function bodyValue(body: BodyReader<unknown>, bytes: Buffer | AsyncIterable<Uint8Array>, request: Request): unknown {
  return Buffer.isBuffer(bytes) ? body.read(bytes, request) : body.stream!(bytes, request);
}

/**
 * Compiled into one function with one object literal, so that all inputs of a row share a hidden class and each reader has
 * a call site of its own.
 */
function compileReaders(input: Readers, body: BodyReader<unknown> | undefined): (request: Request) => unknown {
  const names = Object.keys(input);
  const fields = names.map((name, at) => {
    const value = input[name]!.kind === 'head' ? `reader${at}.read(request)` : 'undefined';
    return `${JSON.stringify(name)}: ${value}`;
  });
  const check = body ? 'body.check(request); ' : '';
  const source = `return function read(request) { ${check}return { ${fields.join(', ')} }; }`;
  return new Function('body', ...names.map((_, at) => `reader${at}`), source)(body, ...Object.values(input));
}

type UnsupportedFeatures = Pick<OperationRow<never, Readers, never>, 'unsupported' | 'unsupportedUnlessLenient'>;

function rejectUnsupported(
  { unsupported = [], unsupportedUnlessLenient = [] }: UnsupportedFeatures,
  read: (request: Request) => unknown,
): Operation<never>['read'] {
  if (unsupported.length + unsupportedUnlessLenient.length === 0) return read;
  const checkLenient = unsupportedCheck(unsupported);
  const checkStrict = unsupportedCheck([...unsupported, ...unsupportedUnlessLenient]);
  return (request, lenient = false) => {
    (lenient ? checkLenient : checkStrict)(request);
    return read(request);
  };
}

/** Throws if the request has one of these headers or parameters. */
function unsupportedCheck(names: readonly string[]): (request: Request) => void {
  const parameters = names.filter((name) => name.startsWith('?')).map((name) => name.slice(1).toLowerCase());
  const headers = new Set(names.filter((name) => !name.startsWith('?')).map((name) => name.toLowerCase()));
  return (request) => {
    // A request has fewer headers than there are unsupported ones.
    for (const name in request.headers) {
      if (headers.has(name)) {
        throw notImplemented(`The request header ${name} is not implemented by this server yet.`, { HeaderName: name });
      }
    }
    for (const name of parameters) {
      if (request.query[name] !== undefined) {
        if (name === 'versionid' && request.query.snapshot !== undefined)
          throw fail('MutuallyExclusiveQueryParameters');
        const message = `The query parameter ${name} is not implemented by this server yet.`;
        throw notImplemented(message, { QueryParameterName: name });
      }
    }
  };
}
