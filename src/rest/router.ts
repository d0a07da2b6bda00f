/** Router: compiles an operation table into a matcher. The row with the most criteria wins; an ambiguous table is refused at start-up. */
import { commonErrors, errorFactory, type StorageError } from '../services/common/errors.ts';
import type { Operation, Request, Shape } from './operation.ts';

const fail = errorFactory(commonErrors);

/** The part of a request that decides its operation. */
export type RouteInput = Pick<Request, 'method' | 'query' | 'headers'> & { readonly shape: Shape };

export interface Router<Context> {
  /** The row for this request. Throws a StorageError with the reason if there is none. */
  match(request: RouteInput): Operation<Context>;
  /** All rows, those with more criteria first: the order in which they are tried. */
  readonly rows: readonly Operation<Context>[];
}

type Criteria = Readonly<Record<string, string | true>>;

interface Criterion {
  readonly name: string;
  /** In lower case; true: any value. */
  readonly value: string | true;
  /** As documented, and nearly always sent. */
  readonly documented: string | true;
}

interface Candidate<Context> {
  readonly row: Operation<Context>;
  readonly headers: readonly Criterion[];
  readonly parameters: readonly Criterion[];
}

/**
 * `comp` and `restype` name the operation, so a request must match them exactly: an unknown comp never falls through to
 * the plain row. The other criteria are tried within the few rows that share `comp` and `restype`.
 */
export function compileRouter<Context>(table: readonly Operation<Context>[]): Router<Context> {
  checkUnambiguous(table);
  const rows = table.toSorted((one, other) => allCriteria(other).length - allCriteria(one).length);
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

/** Azure compares the values of these parameters and headers without regard to case. */
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

/** Why no row matches the request, in Azure's words. */
function noRouteError<Context>(request: RouteInput, rows: readonly Operation<Context>[]): StorageError {
  const { comp, restype } = request.query;
  const key = routeKey('', request.shape, request.query);
  const here = rows.filter((row) => row.shape === request.shape && row.methods.some((one) => one === request.method));
  // A preflight is valid on every resource, so its row says nothing about the parameters of other methods.
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

/** The route exists, but a header or parameter that distinguishes the operations on it is missing or unknown. */
function unmetCriterionError<Context>(request: RouteInput, candidates: readonly Candidate<Context>[]): StorageError {
  const headers = candidates.flatMap((candidate) => candidate.headers.map((criterion) => criterion.name));
  for (const name of headers) {
    const value = request.headers[name];
    if (value !== undefined) return fail('InvalidHeaderValue', { HeaderName: name, HeaderValue: String(value) });
  }
  if (headers[0] !== undefined) return fail('MissingRequiredHeader', { HeaderName: headers[0] });
  const parameter =
    candidates.flatMap((candidate) => candidate.parameters.map((criterion) => criterion.name))[0] ?? 'comp';
  return fail('MissingRequiredQueryParameter', { QueryParameterName: parameter });
}

function parseCriteria(criteria: Criteria = {}): Criterion[] {
  return Object.entries(criteria).map(([name, value]) => ({
    name: name.toLowerCase(),
    value: value === true ? true : value.toLowerCase(),
    documented: value,
  }));
}

/** The criteria of a row; the names of parameters begin with '?'. */
function allCriteria<Context>(row: Operation<Context>): Criterion[] {
  return [
    ...parseCriteria(row.query).map((criterion) => ({ ...criterion, name: `?${criterion.name}` })),
    ...parseCriteria(row.when),
  ];
}

/**
 * Two rows are ambiguous when a request can meet the criteria of both, neither has more criteria, and no third row, with
 * the criteria of both, would match that request.
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
      const [left, right] = [allCriteria(one), allCriteria(other)];
      if (left.length !== right.length || contradict(left, right)) continue;
      const both = [...left, ...right];
      const tieBreaker = table.some((row) => {
        const criteria = allCriteria(row);
        return (
          criteria.length > left.length &&
          row.shape === one.shape &&
          both.every((criterion) => includesCriterion(criteria, criterion))
        );
      });
      if (!tieBreaker) throw new Error(`Two operations for one request: ${one.name} and ${other.name} (${one.route})`);
    }
  }
}

function contradict(left: readonly Criterion[], right: readonly Criterion[]): boolean {
  return left.some(({ name, value }) =>
    right.some((other) => other.name === name && other.value !== value && other.value !== true && value !== true),
  );
}

function includesCriterion(criteria: readonly Criterion[], wanted: Criterion): boolean {
  return criteria.some(({ name, value }) => name === wanted.name && (wanted.value === true || value === wanted.value));
}
