/** Checks of a shared access signature after its HMAC: stored policy, lifetime, protocol, IP range. */
import { formatRfc1123 } from '../../base/time.ts';
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import type { AccessPolicy } from '../../services/common/policies.ts';
import { sasRefused } from './sas-fields.ts';
import { parseIpRange, parseIpv4, parseSasDate, type SentSas, type SentServiceSas } from './sas-parser.ts';

const fail = errorFactory(commonErrors);

/** Each field is in the signature or in the policy; undefined: the policy does not exist (any more). */
export function mergePolicy(sas: SentServiceSas, policy: Omit<AccessPolicy, 'id'> | undefined): SentServiceSas {
  if (policy === undefined) throw sasRefused('SAS identifier cannot be found for specified signed identifier');
  return {
    ...sas,
    start: mergeField(sas.start, policy.start),
    expiry: mergeField(sas.expiry, policy.expiry),
    permissions: mergeField(sas.permissions, policy.permission),
  };
}

export interface Circumstances {
  readonly nowTicks: bigint;
  readonly remoteAddress: string | undefined;
  /** Whether the request came over TLS. */
  readonly secure: boolean;
}

/** Throws unless the signature, merged with its policy, is valid now and for this connection. */
export function checkSas(sas: SentSas, { nowTicks, remoteAddress, secure }: Circumstances): void {
  checkTime(sas, nowTicks);
  if (sas.protocol === 'https' && !secure) throw fail('AuthorizationProtocolMismatch');
  if (sas.ip !== '' && !isInIpRange(remoteAddress ?? '', sas.ip)) {
    throw fail(
      'AuthorizationSourceIPMismatch',
      undefined,
      `This request is not authorized to perform this operation using this source IP ${remoteAddress ?? ''}.`,
    );
  }
}

function checkTime(sas: SentSas, now: bigint): void {
  const start = sas.start === '' ? undefined : parseSasDate(sas.start);
  const expiry = parseSasDate(sas.expiry);
  if (expiry === undefined) throw sasRefused('se is mandatory. Cannot be empty');
  if (sas.permissions === '') throw sasRefused('sp is mandatory. Cannot be empty');
  if (expiry <= (start ?? now)) {
    throw sasRefused(
      `Signed expiry time [${formatRfc1123(expiry)}] must be after signed start time [${formatRfc1123(start ?? now)}]`,
    );
  }
  if (start !== undefined && (now < start || now >= expiry)) {
    throw sasRefused(
      `Signature not valid in the specified time frame: Start [${formatRfc1123(start)}] - Expiry [${formatRfc1123(expiry)}] - Current [${formatRfc1123(now)}]`,
    );
  }
}

/** On a dual-stack socket Node shows an IPv4 peer as ::ffff:1.2.3.4. */
function isInIpRange(address: string, range: string): boolean {
  const found = parseIpv4(address.replace(/^::ffff:/i, ''));
  const [first, last] = parseIpRange(range) ?? [];
  return found !== undefined && first !== undefined && last !== undefined && first <= found && found <= last;
}

function mergeField(sent: string, stored: string | undefined): string {
  if (sent === '') return stored ?? '';
  if (stored) throw sasRefused('Access policy fields can be associated with signature or SAS identifier but not both.');
  return sent;
}
