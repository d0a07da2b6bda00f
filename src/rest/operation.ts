/** What a row of an operation table is, and what it is compiled into at start-up. */
import { type Details, StorageError } from '../services/common/errors.ts';
import type { Reply } from './reply.ts';

export type Method = 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE' | 'PATCH' | 'MERGE' | 'OPTIONS';

/** What the path leads to: the account alone, or something in it. */
export type Shape = '/' | BlobShape | QueueShape | TableShape;
type BlobShape = '/{container}' | '/{container}/{blob}';
type QueueShape = '/{queue}' | '/{queue}/messages' | '/{queue}/messages/{message}';
type TableShape = '/$batch' | '/Tables' | '/Tables({table})' | '/{table}' | '/{table}({keys})';

type Verb = Method | 'GET|HEAD' | 'PATCH|MERGE';
export type Route = `${Verb} ${Shape}`;

/** One request as the readers of a row see it; header names in `headers` are lower case. */
export interface Request {
  readonly id: string;
  readonly method: string;
  /** As it stood on the request line, still encoded, without the query. */
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly account: string;
  /** By an address that is for reading only. */
  readonly secondary: boolean;
  /** What of the URL stands before the container: /account, or nothing if the host names it. */
  readonly base: string;
  /** Whether a host may name an account. */
  readonly readsHosts: boolean;
  /** By TLS. */
  readonly secure: boolean;
  /** A container, queue or table. */
  readonly container: string;
  /** What is in it: a blob, a message, or the keys of an entity as they stand between their parentheses. */
  readonly item: string;
  /** By lower-case name, decoded; of a repeated one the first. */
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Name, value, name, value ... with the names as they were sent. */
  readonly rawHeaders: readonly string[];
  /** The x-ms-version that is served. */
  readonly version: string;
}

/** Turns a part of the request into a typed value, or throws a StorageError. */
export interface Reader<Value> {
  readonly kind: 'head';
  read(request: Request): Value;
}

/** Turns the body into a typed value; it is asked once all other readers have accepted the request. */
export interface BodyReader<Value> {
  readonly kind: 'body';
  /** A declared length above this is refused before the body is read. */
  readonly bytesMax: number;
  /** What to answer to a body that is too long. */
  tooLarge(request: Request): StorageError;
  /** Refuses before the body is read. */
  check(request: Request): void;
  /** A body of more bytes is not read before the operation runs: it is handed over as it comes. */
  readonly wholeBytesMax?: number;
  /** May give a promise of the value, if it takes turns with others while it reads a large body. */
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

export type Right = 'read' | 'add' | 'create' | 'write' | 'delete' | 'list' | 'update' | 'process';

/** What a signature, a shared access signature or a role must allow; a list: any of them will do. */
export type Permission = Right | 'owner' | 'any' | readonly Right[] | { readonly all: readonly Right[] };

export type ConditionHeader = 'If-Match' | 'If-None-Match' | 'If-Modified-Since' | 'If-Unmodified-Since';

/** For an operation that is made of others: what each of them is handed. Throws if the caller may not do it there. */
export type ContextFor<Context> = (
  part: { readonly permission: Permission; readonly shape: Shape },
  container: string,
) => Context;

interface RouteDescription {
  /** As Microsoft's REST reference calls it. */
  readonly name: string;
  readonly route: Route;
  /** Query parameters that single it out on that route; true: whatever the value. */
  readonly query?: Readonly<Record<string, string | true>>;
  /** Request headers that do. */
  readonly when?: Readonly<Record<string, string | true>>;
}

export interface OperationRow<Context, Row extends Readers, Output> extends RouteDescription {
  readonly permission: Permission;
  /** False: not for anonymous callers, even where the container's access level opens its other reads. */
  readonly anonymous?: boolean;
  /** The condition headers that it honours. */
  readonly conditions?: readonly ConditionHeader[];
  /** Reads from x-ms-copy-source, which must be allowed, too. */
  readonly readsCopySource?: boolean;
  /** The end-to-end test that covers it. */
  readonly test: string;
  /**
   * Headers, and with a leading '?' query parameters, of features that are missing: refused, never ignored. They would change what
   * is answered, what is stored, or whether it happens.
   */
  readonly unsupported?: readonly string[];
  /** Likewise, of features that change nothing of that: with --loose they are passed over. */
  readonly unsupportedUnlessLenient?: readonly string[];
  readonly input: Row;
  /** A first look, taken before a caller that sent `Expect: 100-continue` is asked for the body. */
  readonly precheck?: (context: Context, input: WithoutBody<Row>) => Promise<void>;
  /** For an answer that is made whole and may be large: how many bytes it may have, roughly. It is not run before there is room for them. */
  readonly replyBytes?: (input: WithoutBody<Row>) => number;
  readonly run: (context: Context, input: Input<Row>, contextFor: ContextFor<Context>) => Promise<Output>;
  readonly reply: (output: Output, request: Request) => Reply;
}

/** A compiled row. Its input is known only to the row itself. */
export interface Operation<Context> extends RouteDescription {
  readonly methods: readonly Method[];
  readonly shape: Shape;
  readonly built: boolean;
  readonly permission: Permission;
  readonly anonymous: boolean;
  readonly conditions: readonly ConditionHeader[];
  readonly unsupported: readonly string[];
  readonly unsupportedUnlessLenient: readonly string[];
  readonly readsCopySource: boolean;
  readonly test: string | undefined;
  readonly body: BodyReader<unknown> | undefined;
  /** Reads everything but the body. Loosely: what the row refuses only otherwise is passed over. */
  read(request: Request, lenient?: boolean): unknown;
  readBody(input: unknown, bytes: Buffer | AsyncIterable<Uint8Array>, request: Request): void | Promise<void>;
  readonly precheck: ((context: Context, input: unknown) => Promise<void>) | undefined;
  readonly replyBytes: ((input: unknown) => number) | undefined;
  run(context: Context, input: unknown, contextFor: ContextFor<Context>): Promise<unknown>;
  reply(output: unknown, request: Request): Reply;
}

/** `const operation = operationOn<Storage>()`, so that the rest of a row's types can be inferred. */
export function operationOn<Context>() {
  return <Row extends Readers, Output>(row: OperationRow<Context, Row, Output>): Operation<Context> => {
    const bodyNames = Object.keys(row.input).filter((name) => row.input[name]!.kind === 'body');
    if (bodyNames.length > 1) throw new Error(`${row.name} reads its body twice: ${bodyNames.join(', ')}`);
    const bodyName = bodyNames[0];
    const body = bodyName === undefined ? undefined : (row.input[bodyName] as BodyReader<unknown>);
    return {
      ...parseRoute(row),
      built: true,
      permission: row.permission,
      anonymous: row.anonymous ?? true,
      conditions: row.conditions ?? [],
      unsupported: row.unsupported ?? [],
      unsupportedUnlessLenient: row.unsupportedUnlessLenient ?? [],
      readsCopySource: row.readsCopySource ?? false,
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

/** An operation that Azure has and this server does not yet: it says so, by name. */
export function notImplementedOperation<Context>(
  name: string,
  route: Route,
  query: RouteDescription['query'] = {},
  when: RouteDescription['when'] = {},
): Operation<Context> {
  return {
    ...parseRoute({ name, route, query, when }),
    built: false,
    permission: 'any',
    anonymous: false,
    conditions: [],
    unsupported: [],
    unsupportedUnlessLenient: [],
    readsCopySource: false,
    test: undefined,
    body: undefined,
    read: () => {
      throw notImplemented(`${name} is not implemented by this server yet; docs/operations.md lists what is.`);
    },
    readBody: () => {},
    precheck: undefined,
    replyBytes: undefined,
    run: async () => undefined,
    reply: () => ({ status: 501 }),
  };
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
 * One function with one object literal, so that all inputs of a row share a hidden class and each reader has a call site
 * of its own.
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

/** Throws if the request carries one of these. */
function unsupportedCheck(names: readonly string[]): (request: Request) => void {
  const parameters = names.filter((name) => name.startsWith('?')).map((name) => name.slice(1).toLowerCase());
  const headers = new Set(names.filter((name) => !name.startsWith('?')).map((name) => name.toLowerCase()));
  return (request) => {
    // A request has fewer headers than there are refused ones.
    for (const name in request.headers) {
      if (headers.has(name)) {
        throw notImplemented(`The request header ${name} is not implemented by this server yet.`, { HeaderName: name });
      }
    }
    for (const name of parameters) {
      if (request.query[name] !== undefined) {
        const message = `The query parameter ${name} is not implemented by this server yet.`;
        throw notImplemented(message, { QueryParameterName: name });
      }
    }
  };
}
