/** Readers that operation rows of the Table service share. */
import { parseQueryFilter } from '../../services/table/filters.ts';
import type { BodyReader, Reader, Request } from '../operation.ts';
import { bodyTooLarge, reader } from '../params.ts';
import { accountUrl } from '../request.ts';
import { negotiateFormat, type Preference, parsePreference } from './content-negotiation.ts';
import { decodeToken } from './continuation.ts';
import { fail } from './errors.ts';
import type { AnswerFormat, MetadataLevel } from './json/write-entity.ts';
import { parseSelection } from './selection.ts';

export const BODY_BYTES_MAX = 4 * 1024 * 1024;
const TOP_MAX = 1_000;

export const level: Reader<MetadataLevel> = reader(({ headers, query }) => {
  const wanted = negotiateFormat(headers.accept as string | undefined, query.$format);
  if (wanted === 'atom') throw fail('AtomFormatNotSupported');
  if (wanted === 'unknown') throw fail('MediaTypeNotSupported');
  return wanted.level;
});

export const preference: Reader<Preference | undefined> = reader(({ headers }) => parsePreference(headers.prefer));

/** What the answer depends on besides the entities. */
export const answer: Reader<AnswerFormat> = reader((request) => ({
  level: level.read(request),
  account: request.account,
  endpoint: serviceEndpoint(request),
  table: request.container,
  selection: request.query.$select === undefined ? undefined : parseSelection(request.query.$select),
}));

/** The Host header may contain characters that end a JSON string. */
const UNQUOTABLE = /[^\x21\x23-\x5b\x5d-\x7e]/g;

function serviceEndpoint(request: Request): string {
  return accountUrl(request).slice(0, -1).replace(UNQUOTABLE, '');
}

/** A body of JSON. */
export function jsonBody<Value>(read: (bytes: Buffer) => Value): BodyReader<Value> {
  return {
    kind: 'body',
    bytesMax: BODY_BYTES_MAX,
    tooLarge: () => bodyTooLarge(BODY_BYTES_MAX),
    check: ({ headers }) => {
      const wanted = negotiateFormat(headers['content-type'] as string | undefined, undefined);
      if (wanted === 'atom') throw fail('AtomFormatNotSupported');
      if (wanted === 'unknown') throw fail('MediaTypeNotSupported');
    },
    read,
  };
}

export const filter = reader(({ query: { $filter } }) =>
  $filter === undefined ? undefined : parseQueryFilter($filter),
);

export const top: Reader<number | undefined> = reader(({ query: { $top } }) => {
  if ($top === undefined) return undefined;
  const count = /^\d{1,4}$/.test($top.trim()) ? Number($top) : Number.NaN;
  if (!(count <= TOP_MAX)) throw fail('InvalidInput');
  return count;
});

export const entityContinuation = reader(({ query: { nextpartitionkey, nextrowkey } }) => {
  if (!nextpartitionkey) {
    if (nextrowkey) throw fail('InvalidInput');
    return undefined;
  }
  return { partitionKey: decodeToken(nextpartitionkey), rowKey: nextrowkey ? decodeToken(nextrowkey) : undefined };
});

export const tableContinuation: Reader<string | undefined> = reader(({ query: { nexttablename } }) =>
  nexttablename ? decodeToken(nexttablename) : undefined,
);

/** The options that the service supports: of OData's system query options for a set, and for one element. */
const SET_OPTIONS = new Set(['$filter', '$top', '$select', '$format']);
const ELEMENT_OPTIONS = new Set(['$select', '$format']);

/** Refuses the other options of OData: none may be ignored. */
export const checkSetOptions = reader(({ query }) => checkOptions(query, SET_OPTIONS));
export const checkElementOptions = reader(({ query }) => checkOptions(query, ELEMENT_OPTIONS));

function checkOptions(query: Request['query'], known: ReadonlySet<string>): void {
  for (const name in query) {
    if (!name.startsWith('$') || known.has(name)) continue;
    throw fail(SET_OPTIONS.has(name) ? 'InvalidInput' : 'NotImplemented');
  }
}

/** Unparsed. */
export const ifMatch: Reader<string | undefined> = reader(({ method, headers }) => {
  const match = headers['if-match'] as string | undefined;
  if (headers['if-none-match'] !== undefined) {
    if (match !== undefined) throw fail('BothMatchHeaders');
    const verb = method === 'DELETE' ? 'DELETE' : 'PUT';
    throw fail('InvalidInput', undefined, `If-None-Match HTTP header cannot be specified for ${verb} operations.`);
  }
  return match;
});

/** Older versions had no upsert. */
const UPSERT_SINCE = '2011-08-18';

export const requireUpsertVersion = reader(({ version }): void => {
  if (version !== '' && version < UPSERT_SINCE) throw fail('MissingRequiredHeader');
});

/** Tables have no ETags, and a resource that is created has none yet. */
export const rejectEtagHeaders = reader(({ headers }): void => {
  if (headers['if-match'] !== undefined || headers['if-none-match'] !== undefined) throw fail('MatchWithoutEtag');
});
