/** Shared access signatures: parses the query. For their verification see sas-signature.ts and sas-checks.ts. */
import { ticksFromUnix } from '../../base/time.ts';
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import type { ServiceName } from '../../services/common/names.ts';
import { VERSION } from '../request.ts';
import { malformedField, type Query, requiredField, type SasFields, type SentSasFields } from './sas-fields.ts';
import { parseServiceSas, type ServiceSasFields } from './service-sas.ts';

const fail = errorFactory(commonErrors);

export interface AccountSasFields extends SasFields {
  readonly kind: 'account SAS';
  readonly services: string;
  readonly resourceTypes: string;
}

export type SentSas = (AccountSasFields | ServiceSasFields) & { readonly signature: string };
export type SentServiceSas = Extract<SentSas, { kind: 'service SAS' }>;

/** The first version whose signatures name their version, and the first with account SAS. */
const SERVICE_SAS_SINCE = '2012-02-12';
const ACCOUNT_SAS_SINCE = '2015-04-05';
const SERVICES = /^[bfqt]+$/;
const RESOURCE_TYPES = /^[sco]+$/;
const ACCOUNT_PERMISSIONS = /^[rwdxylacuptfi]*$/;

/** Undefined: the query has no shared access signature. */
export function parseSas(query: Query, service: ServiceName): SentSas | undefined {
  if (query.sig === undefined && query.sv === undefined) return undefined;
  if (query.skoid !== undefined) {
    throw fail(
      'NotImplemented',
      undefined,
      'User delegation SAS is not implemented by this server yet; use an account key.',
    );
  }
  const signature = requiredField(query, 'sig');
  const version = requiredField(query, 'sv');
  const isAccountSas = query.ss !== undefined || query.srt !== undefined;
  if (!VERSION.test(version) || version < (isAccountSas ? ACCOUNT_SAS_SINCE : SERVICE_SAS_SINCE))
    throw malformedField('sv');
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
  if (fields.start !== '' && parseSasDate(fields.start) === undefined) throw malformedField('st');
  if (fields.expiry !== '' && parseSasDate(fields.expiry) === undefined) throw malformedField('se');
  if (fields.ip !== '' && parseIpRange(fields.ip) === undefined) throw malformedField('sip');
  if (fields.protocol !== '' && !/^https(?:,http)?$/.test(fields.protocol)) throw malformedField('spr');
  return isAccountSas ? parseAccountSas(query, fields) : parseServiceSas(query, fields, service);
}

/** YYYY-MM-DD, or with a time in UTC of minutes, seconds or fractions of a second. */
export const SAS_DATE = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,7}))?)?Z)?$/;

export function parseSasDate(text: string): bigint | undefined {
  const [, day, minute = '00:00', second = '00', fraction = ''] = SAS_DATE.exec(text) ?? [];
  const milliseconds = Date.parse(`${day}T${minute}:${second}Z`);
  // Date.parse turns a day that its month does not have into one of the next month.
  if (Number.isNaN(milliseconds) || new Date(milliseconds).toISOString().slice(0, 10) !== day) return undefined;
  return ticksFromUnix(milliseconds) + BigInt(fraction.padEnd(7, '0'));
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

function parseAccountSas(query: Query, fields: SentSasFields): SentSas {
  const services = requiredField(query, 'ss');
  const resourceTypes = requiredField(query, 'srt');
  requiredField(query, 'sp');
  requiredField(query, 'se');
  if (!SERVICES.test(services)) throw malformedField('ss');
  if (!RESOURCE_TYPES.test(resourceTypes)) throw malformedField('srt');
  if (!ACCOUNT_PERMISSIONS.test(fields.permissions)) throw malformedField('sp');
  return { kind: 'account SAS', ...fields, services, resourceTypes };
}
