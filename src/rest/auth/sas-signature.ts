/** Verification of shared access signatures: the string-to-sign by version; and creation of tokens. */
import type { StorageError } from '../../services/common/errors.ts';
import { sign, verifySignature } from './canonical.ts';
import { sasRefused } from './sas-fields.ts';
import type { AccountSasFields, SentSas } from './sas-parser.ts';
import {
  type BlobSasFields,
  type FileSasFields,
  OVERRIDES_SINCE,
  type QueueSasFields,
  RESOURCE_SINCE,
  type ServiceSasFields,
  type TableSasFields,
} from './service-sas.ts';
import { discloseStringToSign } from './shared-key.ts';

/** The resource that a service SAS is used for; the names are decoded. */
interface SasTarget {
  /** A container, queue or share; a table is named in the signature itself. */
  readonly container: string;
  /** A blob or file; empty: the container itself. */
  readonly blob?: string;
  readonly snapshot?: string | undefined;
  readonly versionId?: string | undefined;
}

/** Versions in which the form of the string-to-sign changed. */
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
  const { version, permissions, start, expiry, identifier, ip, protocol } = sas;
  const lines = [permissions, start, expiry, canonicalResource(account, target, sas), identifier];
  if (version >= PROTOCOL_SINCE) lines.push(ip, protocol);
  lines.push(version, ...serviceLines(target, sas));
  return lines.join('\n');
}

function serviceLines(target: SasTarget, sas: ServiceSasFields): readonly string[] {
  if (sas.service === 'queue') return [];
  if (sas.service === 'table') return sas.keys.map((key) => key ?? '');
  if (sas.service === 'file') return sas.version >= OVERRIDES_SINCE ? sas.overrides : [];
  const { version, resource, encryptionScope, overrides } = sas;
  const lines: string[] = [];
  if (version >= RESOURCE_SINCE) lines.push(resource, snapshotOrVersion(resource, target));
  if (version >= SCOPE_SINCE) lines.push(encryptionScope);
  if (version >= OVERRIDES_SINCE) lines.push(...overrides);
  return lines;
}

/** Whether any of the account's keys, in base64, made the signature. All keys are tried, so that the time does not tell which one. */
export function isSignedBy(sas: Pick<SentSas, 'signature'>, text: string, keys: readonly string[]): boolean {
  let isSigned = false;
  for (const key of keys) isSigned = verifySignature(sas.signature, key, text) || isSigned;
  return isSigned;
}

/** The string-to-sign is disclosed only where the key is public anyway. */
export function sasMismatch(account: string, text: string): StorageError {
  const shown = discloseStringToSign(account, text);
  return sasRefused(
    shown === undefined ? 'Signature did not match.' : `Signature did not match. String to sign used was ${shown}`,
  );
}

/** Defaults are empty. */
type NewSas<Fields, Needed extends keyof Fields> = Pick<Fields, Needed> & Partial<Omit<Fields, 'kind' | 'service'>>;
type NewAccountSas = NewSas<AccountSasFields, 'version' | 'permissions' | 'services' | 'resourceTypes' | 'expiry'>;
type NewBlobSas = NewSas<BlobSasFields, 'version' | 'resource'>;
type NewQueueSas = NewSas<QueueSasFields, 'version'>;
type NewTableSas = NewSas<TableSasFields, 'version' | 'table'>;
type NewFileSas = NewSas<FileSasFields, 'version' | 'resource'>;

/** The query of an account SAS; the key is in base64. */
export function accountSasToken(account: string, wanted: NewAccountSas, key: string): string {
  const sas: AccountSasFields = { ...EMPTY, ...wanted, kind: 'account SAS' };
  const { services, resourceTypes } = sas;
  return formatToken(sas, { ss: services, srt: resourceTypes }, accountStringToSign(account, sas), key);
}

/** The query of a service SAS for this container or blob; the key is in base64. */
export function blobSasToken(account: string, target: SasTarget, wanted: NewBlobSas, key: string): string {
  const sas: BlobSasFields = { ...EMPTY, ...EMPTY_BLOB_FIELDS, ...wanted, kind: 'service SAS', service: 'blob' };
  const { resource, identifier, depth, overrides } = sas;
  const sdd = depth === undefined ? '' : String(depth);
  const own = withoutEmpty({ sr: resource, si: identifier, sdd, ...overrideFields(overrides) });
  return formatToken(sas, own, serviceStringToSign(account, target, sas), key);
}

/** The query of a service SAS for this share or file; the key is in base64. */
export function fileSasToken(account: string, target: SasTarget, wanted: NewFileSas, key: string): string {
  const sas: FileSasFields = { ...EMPTY, ...EMPTY_FILE_FIELDS, ...wanted, kind: 'service SAS', service: 'file' };
  const { resource, identifier, overrides } = sas;
  const own = withoutEmpty({ sr: resource, si: identifier, ...overrideFields(overrides) });
  return formatToken(sas, own, serviceStringToSign(account, target, sas), key);
}

function overrideFields([rscc, rscd, rsce, rscl, rsct]: BlobSasFields['overrides']) {
  return { rscc, rscd, rsce, rscl, rsct };
}

/** The query of a service SAS for this queue; the key is in base64. */
export function queueSasToken(account: string, queue: string, wanted: NewQueueSas, key: string): string {
  const sas: QueueSasFields = { ...EMPTY, ...wanted, kind: 'service SAS', service: 'queue' };
  const text = serviceStringToSign(account, { container: queue }, sas);
  return formatToken(sas, withoutEmpty({ si: sas.identifier }), text, key);
}

/** The query of a service SAS for the table named in it; the key is in base64. */
export function tableSasToken(account: string, wanted: NewTableSas, key: string): string {
  const sas: TableSasFields = { ...EMPTY, ...EMPTY_TABLE_FIELDS, ...wanted, kind: 'service SAS', service: 'table' };
  const { table, identifier } = sas;
  const [spk, srk, epk, erk] = sas.keys;
  const text = serviceStringToSign(account, { container: table }, sas);
  return formatToken(sas, { ...withoutEmpty({ tn: table, si: identifier }), spk, srk, epk, erk }, text, key);
}

const EMPTY = {
  permissions: '',
  start: '',
  expiry: '',
  ip: '',
  protocol: '',
  encryptionScope: '',
  identifier: '',
} as const;
const EMPTY_FILE_FIELDS = { overrides: ['', '', '', '', ''] } as const;
const EMPTY_BLOB_FIELDS = { depth: undefined, ...EMPTY_FILE_FIELDS } as const;
const EMPTY_TABLE_FIELDS = { keys: [undefined, undefined, undefined, undefined] } as const;

/** Undefined fields are left out; the key of an entity may be empty. */
function formatToken(
  sas: AccountSasFields | ServiceSasFields,
  own: Readonly<Record<string, string | undefined>>,
  text: string,
  key: string,
): string {
  const { version: sv, start: st, expiry: se, permissions: sp, ip: sip, protocol: spr, encryptionScope: ses } = sas;
  const sig = sign(text, key);
  return Object.entries({ ...withoutEmpty({ sv, st, se, sp, sip, spr, ses }), ...own, sig })
    .map(([name, value]) => (value === undefined ? '' : `${name}=${encodeURIComponent(value)}`))
    .filter((field) => field !== '')
    .join('&');
}

function withoutEmpty(fields: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}

function canonicalResource(account: string, { container, blob = '' }: SasTarget, sas: ServiceSasFields): string {
  const name = sas.service === 'table' ? sas.table.toLowerCase() : container;
  const root = `${sas.version >= SERVICE_NAMED_SINCE ? `/${sas.service}` : ''}/${account}/${name}`;
  if (sas.service === 'file') return sas.resource === 'f' && blob !== '' ? `${root}/${blob}` : root;
  return sas.service === 'blob' ? `${root}${blobResource(blob, sas)}` : root;
}

function blobResource(blob: string, sas: BlobSasFields): string {
  if (sas.resource === 'c') return '';
  const name = sas.resource === 'd' ? blob.split('/').slice(0, sas.depth).join('/') : blob;
  return name === '' ? '' : `/${name}`;
}

function snapshotOrVersion(resource: BlobSasFields['resource'], { snapshot = '', versionId = '' }: SasTarget): string {
  return resource === 'bs' ? snapshot : resource === 'bv' ? versionId : '';
}
