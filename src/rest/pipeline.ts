/** Request pipeline: address, CORS, authentication, routing, authorization, body, operation, reply. */
import type { CorsRule } from '../rules/cors.ts';
import { copySourceError, type SourceService } from '../services/common/copy-sources.ts';
import { commonErrors, errorFactory } from '../services/common/errors.ts';
import type { Granted } from '../services/common/storage.ts';
import { checkHost, checkPageWrite, isFromBrowser } from '../services/common/web-pages.ts';
import {
  healthEndpoints,
  type ManagementEndpoints,
  sameSiteOnly,
  welcomeEndpoint,
} from './admin/management-endpoints.ts';
import { type Authenticate, createAuthenticate } from './auth/authenticate.ts';
import type { ContainerAccess, Identity, LookUpAccess } from './auth/identity.ts';
import {
  anonymousRefused,
  authorize,
  authorizeAnonymous,
  namesTags,
  type OperationAccess,
  responseOverrides,
} from './auth/permissions.ts';
import type { Account } from './auth/shared-key.ts';
import { copySourceRequest, parseCopySource } from './copy-source.ts';
import { corsHeaders, preflight } from './cors.ts';
import type { RequestBody } from './http/request-body.ts';
import { reserveReply } from './http/response-stream.ts';
import type { BodyReader, ContextFor, Operation, Request, RunPart } from './operation.ts';
import type { Reply } from './reply.ts';
import {
  isSecure,
  parseAddress,
  parseQuery,
  parseRequest,
  type RequestContext,
  type Routable,
  unknownAccount,
  VERSION,
} from './request.ts';
import { compileRouter } from './router.ts';
import type { ServiceDefinition } from './service.ts';

const fail = errorFactory(commonErrors);

export interface ServedAccount extends Account {
  readonly id: bigint;
}

export interface PipelineOptions<Context, Known extends ServedAccount = ServedAccount> {
  readonly definition: ServiceDefinition<Context>;
  readonly accounts: { find(name: string): Known | undefined };
  /** The context that the operations of an account run in. */
  readonly context: (account: Known, granted?: Granted) => Context;
  readonly access: (context: Context, container: string) => Promise<ContainerAccess | undefined>;
  readonly corsRules?: (context: Context) => Promise<readonly CorsRule[]>;
  /** The version for requests without x-ms-version. */
  readonly defaultVersion?: (context: Context) => Promise<string | undefined>;
  /** The store's time. */
  readonly now: () => bigint;
  readonly managementEndpoints?: ManagementEndpoints;
  /** Whether the server can serve requests, for GET /health/ready. */
  readonly isReady?: () => boolean;
  /** Ignore headers and parameters of some features that are not implemented. */
  readonly lenient?: boolean;
  /** Never look for an account in the host. */
  readonly pathStyleOnly?: boolean;
  /** Host names, in lower case, under which web pages may reach this server, besides those that no other server can have. */
  readonly hostNames?: readonly string[];
  readonly oauth?: 'basic' | undefined;
  /** The HTML for a browser that is pointed at the server itself. */
  readonly welcomePage?: () => string;
  /** The services whose resources operations of any service can copy: by the port on which they listen, and by their name. */
  readonly copySources?: CopySourceServices<Context> | undefined;
  /** Origins of other servers that copies may read from. */
  readonly copyOrigins?: ReadonlySet<string>;
}

export interface CopySourceServices<Context> {
  serviceAt(port: string): SourceService | undefined;
  access(service: SourceService, context: Context, container: string): Promise<ContainerAccess | undefined>;
}

export type Pipeline = (ctx: RequestContext) => Promise<Reply>;

export function createPipeline<Context, Known extends ServedAccount>(
  options: PipelineOptions<Context, Known>,
): Pipeline {
  const { accounts, context, definition, pathStyleOnly } = options;
  const { service, parsePath } = definition;
  const router = compileRouter(definition.table);
  const endpoints = new Map(
    Object.entries({ ...healthEndpoints(options.isReady), ...sameSiteOnly(options.managementEndpoints) }),
  );
  const authenticate: Authenticate = createAuthenticate({ ...options, service });
  const isAccount = (name: string) => accounts.find(name) !== undefined;
  const knownHosts = { isAccount, names: options.hostNames ?? [] };
  const ownNames = {
    service: service === 'file' ? service : ('blob' as const),
    serviceAt: (port: string) => options.copySources?.serviceAt(port),
    isAccount,
    hostNames: knownHosts.names,
    copyOrigins: options.copyOrigins ?? new Set<string>(),
  };

  return async function runPipeline(ctx: RequestContext): Promise<Reply> {
    const { incoming, id } = ctx;
    const isFromPage = isFromBrowser(incoming.headers);
    // Over TLS the browser has verified the name against the certificate.
    if (isFromPage && !isSecure(incoming)) checkHost(incoming.headers, knownHosts);
    const host = pathStyleOnly ? undefined : incoming.headers.host;
    const address = parseAddress(incoming.url!, host, isAccount, parsePath);
    const account = accounts.find(address.account);
    if (!account) {
      const endpoint = endpoints.get(`${incoming.method} ${address.rawPath}`) ?? welcomeEndpoint(incoming, options);
      if (endpoint) return await endpoint({ query: parseQuery(address.rawQuery), incoming, body: ctx.body });
      throw unknownAccount(address, host);
    }
    const parsed = parseRequest(incoming, id, address);
    let request = parsed.version === '' ? await withDefaultVersion(ctx, parsed, account) : parsed;
    ctx.request = request;
    let rules: readonly CorsRule[] = [];
    if (isFromPage || request.method === 'OPTIONS') rules = (await options.corsRules?.(context(account))) ?? [];
    if (request.method === 'OPTIONS') return preflight(request, rules);
    if (incoming.headers.origin !== undefined) {
      const { extraHeaders } = ctx;
      ctx.extraHeaders = (reply) => ({ ...extraHeaders?.(reply), ...corsHeaders(request, rules, reply) });
    }
    const lookUpAccess = (container: string) => options.access(context(account), container);
    // Awaited even if not a promise: requests of one batch are all authenticated before any of them goes on, which costs less CPU.
    const identity = await authenticate(account, request, incoming.socket, lookUpAccess);
    const method = definition.effectiveMethod?.(request) ?? request.method;
    if (method !== request.method) {
      request = { ...request, method };
      ctx.request = request;
    }
    const row = router.match(request);
    ctx.operation = row.name;
    const writes = !isRead(request.method, row);
    if (writes && request.secondary) throw fail('InsufficientAccountPermissions');
    if (writes && isFromPage) checkPageWrite(incoming.method!, incoming.headers, rules);
    const rights = authorizeCaller(identity, row, request, lookUpAccess);
    let granted = rights instanceof Promise ? await rights : rights;
    if (row.readsCopySource) {
      const copySource = parseCopySource(request, ownNames);
      if (!('isRemote' in copySource)) {
        const source = copySourceRequest(request, copySource, row);
        const isOwn = copySource.account === request.account;
        const ownerReads = isOwn && row.readsCopySource === 'as owner' && identity.kind === 'owner';
        const { service: sourceService } = copySource;
        granted = { ...granted, source: await authorizeCopySource(sourceService, source, incoming.socket, ownerReads) };
      }
      request = { ...request, copySource };
    }
    const contextFor = createContextFor(account, identity, request);
    const runPart: RunPart<Context> = async (partRow, part) => {
      const caller = await authenticate(account, part, incoming.socket, lookUpAccess);
      if (part.secondary) throw fail('InsufficientAccountPermissions');
      const partContext = context(account, await authorizeCaller(caller, partRow, part, lookUpAccess));
      const partInput = partRow.read(part, options.lenient);
      const partsOfPart = createContextFor(account, caller, part);
      return partRow.reply(await partRow.run(partContext, partInput, partsOfPart, runPart), part);
    };
    const storage = context(account, granted);
    const input = row.read(request, options.lenient);
    const bodyRead = readBodyIfArrived(ctx.body, request, row, input);
    if (bodyRead === false) await receiveBody(ctx.body, request, row, input, storage);
    else if (bodyRead !== true) await bodyRead;
    if (row.replyBytes) await reserveReply(ctx, row.replyBytes(input));
    const rowReply = row.reply(await row.run(storage, input, contextFor, runPart), request);
    const reply = withOverrides(rowReply, identity, row);
    return request.version !== '' && request.version < QUOTED_ETAGS_SINCE ? withUnquotedETag(reply) : reply;
  };

  /**
   * The version of a shared access signature, else the default version that the owner of the account has set, else for anonymous callers
   * the oldest version.
   */
  async function withDefaultVersion(ctx: RequestContext, request: Routable, account: Known): Promise<Routable> {
    const { query, headers } = request;
    const sasVersion = headers.authorization === undefined ? query.sv : undefined;
    const anonymousVersion = headers.authorization === undefined ? OLDEST_VERSION : undefined;
    const version = sasVersion ?? (await options.defaultVersion?.(context(account))) ?? anonymousVersion;
    if (version === undefined || !VERSION.test(version)) return request;
    ctx.extraHeaders = () => ({ 'x-ms-version': version });
    return { ...request, version };
  }

  function authorizeCaller(
    identity: Identity,
    row: OperationAccess,
    request: Request,
    lookUpAccess: LookUpAccess,
    of = service,
  ): Granted | undefined | Promise<Granted> {
    if (identity.kind === 'anonymous') return authorizeAnonymous(row, request, lookUpAccess);
    return authorize(identity, row, of, request.container, of === 'blob' && namesTags(request));
  }

  function createContextFor(account: Known, identity: Identity, { version }: Request): ContextFor<Context> {
    return (part, container) => {
      if (identity.kind === 'anonymous') throw anonymousRefused(version);
      return context(account, authorize(identity, part, service, container));
    };
  }

  /** True: the operation has no body, or it is read. False: the body has not arrived yet. */
  function readBodyIfArrived(
    body: RequestBody,
    request: Routable,
    row: Operation<Context>,
    input: unknown,
  ): boolean | Promise<void> {
    if (!row.body) return true;
    const isWhole = isReadWhole(row.body, checkedLength(body, row.body, request));
    const arrived = isWhole ? body.readIfArrived() : undefined;
    return arrived ? (row.readBody(input, arrived, request) ?? true) : false;
  }

  async function receiveBody(
    body: RequestBody,
    request: Routable,
    row: Operation<Context>,
    input: unknown,
    storage: Context,
  ): Promise<void> {
    const length = checkedLength(body, row.body!, request);
    if (body.awaitsContinue) await row.precheck?.(storage, input);
    body.sendContinue();
    const bytes = isReadWhole(row.body!, length) ? await body.readWhole(length) : body.stream(length);
    await row.readBody(input, bytes, request);
  }

  /** Throws unless the source's own credential, or that of its owner who copies it, authorizes the read. */
  async function authorizeCopySource(
    sourceService: SourceService,
    source: Request,
    socket: RequestContext['incoming']['socket'],
    ownerReads: boolean,
  ): Promise<Granted['source']> {
    const account = accounts.find(source.account);
    try {
      if (!account) throw fail('ResourceNotFound');
      if (ownerReads && source.query.sig === undefined) return { account: account.id, container: undefined };
      const accessOf =
        sourceService === service ? options.access : options.copySources?.access.bind(null, sourceService);
      if (!accessOf) throw fail('ResourceNotFound');
      const lookUpAccess = (container: string) => accessOf(context(account), container);
      const authenticateSource = createAuthenticate({ ...options, service: sourceService });
      const identity = await authenticateSource(account, source, socket, lookUpAccess);
      const row: OperationAccess = { permission: 'read', shape: SOURCE_SHAPES[sourceService] };
      const rights = await authorizeCaller(identity, row, source, lookUpAccess, sourceService);
      return { account: account.id, container: rights?.container };
    } catch (error) {
      throw copySourceError(error);
    }
  }
}

/** The Content-Length. Throws if the operation does not accept a body of that length. */
function checkedLength(body: RequestBody, reader: BodyReader<unknown>, request: Request): number {
  const length = body.declaredLength();
  if (length > reader.bytesMax) throw reader.tooLarge(request);
  return length;
}

function isReadWhole({ wholeBytesMax, bytesMax }: BodyReader<unknown>, length: number): boolean {
  return length <= (wholeBytesMax ?? bytesMax);
}

const OLDEST_VERSION = '2009-09-19';
/** From this version on ETags are quoted, as in HTTP. */
const QUOTED_ETAGS_SINCE = '2011-08-18';

function withUnquotedETag(reply: Reply): Reply {
  const etag = reply.headers?.ETag;
  return etag === undefined
    ? reply
    : { ...reply, headers: { ...reply.headers, ETag: String(etag).replaceAll('"', '') } };
}

const SOURCE_SHAPES = { blob: '/{container}/{blob}', file: '/{share}/{path}' } as const;

/** Get Messages is a GET that changes the messages. */
function isRead(method: string, { permission }: OperationAccess): boolean {
  return (method === 'GET' || method === 'HEAD') && permission !== 'process';
}

/** Applies the header overrides of a shared access signature. */
function withOverrides<Context>(reply: Reply, identity: Identity, row: Operation<Context>): Reply {
  const overrides = responseOverrides(identity, row);
  return overrides ? { ...reply, headers: { ...reply.headers, ...overrides } } : reply;
}
