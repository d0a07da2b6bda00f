/** Operation table → matcher. The row with the most tests wins; two rows for one request are refused at start-up. */
import { commonErrors, errorFactory, type StorageError } from '../services/common/errors.ts';
import type { Operation, Request, Shape } from './operation.ts';

const fail = errorFactory(commonErrors);

/** What the matcher looks at. */
export type RouteInput = Pick<Request, 'method' | 'query' | 'headers'> & { readonly shape: Shape };

export interface Router<Context> {
  /** The row for this request, or a StorageError that says why there is none. */
  match(request: RouteInput): Operation<Context>;
  /** All rows, those with more tests first: the order in which they are tried. */
  readonly rows: readonly Operation<Context>[];
}

type Criteria = Readonly<Record<string, string | true>>;

interface Criterion {
  readonly name: string;
  /** In lower case; true: whatever the value. */
  readonly value: string | true;
  /** As it is documented, and nearly always sent. */
  readonly documented: string | true;
}

interface Candidate<Context> {
  readonly row: Operation<Context>;
  readonly headers: readonly Criterion[];
  readonly parameters: readonly Criterion[];
}

/**
 * `comp` and `restype` name the operation, so a request must match them exactly: an unknown comp never falls through to
 * the plain row. The other tests are tried within the few rows that share them.
 */
export function compileRouter<Context>(table: readonly Operation<Context>[]): Router<Context> {
  checkUnambiguous(table);
  const rows = table.toSorted((one, other) => criteriaOf(other).length - criteriaOf(one).length);
  const routes = new Map<string, Candidate<Context>[]>();
  for (const row of rows) {
    const headers = parseCriteria(row.when);
    const parameters = parseCriteria(row.query).filter(({ name }) => name !== 'comp' && name !== 'restype');
    for (const method of row.methods) {
      const key = routeKey(method, row.shape, row.query);
      routes.set(key, [...(routes.get(key) ?? []), { row, headers, parameters }]);
    }
  }
  return {
    rows,
    match(request) {
      const candidates = routes.get(routeKey(request.method, request.shape, request.query));
      if (candidates === undefined) throw noRouteError(request, rows);
      for (const candidate of candidates) {
        if (meetsAll(candidate.headers, request.headers) && meetsAll(candidate.parameters, request.query)) {
          return candidate.row;
        }
      }
      throw unmetCriterionError(request, candidates);
    },
  };
}

function routeKey(method: string, shape: Shape, query: Criteria = {}): string {
  const { comp, restype } = query;
  const key = `${method} ${shape}`;
  return !comp && !restype ? key : `${key}?${fold(comp)}&${fold(restype)}`;
}

/** Azure takes the values of these parameters and headers in any case. */
function fold(value: string | true | undefined): string {
  return value === undefined ? '' : String(value).toLowerCase();
}

function meetsAll(criteria: readonly Criterion[], values: Readonly<Record<string, unknown>>): boolean {
  for (const { name, value, documented } of criteria) {
    const sent = values[name];
    if (sent === undefined) return false;
    if (value === true || sent === documented) continue;
    if (typeof sent !== 'string' || sent.toLowerCase() !== value) return false;
  }
  return true;
}

/** Why no row takes the request, in Azure's words. */
function noRouteError<Context>(request: RouteInput, rows: readonly Operation<Context>[]): StorageError {
  const { comp, restype } = request.query;
  const key = routeKey('', request.shape, request.query);
  const here = rows.filter((row) => row.shape === request.shape && row.methods.some((one) => one === request.method));
  // A preflight is answered on every resource, so its row says nothing about the parameters of the other verbs.
  const elsewhere = rows.filter((row) => !row.methods.some((one) => one === 'OPTIONS'));
  if (here.length === 0 || elsewhere.some((row) => routeKey('', row.shape, row.query) === key)) {
    return fail('UnsupportedHttpVerb');
  }
  const known = here.some((row) => fold(row.query?.comp) === fold(comp));
  if (comp !== undefined && (!known || restype === undefined)) return unknownParameter('comp', comp);
  if (restype !== undefined) return unknownParameter('restype', restype);
  return fail('MissingRequiredQueryParameter', {
    QueryParameterName: here.some((row) => row.query?.restype !== undefined) ? 'restype' : 'comp',
  });
}

function unknownParameter(name: string, value: string): StorageError {
  const details = { QueryParameterName: name, QueryParameterValue: value };
  return fail('InvalidQueryParameterValue', { ...details, Reason: 'No operation on this resource has that value.' });
}

/** The place is right, but a header or parameter that tells the operations there apart is missing or unknown. */
function unmetCriterionError<Context>(request: RouteInput, candidates: readonly Candidate<Context>[]): StorageError {
  const headers = candidates.flatMap((candidate) => candidate.headers.map((test) => test.name));
  for (const name of headers) {
    const value = request.headers[name];
    if (value !== undefined) return fail('InvalidHeaderValue', { HeaderName: name, HeaderValue: String(value) });
  }
  if (headers[0] !== undefined) return fail('MissingRequiredHeader', { HeaderName: headers[0] });
  const parameter = candidates.flatMap((candidate) => candidate.parameters.map((test) => test.name))[0] ?? 'comp';
  return fail('MissingRequiredQueryParameter', { QueryParameterName: parameter });
}

function parseCriteria(criteria: Criteria = {}): Criterion[] {
  return Object.entries(criteria).map(([name, value]) => ({
    name: name.toLowerCase(),
    value: value === true ? true : value.toLowerCase(),
    documented: value,
  }));
}

/** Every test of a row, as `?name=value` for parameters and `name=value` for headers. */
function criteriaOf<Context>(row: Operation<Context>): Criterion[] {
  return [...parseCriteria(row.query).map((test) => ({ ...test, name: `?${test.name}` })), ...parseCriteria(row.when)];
}

/**
 * Two rows are twins when a request can pass the tests of both, neither has more tests, and no third row, with the tests
 * of both, would take that request.
 */
function checkUnambiguous<Context>(table: readonly Operation<Context>[]): void {
  for (const [at, one] of table.entries()) {
    for (const other of table.slice(at + 1)) {
      const method = one.methods.find((verb) => other.methods.includes(verb));
      if (
        method === undefined ||
        routeKey(method, one.shape, one.query) !== routeKey(method, other.shape, other.query)
      ) {
        continue;
      }
      const [left, right] = [criteriaOf(one), criteriaOf(other)];
      if (left.length !== right.length || contradict(left, right)) continue;
      const both = [...left, ...right];
      const tieBreaker = table.some((row) => {
        const criteria = criteriaOf(row);
        return (
          criteria.length > left.length &&
          row.shape === one.shape &&
          both.every((test) => includesCriterion(criteria, test))
        );
      });
      if (!tieBreaker) throw new Error(`Two operations for one request: ${one.name} and ${other.name} (${one.route})`);
    }
  }
}

function contradict(left: readonly Criterion[], right: readonly Criterion[]): boolean {
  return left.some(({ name, value }) =>
    right.some((test) => test.name === name && test.value !== value && test.value !== true && value !== true),
  );
}

function includesCriterion(criteria: readonly Criterion[], wanted: Criterion): boolean {
  return criteria.some(({ name, value }) => name === wanted.name && (wanted.value === true || value === wanted.value));
}
