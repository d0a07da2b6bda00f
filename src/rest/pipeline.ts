/** From a request to its reply: whose account, who asks, which operation, whether he may, and what comes of it. */
import { commonErrors, raising } from '../services/common/errors.ts';
import type { AccessPolicy } from '../services/common/policies.ts';
import type { Granted } from '../services/common/storage.ts';
import { checkHost, checkWriteOfPage, isFromBrowser } from '../services/common/web-pages.ts';
import { addressOf, unknownAccount } from './address.ts';
import { forOwnSite, health, type OwnEndpoints, ownLength } from './admin/management-endpoints.ts';
import { type Account, type Authentication, authenticationOf } from './auth/authenticate.ts';
import type { Identity } from './auth/identity.ts';
import { type Asked, isPublic, overridesOf, permit, strangerRefused } from './auth/permissions.ts';
import { sourceRequest, unverified } from './copy-source.ts';
import { type CorsRule, corsHeaders, preflight } from './cors.ts';
import { arrivedBody, type BodyStream, checkLength } from './http/request-body.ts';
import type { BodyReader, HandFor, Operation, Request } from './operation.ts';
import type { Reply } from './reply.ts';
import { isSecure, queryOf, type Routable, requestOf, VERSION } from './request.ts';
import type { Exchange } from './request-context.ts';
import { routerOf } from './router.ts';
import type { Front } from './service.ts';

const fail = raising(commonErrors);

/** What of a container decides who else may use it. */
export interface Access {
  readonly id: bigint;
  readonly level: 'blob' | 'container' | undefined;
  readonly policies: readonly AccessPolicy[];
}

export interface AnsweringOptions<Context, Known extends Account = Account> {
  readonly front: Front<Context>;
  readonly accounts: { find(name: string): Known | undefined };
  /** What the operations of an account are handed. */
  readonly context: (account: Known, granted?: Granted) => Context;
  readonly access: (context: Context, container: string) => Promise<Access | undefined>;
  readonly corsRules?: (context: Context) => Promise<readonly CorsRule[]>;
  /** The version of requests that name none. */
  readonly defaultVersion?: (context: Context) => Promise<string | undefined>;
  /** The store's time. */
  readonly now: () => bigint;
  readonly own?: OwnEndpoints;
  /** Whether requests can be answered, for GET /health/ready. */
  readonly isReady?: () => boolean;
  /** Pass over headers and parameters of features that are missing. */
  readonly loose?: boolean;
  /** Never look for an account in the host. */
  readonly pathStyleOnly?: boolean;
  /** Names of this server by which web pages may ask, besides those that nobody else can have; in lower case. */
  readonly hostNames?: readonly string[];
  readonly oauth?: 'basic' | undefined;
}

/** Hands over a body that has not come yet: whole, or as it comes. */
export type ComingBody = (exchange: Exchange, length: number, whole: boolean) => Promise<Buffer | BodyStream>;
/** Waits until there is room for an answer of so many bytes, or refuses. */
export type RoomForAnswer = (exchange: Exchange, bytes: number) => Promise<void>;

export function answeringOf<Context, Known extends Account>(
  options: AnsweringOptions<Context, Known>,
  comingBody: ComingBody,
  roomForAnswer: RoomForAnswer,
) {
  const { accounts, context, front, pathStyleOnly } = options;
  const { service, pathOf } = front;
  const router = routerOf(front.table);
  const own = new Map(Object.entries({ ...health(options.isReady), ...forOwnSite(options.own) }));
  const authenticate: Authentication = authenticationOf({ ...options, service });
  const isAccount = (name: string) => accounts.find(name) !== undefined;
  const knownHosts = { isAccount, names: options.hostNames ?? [] };

  return async function answer(exchange: Exchange): Promise<Reply> {
    const { incoming, id } = exchange;
    const isOfPage = isFromBrowser(incoming.headers);
    // Over TLS the browser has held the name against the certificate.
    if (isOfPage && !isSecure(incoming)) checkHost(incoming.headers, knownHosts);
    const host = pathStyleOnly ? undefined : incoming.headers.host;
    const address = addressOf(incoming.url!, host, isAccount, pathOf);
    const account = accounts.find(address.account);
    if (!account) {
      const endpoint = own.get(`${incoming.method} ${address.rawPath}`);
      if (endpoint)
        return await endpoint({ query: queryOf(address.rawQuery), incoming, body: () => ownBody(exchange) });
      throw unknownAccount(address, host);
    }
    const asked = requestOf(incoming, id, address);
    let request = asked.version === '' ? await atDefault(exchange, asked, account) : asked;
    exchange.request = request;
    let rules: readonly CorsRule[] = [];
    if (isOfPage || request.method === 'OPTIONS') rules = (await options.corsRules?.(context(account))) ?? [];
    if (request.method === 'OPTIONS') return preflight(request, rules);
    if (incoming.headers.origin !== undefined) {
      const { besides } = exchange;
      exchange.besides = (reply) => ({ ...besides?.(reply), ...corsHeaders(request, rules, reply) });
    }
    const accessOf = (container: string) => options.access(context(account), container);
    // Awaited even where it is known at once: what arrived together is authenticated together, which costs less than each on its way.
    const identity = await authenticate(account, request, incoming.socket, accessOf);
    const method = front.methodOf?.(request) ?? request.method;
    if (method !== request.method) {
      request = { ...request, method };
      exchange.request = request;
    }
    const row = router.match(request);
    exchange.operation = row.name;
    const writes = !isRead(request.method, row);
    if (writes && request.secondary) throw fail('InsufficientAccountPermissions');
    if (writes && isOfPage) checkWriteOfPage(incoming.method!, incoming.headers, rules);
    const rights = grantedTo(identity, row, request, accessOf);
    let granted = rights instanceof Promise ? await rights : rights;
    if (row.copies) {
      const identify = (source: Request) => authenticate(account, source, incoming.socket, accessOf);
      granted = { ...granted, source: await letOut(identity, sourceRequest(request), identify, accessOf) };
    }
    const handFor: HandFor<Context> = (part, container) => {
      if (identity.kind === 'anonymous') throw strangerRefused(request.version);
      return context(account, permit(identity, part, service, container));
    };
    const storage = context(account, granted);
    const input = row.read(request, options.loose);
    const taken = takeArrived(exchange, request, row, input);
    if (taken === false) await takeComing(exchange, request, row, input, storage);
    else if (taken !== true) await taken;
    if (row.answerBytes) await roomForAnswer(exchange, row.answerBytes(input));
    const answered = row.reply(await row.run(storage, input, handFor), request);
    const reply = overridden(answered, identity, row);
    return request.version !== '' && request.version < QUOTED_SINCE ? unquoted(reply) : reply;
  };

  async function ownBody(exchange: Exchange): Promise<Buffer> {
    const length = ownLength(exchange.incoming);
    if (exchange.awaitsContinue) exchange.outgoing.writeContinue();
    exchange.awaitsContinue = false;
    return arrivedBody(exchange.incoming) ?? ((await comingBody(exchange, length, true)) as Buffer);
  }

  /**
   * A shared access signature brings a version with it; otherwise the owner of the account has said how requests without one are
   * meant, or a stranger gets the oldest.
   */
  async function atDefault(exchange: Exchange, asked: Routable, account: Known): Promise<Routable> {
    const { query, headers } = asked;
    const own = headers.authorization === undefined ? query.sv : undefined;
    const stranger = headers.authorization === undefined ? OLDEST_VERSION : undefined;
    const version = own ?? (await options.defaultVersion?.(context(account))) ?? stranger;
    if (version === undefined || !VERSION.test(version)) return asked;
    exchange.besides = () => ({ 'x-ms-version': version });
    return { ...asked, version };
  }

  function grantedTo(
    identity: Identity,
    row: Asked,
    request: Request,
    accessOf: AccessOf,
  ): Granted | undefined | Promise<Granted> {
    if (identity.kind === 'anonymous') return welcome(row, request, accessOf);
    return permit(identity, row, service, request.container);
  }

  /** Whether it has come, as a small body does with its headers. */
  function takeArrived(
    { incoming, awaitsContinue }: Exchange,
    request: Routable,
    row: Operation<Context>,
    input: unknown,
  ): boolean | Promise<void> {
    if (!row.body) return true;
    const whole = isWhole(row.body, checkLength(incoming, row.body, request));
    const arrived = whole && !awaitsContinue ? arrivedBody(incoming) : undefined;
    return arrived ? (row.readBody(input, arrived, request) ?? true) : false;
  }

  async function takeComing(
    exchange: Exchange,
    request: Routable,
    row: Operation<Context>,
    input: unknown,
    storage: Context,
  ): Promise<void> {
    const { incoming, outgoing } = exchange;
    const length = checkLength(incoming, row.body!, request);
    if (exchange.awaitsContinue) {
      await row.look?.(storage, input);
      outgoing.writeContinue();
      exchange.awaitsContinue = false;
    }
    const whole = isWhole(row.body!, length);
    await row.readBody(input, (whole && arrivedBody(incoming)) || (await comingBody(exchange, length, whole)), request);
  }

  /** The container of a copy's source, if the caller may read there only because of its settings. A key opens all of the account. */
  async function letOut(
    identity: Identity,
    source: Request,
    identify: (request: Request) => Identity | Promise<Identity>,
    accessOf: AccessOf,
  ): Promise<bigint | undefined> {
    if (identity.kind === 'owner' && source.query.sig === undefined) return undefined;
    try {
      return (await grantedTo(await identify(source), READ_BLOB, source, accessOf))?.container;
    } catch (error) {
      throw unverified(error);
    }
  }
}

function isWhole({ wholeBytesMax, bytesMax }: BodyReader<unknown>, length: number): boolean {
  return length <= (wholeBytesMax ?? bytesMax);
}

const OLDEST_VERSION = '2009-09-19';
/** From this version on ETags are as HTTP has them. */
const QUOTED_SINCE = '2011-08-18';

function unquoted(reply: Reply): Reply {
  const etag = reply.headers?.ETag;
  return etag === undefined
    ? reply
    : { ...reply, headers: { ...reply.headers, ETag: String(etag).replaceAll('"', '') } };
}

const READ_BLOB: Asked = { permission: 'read', shape: '/{container}/{blob}' };

type AccessOf = (container: string) => Promise<Access | undefined>;

/** Lets a stranger in where the container is open to all. */
async function welcome(row: Asked, { container, version }: Request, accessOf: AccessOf): Promise<Granted> {
  const access = container === '' ? undefined : await accessOf(container);
  if (!access || !isPublic(row, access.level)) throw strangerRefused(version);
  return { container: access.id };
}

/** To take a message is a GET that changes something. */
function isRead(method: string, { permission }: Asked): boolean {
  return (method === 'GET' || method === 'HEAD') && permission !== 'process';
}

/** What is sent of a blob is said as the signature wants it. */
function overridden<Context>(reply: Reply, identity: Identity, row: Operation<Context>): Reply {
  const overrides = overridesOf(identity, row);
  return overrides ? { ...reply, headers: { ...reply.headers, ...overrides } } : reply;
}
