/** OData addresses (tables, and entities by their keys in parentheses), the method override X-HTTP-Method, and readers that operation rows share. */
import type { EntityKeys } from '../../services/table/entity-rows.ts';
import { parseQueryFilter } from '../../services/table/filters.ts';
import type { BodyReader, Reader, Request } from '../operation.ts';
import { bodyTooLarge, reader } from '../params.ts';
import { accountUrl, decodePart, type ParsePath } from '../request.ts';
import { decodeToken } from './continuation.ts';
import { fail } from './errors.ts';
import type { AnswerFormat, MetadataLevel } from './json/write-entity.ts';
import { negotiateFormat, type Preference, parsePreference } from './replies.ts';
import { parseSelection } from './selection.ts';

const BODY_BYTES_MAX = 4 * 1024 * 1024;
const TOP_MAX = 1_000;

const level: Reader<MetadataLevel> = reader(({ headers, query }) => {
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

/** The entity set of all tables, in lower case. */
const TABLES = 'tables';
const TRAILING_SLASHES = /(?<!\/)\/+$/;

/**
 * Names are checked by the operations, not here. A malformed address becomes one with malformed keys: it is refused after
 * authorization, so that callers without a right learn nothing.
 */
export const parseTablePath: ParsePath = (rest) => {
  const text = decodePart(rest.slice(1));
  if (text === '') return { container: '', item: '', shape: '/' };
  const open = text.indexOf('(');
  // Slashes after a name are ignored, even encoded.
  const named = open < 0 ? text : text.slice(0, open);
  const name = named.endsWith('/') ? named.replace(TRAILING_SLASHES, '') : named;
  if (name === '$batch' && open < 0) return { container: '', item: '', shape: '/$batch' };
  const malformed = { container: '', item: text, shape: '/{table}({keys})' } as const;
  if (name === '' || name.includes('/') || (open >= 0 && !text.endsWith(')'))) return malformed;
  const item = open < 0 ? '' : text.slice(open + 1, -1).trim();
  if (name.toLowerCase() !== TABLES) {
    return { container: name, item, shape: item === '' ? '/{table}' : '/{table}({keys})' };
  }
  if (item === '') return { container: '', item, shape: '/Tables' };
  const literals = parseKeyLiterals(item);
  const given = [literals?.get(''), literals?.get('TableName')].filter((value) => value !== undefined);
  const [table] = given;
  const isNamed = table !== undefined && given.at(-1) === table && given.length === literals!.size;
  return isNamed ? { container: table, item, shape: '/Tables({table})' } : malformed;
};

export interface AddressedKeys {
  readonly partitionKey: string;
  readonly rowKey: string;
}

/** `PartitionKey='a',RowKey='b'`, in either order. */
export const entityKeys: Reader<AddressedKeys> = reader(({ item }) => {
  const literals = parseKeyLiterals(item);
  const partitionKey = literals?.get('PartitionKey');
  const rowKey = literals?.get('RowKey');
  if (partitionKey === undefined || rowKey === undefined || literals!.size > 2) throw fail('QuerySyntax');
  if (UNADDRESSABLE.test(partitionKey) || UNADDRESSABLE.test(rowKey)) throw fail('QuerySyntax');
  return { partitionKey, rowKey };
});

/** These would begin another segment of the path. */
const UNADDRESSABLE = /[/\\]/;

const NAME = /\s*(?:([A-Za-z]\w*)\s*=\s*)?'/y;
const SEPARATOR = /\s*(,|$)/y;

/** Literals by name; '' is the key of a literal without a name. Quotes within a literal are doubled. Undefined: malformed. */
function parseKeyLiterals(item: string): ReadonlyMap<string, string> | undefined {
  const literals = new Map<string, string>();
  for (let at = 0; ; ) {
    const name = matchAt(NAME, item, at);
    if (!name) return undefined;
    at += name[0].length;
    let value = '';
    for (;;) {
      const quote = item.indexOf("'", at);
      if (quote < 0) return undefined;
      value += item.slice(at, quote);
      at = quote + 1;
      if (item[at] !== "'") break;
      value += "'";
      at++;
    }
    const key = name[1] ?? '';
    const separator = matchAt(SEPARATOR, item, at);
    if (!separator || literals.has(key)) return undefined;
    literals.set(key, value);
    at += separator[0].length;
    if (separator[1] !== ',') return literals;
  }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

const TUNNELLED = ['DELETE', 'GET', 'MERGE', 'PATCH', 'PUT'];

/** X-HTTP-Method, for clients whose HTTP library does not know the verb. */
export function effectiveMethod({ method, headers }: Pick<Request, 'method' | 'headers'>): string {
  const sent = headers['x-http-method'];
  if (sent === undefined) return method;
  if (String(sent).includes(',')) throw fail('XMethodIncorrectCount');
  if (method !== 'POST') throw fail('XMethodNotUsingPost');
  const meant = String(sent).trim().toUpperCase();
  if (!TUNNELLED.includes(meant)) throw fail('XMethodIncorrectValue');
  return meant;
}

/** `Customers(PartitionKey='a',RowKey='b')` */
export function entityAddress(table: string, { partitionKey, rowKey }: EntityKeys) {
  return `${table}(PartitionKey=${odataLiteral(partitionKey)},RowKey=${odataLiteral(rowKey)})`;
}

export function tableAddress(table: string): string {
  return `Tables(${odataLiteral(table)})`;
}

/** Characters that need no encoding in a URL, without the quote. */
const PLAIN = /^[\w.~!*()-]*$/;

function odataLiteral(text: string): string {
  if (PLAIN.test(text)) return `'${text}'`;
  return `'${encodeURIComponent(text.toWellFormed()).replaceAll("'", "''")}'`;
}
