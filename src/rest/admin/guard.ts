/** Who may administer the server: somebody on this machine who can read the data folder, where the token lies. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { asStorageError, errorFactory, errorTable, type StorageError } from '../../services/common/errors.ts';
import type { Reply } from '../reply.ts';
import type { ManagementCall, ManagementEndpoint } from './management-endpoints.ts';

/** 127.0.0.0/8, also as an IPv6 socket sees it, and ::1. */
const LOOPBACK = /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$|^::1$/i;

const errors = errorTable({
  NotFromHere: [403, 'This endpoint answers to its own machine only.'],
  TokenRequired: [401, 'This endpoint needs the token that lies in the data folder, as a bearer token.'],
  InvalidJson: [400, 'The body is not a JSON object.'],
});
const fail = errorFactory(errors);

/** Without a token nobody may. */
export function requireToken(token: string, endpoint: ManagementEndpoint): ManagementEndpoint {
  const wanted = digest(`Bearer ${token}`);
  return async (call) => {
    try {
      const { socket, headers } = call.incoming;
      if (!isLocalPeer(socket)) throw fail('NotFromHere');
      if (!timingSafeEqual(digest(headers.authorization ?? ''), wanted)) throw fail('TokenRequired');
      return await endpoint(call);
    } catch (error) {
      const known = asStorageError(error);
      if (!known) throw error;
      return jsonErrorReply(known);
    }
  };
}

/** Of a socket. */
interface SocketAddresses {
  readonly remoteAddress?: string | undefined;
  readonly localAddress?: string | undefined;
}

/** Who comes from the address that he comes to is here, too. */
export function isLocalPeer({ remoteAddress, localAddress }: SocketAddresses): boolean {
  if (remoteAddress === undefined) return false;
  return LOOPBACK.test(remoteAddress) || remoteAddress === localAddress;
}

export function jsonReply(status: number, value: unknown, headers?: Reply['headers']): Reply {
  // Keys may be in it.
  const always = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' };
  return { status, headers: { ...always, ...headers }, body: `${JSON.stringify(value)}\n` };
}

export async function parseJsonBody({ body }: ManagementCall): Promise<Readonly<Record<string, unknown>>> {
  const text = (await body()).toString();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw fail('InvalidJson');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fail('InvalidJson');
  return value as Record<string, unknown>;
}

function jsonErrorReply({ status, code, message, retryAfterSeconds }: StorageError): Reply {
  return jsonReply(
    status,
    { error: { code, message } },
    {
      'x-ms-error-code': code,
      'Retry-After': retryAfterSeconds,
      'WWW-Authenticate': status === 401 ? 'Bearer' : undefined,
    },
  );
}

/** Of one length, whatever was sent: the comparison tells nothing by its time. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
