/** The text that a shared access signature signs, in the form of its version; and the making of new ones. */
import type { StorageError } from '../../services/errors.ts';
import {
  type AccountSasFields,
  OVERRIDES_SINCE,
  RESOURCE_SINCE,
  type SentSas,
  type ServiceSasFields,
  sasRefused,
} from './sas.ts';
import { signedText } from './shared-key.ts';
import { isSignature, signatureOf } from './signing.ts';

/** What a service SAS is used for; the names are decoded. */
export interface SasTarget {
  readonly container: string;
  /** Empty: the container itself. */
  readonly blob: string;
  readonly snapshot?: string | undefined;
  readonly versionId?: string | undefined;
}

/** Versions in which the form of the text changed. */
const SERVICE_NAMED_SINCE = '2015-02-21';
const PROTOCOL_SINCE = '2015-04-05';
const SCOPE_SINCE = '2020-12-06';

export function accountStringToSign(account: string, sas: AccountSasFields): string {
  const { version, permissions, services, resourceTypes, start, expiry, ip, protocol, encryptionScope } = sas;
  const lines = [account, permissions, services, resourceTypes, start, expiry, ip, protocol, version];
  if (version >= SCOPE_SINCE) lines.push(encryptionScope);
  return `${lines.join('\n')}\n`;
}

export function serviceStringToSign(account: string, target: SasTarget, sas: ServiceSasFields): string {
  const { version, permissions, start, expiry, identifier, ip, protocol, resource, encryptionScope, overrides } = sas;
  const lines = [permissions, start, expiry, canonicalResource(account, target, sas), identifier];
  if (version >= PROTOCOL_SINCE) lines.push(ip, protocol);
  lines.push(version);
  if (version >= RESOURCE_SINCE) lines.push(resource, momentOf(resource, target));
  if (version >= SCOPE_SINCE) lines.push(encryptionScope);
  if (version >= OVERRIDES_SINCE) lines.push(...overrides);
  return lines.join('\n');
}

/** Any of the account's keys, in base64, will do. */
export function isSignedBy(sas: Pick<SentSas, 'signature'>, text: string, keys: readonly string[]): boolean {
  let isSigned = false;
  for (const key of keys) isSigned = isSignature(sas.signature, Buffer.from(key, 'base64'), text) || isSigned;
  return isSigned;
}

/** The text is told only where the key is known to everyone anyway. */
export function sasMismatch(account: string, text: string): StorageError {
  const shown = signedText(account, text);
  return sasRefused(
    shown === undefined ? 'Signature did not match.' : `Signature did not match. String to sign used was ${shown}`,
  );
}

/** Defaults are empty. */
type Optional<Fields, Needed extends keyof Fields> = Pick<Fields, Needed> & Partial<Omit<Fields, 'kind'>>;
export type NewAccountSas = Optional<
  AccountSasFields,
  'version' | 'permissions' | 'services' | 'resourceTypes' | 'expiry'
>;
export type NewServiceSas = Optional<ServiceSasFields, 'version' | 'resource'>;

/** The query of an account SAS; the key is in base64. */
export function accountSasToken(account: string, wanted: NewAccountSas, key: string): string {
  const sas: AccountSasFields = { ...EMPTY, ...wanted, kind: 'account SAS' };
  const { services, resourceTypes } = sas;
  return tokenOf(sas, { ss: services, srt: resourceTypes }, accountStringToSign(account, sas), key);
}

/** The query of a service SAS for this container or blob; the key is in base64. */
export function serviceSasToken(account: string, target: SasTarget, wanted: NewServiceSas, key: string): string {
  const sas: ServiceSasFields = { ...EMPTY, ...wanted, kind: 'service SAS' };
  const { resource, identifier, depth, overrides } = sas;
  const [rscc, rscd, rsce, rscl, rsct] = overrides;
  const own = {
    sr: resource,
    si: identifier,
    sdd: depth === undefined ? '' : String(depth),
    rscc,
    rscd,
    rsce,
    rscl,
    rsct,
  };
  return tokenOf(sas, own, serviceStringToSign(account, target, sas), key);
}

const EMPTY = {
  permissions: '',
  start: '',
  expiry: '',
  ip: '',
  protocol: '',
  encryptionScope: '',
  identifier: '',
  depth: undefined,
  overrides: ['', '', '', '', ''],
} as const;

function tokenOf(
  sas: AccountSasFields | ServiceSasFields,
  own: Readonly<Record<string, string>>,
  text: string,
  key: string,
): string {
  const { version: sv, start: st, expiry: se, permissions: sp, ip: sip, protocol: spr, encryptionScope: ses } = sas;
  const sig = signatureOf(text, Buffer.from(key, 'base64'));
  return Object.entries({ sv, ...own, st, se, sp, sip, spr, ses, sig })
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
}

function canonicalResource(account: string, { container, blob }: SasTarget, sas: ServiceSasFields): string {
  const root = `${sas.version >= SERVICE_NAMED_SINCE ? '/blob' : ''}/${account}/${container}`;
  if (sas.resource === 'c') return root;
  const name = sas.resource === 'd' ? blob.split('/').slice(0, sas.depth).join('/') : blob;
  return name === '' ? root : `${root}/${name}`;
}

function momentOf(resource: ServiceSasFields['resource'], { snapshot = '', versionId = '' }: SasTarget): string {
  return resource === 'bs' ? snapshot : resource === 'bv' ? versionId : '';
}
