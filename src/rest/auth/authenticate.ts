/** Authentication: Shared Key, shared access signature or bearer token → identity. Throws if the credential is invalid; without one: anonymous. */
import { commonErrors, errorFactory, type StorageError } from '../../services/common/errors.ts';
import type { ServiceName } from '../../services/common/names.ts';
import type { Granted } from '../../services/common/storage.ts';
import type { Request } from '../operation.ts';
import { checkBearer } from './bearer.ts';
import { ANONYMOUS, type Identity, type LookUpAccess, OWNER } from './identity.ts';
import { checkSas, mergePolicy } from './sas-checks.ts';
import { parseSas, type SentSas, type SentServiceSas } from './sas-parser.ts';
import { accountStringToSign, isSignedBy, sasMismatch, serviceStringToSign } from './sas-signature.ts';
import { overrideHeaders, type TableSasFields } from './service-sas.ts';
import { type Account, authScheme, createSharedKeyCheck } from './shared-key.ts';

const fail = errorFactory(commonErrors);

/** The socket of a request; only a TLS socket has `encrypted`. */
interface Peer {
  readonly remoteAddress?: string | undefined;
  readonly encrypted?: boolean;
}

/** A promise only where a stored access policy must be looked up. */
export type Authenticate = (
  account: Account,
  request: Request,
  peer: Peer,
  lookUpAccess: LookUpAccess,
) => Identity | Promise<Identity>;

interface AuthenticationOptions {
  readonly service: ServiceName;
  /** The store's time, by which shared access signatures begin and expire. */
  readonly now: () => bigint;
  /** Accept bearer tokens, validating their claims only. */
  readonly oauth?: 'basic' | undefined;
}

export function createAuthenticate({ service, now, oauth }: AuthenticationOptions): Authenticate {
  const sharedKeys = new WeakMap<Account, ReturnType<typeof createSharedKeyCheck>>();

  function checkSharedKey(account: Account, request: Request): void {
    let check = sharedKeys.get(account);
    if (!check) {
      check = createSharedKeyCheck(account, service);
      sharedKeys.set(account, check);
    }
    try {
      check(request);
    } catch (error) {
      // For a path-style secondary address some clients sign the primary path.
      if (!request.secondary || request.base === '') throw error;
      check({ ...request, rawPath: primaryPath(request) });
    }
  }

  return (account, request, peer, lookUpAccess) => {
    const { authorization } = request.headers;
    if (authorization !== undefined) {
      if (authScheme(String(authorization)).toLowerCase() !== 'bearer') checkSharedKey(account, request);
      else if (oauth) {
        checkBearer(String(authorization), { account: account.name, service });
        if (service === 'file') checkIntent(request);
      } else throw bearerNotEnabled();
      return OWNER;
    }
    const sas = parseSas(request.query, service);
    if (!sas) return ANONYMOUS;
    checkSignature(account, request, sas);
    const { remoteAddress, encrypted: secure = false } = peer;
    const circumstances = { nowTicks: now(), remoteAddress, secure };
    if (sas.kind === 'service SAS' && sas.identifier !== '') {
      const container = sas.service === 'table' ? sas.table : request.container;
      return checkWithPolicy(sas, container, lookUpAccess, (merged) => checkSas(merged, circumstances));
    }
    checkSas(sas, circumstances);
    return identityFrom(sas);
  };
}

/** Only the first segment of the path, the account, differs: `-secondary` in any other segment is part of a name. */
function primaryPath({ rawPath, account }: Request): string {
  const end = rawPath.indexOf('/', 1);
  return `/${account}${end < 0 ? '' : rawPath.slice(end)}`;
}

function checkSignature(account: Account, { container, item: blob, query }: Request, sas: SentSas): void {
  const { snapshot, versionid: versionId } = query;
  const text =
    sas.kind === 'account SAS'
      ? accountStringToSign(account.name, sas)
      : serviceStringToSign(account.name, { container, blob, snapshot, versionId }, sas);
  if (!isSignedBy(sas, text, account.keys)) throw sasMismatch(account.name, text);
}

/** The policy is looked up for every request, so that a change takes effect at once. */
async function checkWithPolicy(
  sas: SentServiceSas,
  container: string,
  lookUpAccess: LookUpAccess,
  check: (merged: SentServiceSas) => void,
): Promise<Identity> {
  const found = await lookUpAccess(container);
  const merged = mergePolicy(
    sas,
    found?.policies.find(({ id }) => id === sas.identifier),
  );
  check(merged);
  return identityFrom(merged, found?.id);
}

function identityFrom(sas: SentSas, container?: bigint): Identity {
  const { permissions } = sas;
  if (sas.kind === 'account SAS') {
    const { services, resourceTypes } = sas;
    return { kind: sas.kind, permissions, services, resourceTypes };
  }
  const { kind, service } = sas;
  if (service === 'table') {
    return { kind, permissions, container, table: sas.table.toLowerCase(), entities: entityRange(sas.keys) };
  }
  const hasOverrides = service === 'blob' || service === 'file';
  return { kind, permissions, container, responseHeaders: hasOverrides ? overrideHeaders(sas) : undefined };
}

function entityRange([spk, srk, epk, erk]: TableSasFields['keys']): Granted['entities'] {
  if (spk === undefined && epk === undefined) return undefined;
  return {
    from: spk === undefined ? undefined : { partitionKey: spk, rowKey: srk },
    to: epk === undefined ? undefined : { partitionKey: epk, rowKey: erk },
  };
}

/** A token reads and writes files whatever their permissions say: its holder has to say that this is meant. */
function checkIntent({ headers }: Request): void {
  const intent = headers[INTENT];
  if (intent === undefined) throw fail('MissingRequiredHeader', { HeaderName: INTENT });
  if (String(intent).toLowerCase() !== 'backup')
    throw fail('InvalidHeaderValue', { HeaderName: INTENT, HeaderValue: String(intent) });
}

const INTENT = 'x-ms-file-request-intent';

function bearerNotEnabled(): StorageError {
  return fail('NotImplemented', undefined, 'Bearer is taken only by a server that was started with --oauth basic.');
}
