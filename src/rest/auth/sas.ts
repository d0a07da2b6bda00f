/** Shared access signatures: what they carry in the query. Nothing here believes them; see sas-strings.ts and sas-checks.ts. */
import { ticksOf } from '../../base/time.ts';
import { commonErrors, raising, type StorageError } from '../../services/errors.ts';

const fail = raising(commonErrors);

export type SasResource = 'b' | 'bs' | 'bv' | 'c' | 'd';

/** Texts as they were sent, since they are what was signed; an absent one is empty. */
interface SasFields {
  readonly version: string;
  readonly permissions: string;
  readonly start: string;
  readonly expiry: string;
  readonly ip: string;
  readonly protocol: string;
  readonly encryptionScope: string;
}

export interface AccountSasFields extends SasFields {
  readonly kind: 'account SAS';
  readonly services: string;
  readonly resourceTypes: string;
}

export interface ServiceSasFields extends SasFields {
  readonly kind: 'service SAS';
  readonly resource: SasResource;
  /** Of the stored access policy. */
  readonly identifier: string;
  /** Of a directory: how many segments of the path belong to its name. */
  readonly depth: number | undefined;
  /** rscc, rscd, rsce, rscl and rsct. */
  readonly overrides: readonly [
    cacheControl: string,
    contentDisposition: string,
    contentEncoding: string,
    contentLanguage: string,
    contentType: string,
  ];
}

export type SentSas = (AccountSasFields | ServiceSasFields) & { readonly signature: string };
export type SentServiceSas = Extract<SentSas, { kind: 'service SAS' }>;

type Query = Readonly<Record<string, string>>;

/** The first version with signatures that carry their version, and that with signatures of whole accounts. */
const SERVICE_SAS_SINCE = '2012-02-12';
const ACCOUNT_SAS_SINCE = '2015-04-05';
/** In older versions sr is not signed: what is signed for a blob could be called one for a directory of its name. */
export const RESOURCE_SINCE = '2018-11-09';
/** In older versions they are not signed, so that anyone could have added them. */
export const OVERRIDES_SINCE = '2013-08-15';
const VERSION = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;
const SERVICES = /^[bfqt]+$/;
const RESOURCE_TYPES = /^[sco]+$/;
/** Of these the order counts; clients disagree about the place of the younger ones. */
const ORDERED = 'racwdl';
const SERVICE_PERMISSIONS = /^[racwdxyltfmeopi]*$/;
const ACCOUNT_PERMISSIONS = /^[rwdxylacuptfi]*$/;

/** What a query carries; undefined: no shared access signature at all. */
export function readSas(query: Query): SentSas | undefined {
  if (query.sig === undefined && query.sv === undefined) return undefined;
  if (query.skoid !== undefined) {
    throw fail(
      'NotImplemented',
      undefined,
      'User delegation SAS is not implemented by this server yet; use an account key.',
    );
  }
  const signature = mandatory(query, 'sig');
  const version = mandatory(query, 'sv');
  const isOfAccount = query.ss !== undefined || query.srt !== undefined;
  if (!VERSION.test(version) || version < (isOfAccount ? ACCOUNT_SAS_SINCE : SERVICE_SAS_SINCE)) throw malformed('sv');
  const fields = {
    signature,
    version,
    permissions: query.sp ?? '',
    start: query.st ?? '',
    expiry: query.se ?? '',
    ip: query.sip ?? '',
    protocol: query.spr ?? '',
    encryptionScope: query.ses ?? '',
  };
  if (fields.start !== '' && parseSasDate(fields.start) === undefined) throw malformed('st');
  if (fields.expiry !== '' && parseSasDate(fields.expiry) === undefined) throw malformed('se');
  if (fields.ip !== '' && parseIpRange(fields.ip) === undefined) throw malformed('sip');
  if (fields.protocol !== '' && !/^https(?:,http)?$/.test(fields.protocol)) throw malformed('spr');
  return isOfAccount ? accountSasOf(query, fields) : serviceSasOf(query, fields);
}

/** YYYY-MM-DD, or with a time in UTC of minutes, seconds or parts of a second. */
export function parseSasDate(text: string): bigint | undefined {
  const [, day, minute = '00:00', second = '00', fraction = ''] =
    /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,7}))?)?Z)?$/.exec(text) ?? [];
  const milliseconds = Date.parse(`${day}T${minute}:${second}Z`);
  // A day that its month does not have would become one of the next month.
  if (Number.isNaN(milliseconds) || new Date(milliseconds).toISOString().slice(0, 10) !== day) return undefined;
  return ticksOf(milliseconds) + BigInt(fraction.padEnd(7, '0'));
}

/** The first and the last IPv4 address, as numbers. */
export function parseIpRange(text: string): readonly [first: number, last: number] | undefined {
  const [first, last = first, ...more] = text.split('-').map(parseIpv4);
  return more.length > 0 || first === undefined || last === undefined || last < first ? undefined : [first, last];
}

export function parseIpv4(text: string): number | undefined {
  if (!/^(?:\d{1,3}\.){3}\d{1,3}$/.test(text)) return undefined;
  const parts = text.split('.').map(Number);
  return parts.some((part) => part > 255) ? undefined : parts.reduce((all, part) => all * 256 + part, 0);
}

/** The headers of a read that are to say something else than what is stored, in UTF-8 as Node sends bytes. */
export function responseHeadersOf({
  overrides,
}: Pick<ServiceSasFields, 'overrides'>): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  OVERRIDDEN.forEach((name, at) => {
    if (overrides[at] !== '') headers[name] = Buffer.from(overrides[at]!, 'utf8').toString('latin1');
  });
  return headers;
}

const OVERRIDDEN = ['Cache-Control', 'Content-Disposition', 'Content-Encoding', 'Content-Language', 'Content-Type'];

export function sasRefused(detail: string): StorageError {
  return fail('AuthenticationFailed', { AuthenticationErrorDetail: detail });
}

type Common = SasFields & { readonly signature: string };

function accountSasOf(query: Query, fields: Common): SentSas {
  const services = mandatory(query, 'ss');
  const resourceTypes = mandatory(query, 'srt');
  mandatory(query, 'sp');
  mandatory(query, 'se');
  if (!SERVICES.test(services)) throw malformed('ss');
  if (!RESOURCE_TYPES.test(resourceTypes)) throw malformed('srt');
  if (!ACCOUNT_PERMISSIONS.test(fields.permissions)) throw malformed('sp');
  return { kind: 'account SAS', ...fields, services, resourceTypes };
}

function serviceSasOf(query: Query, fields: Common): SentSas {
  const resource = mandatory(query, 'sr');
  if (!isResource(resource)) throw malformed('sr');
  if (fields.version < RESOURCE_SINCE && resource !== 'b' && resource !== 'c') throw malformed('sr');
  const identifier = query.si ?? '';
  if (identifier === '') {
    mandatory(query, 'sp');
    mandatory(query, 'se');
  }
  if (!isServicePermissions(fields.permissions)) throw malformed('sp');
  const depth = resource === 'd' ? mandatory(query, 'sdd') : undefined;
  if (depth !== undefined && !/^\d{1,3}$/.test(depth)) throw malformed('sdd');
  return {
    kind: 'service SAS',
    ...fields,
    resource,
    identifier,
    depth: depth === undefined ? undefined : Number(depth),
    overrides: fields.version < OVERRIDES_SINCE ? NO_OVERRIDES : overridesOf(query),
  };
}

const NO_OVERRIDES = ['', '', '', '', ''] as const;

function overridesOf(query: Query): ServiceSasFields['overrides'] {
  const value = (name: string) => {
    const text = query[name] ?? '';
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these cannot stand in a header
    if (/[\x00-\x08\x0a-\x1f\x7f]/.test(text)) throw malformed(name);
    return text;
  };
  return [value('rscc'), value('rscd'), value('rsce'), value('rscl'), value('rsct')];
}

function isResource(text: string): text is SasResource {
  return text === 'b' || text === 'bs' || text === 'bv' || text === 'c' || text === 'd';
}

function isServicePermissions(text: string): boolean {
  if (!SERVICE_PERMISSIONS.test(text) || new Set(text).size < text.length) return false;
  const places = [...text].map((letter) => ORDERED.indexOf(letter)).filter((place) => place >= 0);
  return places.every((place, at) => at === 0 || places[at - 1]! < place);
}

function mandatory(query: Query, name: string): string {
  const value = query[name];
  if (!value) throw sasRefused(`${name} is mandatory. Cannot be empty`);
  return value;
}

function malformed(name: string): StorageError {
  return sasRefused(`Signature fields not well formed: ${name}.`);
}
