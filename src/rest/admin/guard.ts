/** Authorization of management calls: from this machine only, and with the token in the data folder. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { asStorageError, errorFactory, errorTable, type StorageError } from '../../services/common/errors.ts';
import type { Reply } from '../reply.ts';
import { type ManagementCall, type ManagementEndpoint, readManagementBody } from './management-endpoints.ts';

/** 127.0.0.0/8, also as an IPv4-mapped IPv6 address, and ::1. */
const LOOPBACK = /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$|^::1$/i;

const errors = errorTable({
  NotFromHere: [403, 'This endpoint answers to its own machine only.'],
  TokenRequired: [401, 'This endpoint needs the token that lies in the data folder, as a bearer token.'],
  InvalidJson: [400, 'The body is not a JSON object.'],
});
const fail = errorFactory(errors);

export function requireToken(token: string, endpoint: ManagementEndpoint): ManagementEndpoint {
  const expected = digest(`Bearer ${token}`);
  return async (call) => {
    try {
      const { socket, headers } = call.incoming;
      if (!isLocalPeer(socket)) throw fail('NotFromHere');
      if (!timingSafeEqual(digest(headers.authorization ?? ''), expected)) throw fail('TokenRequired');
      return await endpoint(call);
    } catch (error) {
      const known = asStorageError(error);
      if (!known) throw error;
      return jsonErrorReply(known);
    }
  };
}

interface SocketAddresses {
  readonly remoteAddress?: string | undefined;
  readonly localAddress?: string | undefined;
}

/** A peer whose address is the one that it connected to is on this machine, too. */
export function isLocalPeer({ remoteAddress, localAddress }: SocketAddresses): boolean {
  if (remoteAddress === undefined) return false;
  return LOOPBACK.test(remoteAddress) || remoteAddress === localAddress;
}

export function jsonReply(status: number, value: unknown, headers?: Reply['headers']): Reply {
  // The reply may contain account keys, so it is not cached.
  const common = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' };
  return { status, headers: { ...common, ...headers }, body: `${JSON.stringify(value)}\n` };
}

export async function parseJsonBody(call: ManagementCall): Promise<Readonly<Record<string, unknown>>> {
  const text = (await readManagementBody(call)).toString();
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

/** Digests have one length, whatever was sent, so the comparison takes constant time. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
