/** The fields of a service SAS that depend on the service. */
import type { ServiceName } from '../../services/common/names.ts';
import { malformedField, type Query, requiredField, type SasFields, type SentSasFields } from './sas-fields.ts';

export type ServiceSasFields = BlobSasFields | QueueSasFields | TableSasFields | FileSasFields;

interface ServiceSasBase extends SasFields {
  readonly kind: 'service SAS';
  /** The id of the stored access policy. */
  readonly identifier: string;
}

type SasResource = 'b' | 'bs' | 'bv' | 'c' | 'd';

export interface BlobSasFields extends ServiceSasBase {
  readonly service: 'blob';
  readonly resource: SasResource;
  /** For a directory: the number of path segments in its name. */
  readonly depth: number | undefined;
  readonly overrides: HeaderOverrides;
}

/** rscc, rscd, rsce, rscl and rsct. */
type HeaderOverrides = readonly [
  cacheControl: string,
  contentDisposition: string,
  contentEncoding: string,
  contentLanguage: string,
  contentType: string,
];

export interface QueueSasFields extends ServiceSasBase {
  readonly service: 'queue';
}

export interface TableSasFields extends ServiceSasBase {
  readonly service: 'table';
  readonly table: string;
  /** spk, srk, epk and erk: the first and the last entity; undefined: unbounded. */
  readonly keys: readonly [
    startPartition: string | undefined,
    startRow: string | undefined,
    endPartition: string | undefined,
    endRow: string | undefined,
  ];
}

export interface FileSasFields extends ServiceSasBase {
  readonly service: 'file';
  /** A share, with everything in it, or a file. It is not signed, but the path is that it stands for. */
  readonly resource: 's' | 'f';
  readonly overrides: HeaderOverrides;
}

/** In older versions sr is not signed: a signature for a blob could be passed off as one for the directory of that name. */
export const RESOURCE_SINCE = '2018-11-09';
/** In older versions the overrides are not signed, so that anyone could have added them. */
export const OVERRIDES_SINCE = '2013-08-15';
/** Letters that must be in this order; clients disagree about the position of newer letters. */
export const PERMISSION_ORDER: Readonly<Record<ServiceName, string>> = {
  blob: 'racwdl',
  queue: 'raup',
  table: 'raud',
  file: 'rcwdl',
};
/** All letters of the service. */
export const PERMISSION_LETTERS: Readonly<Record<ServiceName, RegExp>> = {
  blob: /^[racwdxyltfmeopi]*$/,
  queue: /^[raup]*$/,
  table: /^[raud]*$/,
  file: /^[rcwdl]*$/,
};

export function parseServiceSas(
  query: Query,
  fields: SentSasFields,
  service: ServiceName,
): ServiceSasFields & SentSasFields {
  const identifier = query.si ?? '';
  const own = parseServiceFields(query, fields, service);
  if (identifier === '') {
    requiredField(query, 'sp');
    requiredField(query, 'se');
  }
  if (!areValidPermissions(fields.permissions, service)) throw malformedField('sp');
  return { kind: 'service SAS', ...fields, identifier, ...own };
}

type ServiceSpecificFields =
  | Omit<BlobSasFields, keyof ServiceSasBase>
  | Omit<QueueSasFields, keyof ServiceSasBase>
  | Omit<TableSasFields, keyof ServiceSasBase>
  | Omit<FileSasFields, keyof ServiceSasBase>;

function parseServiceFields(query: Query, fields: SentSasFields, service: ServiceName): ServiceSpecificFields {
  if (service === 'queue') return { service };
  if (service === 'file') return parseFileFields(query, fields);
  return service === 'table' ? parseTableFields(query) : parseBlobFields(query, fields);
}

function parseBlobFields(query: Query, fields: SentSasFields): Omit<BlobSasFields, keyof ServiceSasBase> {
  const resource = requiredField(query, 'sr');
  if (!isResource(resource)) throw malformedField('sr');
  if (fields.version < RESOURCE_SINCE && resource !== 'b' && resource !== 'c') throw malformedField('sr');
  const depth = resource === 'd' ? requiredField(query, 'sdd') : undefined;
  if (depth !== undefined && !/^\d{1,3}$/.test(depth)) throw malformedField('sdd');
  return {
    service: 'blob',
    resource,
    depth: depth === undefined ? undefined : Number(depth),
    overrides: parseOverrides(query, fields),
  };
}

function parseFileFields(query: Query, fields: SentSasFields): Omit<FileSasFields, keyof ServiceSasBase> {
  const resource = requiredField(query, 'sr');
  if (resource !== 's' && resource !== 'f') throw malformedField('sr');
  return { service: 'file', resource, overrides: parseOverrides(query, fields) };
}

function parseTableFields(query: Query): Omit<TableSasFields, keyof ServiceSasBase> {
  // An empty start key is before all others and is signed like an absent one. So is an empty end key, which its holder could therefore remove.
  const [spk, srk] = [query.spk || undefined, query.srk || undefined];
  const { epk, erk } = query;
  if (epk === '') throw malformedField('epk');
  if (erk === '') throw malformedField('erk');
  if (srk !== undefined && spk === undefined) throw malformedField('srk');
  if (erk !== undefined && epk === undefined) throw malformedField('erk');
  return { service: 'table', table: requiredField(query, 'tn'), keys: [spk, srk, epk, erk] };
}

/** Headers that replace the stored ones in the reply to a read; UTF-8 bytes as latin1 characters, as Node sends headers. */
export function overrideHeaders({ overrides }: Pick<BlobSasFields, 'overrides'>): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  OVERRIDE_HEADERS.forEach((name, at) => {
    if (overrides[at] !== '') headers[name] = Buffer.from(overrides[at]!, 'utf8').toString('latin1');
  });
  return headers;
}

const OVERRIDE_HEADERS = [
  'Cache-Control',
  'Content-Disposition',
  'Content-Encoding',
  'Content-Language',
  'Content-Type',
];

const NO_OVERRIDES = ['', '', '', '', ''] as const;

function parseOverrides(query: Query, { version }: SentSasFields): HeaderOverrides {
  if (version < OVERRIDES_SINCE) return NO_OVERRIDES;
  const value = (name: string) => {
    const text = query[name] ?? '';
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these cannot stand in a header
    if (/[\x00-\x08\x0a-\x1f\x7f]/.test(text)) throw malformedField(name);
    return text;
  };
  return [value('rscc'), value('rscd'), value('rsce'), value('rscl'), value('rsct')];
}

function isResource(text: string): text is SasResource {
  return text === 'b' || text === 'bs' || text === 'bv' || text === 'c' || text === 'd';
}

function areValidPermissions(text: string, service: ServiceName): boolean {
  if (!PERMISSION_LETTERS[service].test(text) || new Set(text).size < text.length) return false;
  const places = [...text].map((letter) => PERMISSION_ORDER[service].indexOf(letter)).filter((place) => place >= 0);
  return places.every((place, at) => at === 0 || places[at - 1]! < place);
}
