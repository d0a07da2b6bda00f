/** Operation table → matcher. The row with the most tests wins; two rows for one request are refused at start-up. */
import { commonErrors, raising, type StorageError } from '../services/common/errors.ts';
import type { Operation, Request, Shape } from './operation.ts';

const fail = raising(commonErrors);

/** What the matcher looks at. */
export type Routed = Pick<Request, 'method' | 'query' | 'headers'> & { readonly shape: Shape };

export interface Router<Context> {
  /** The row for this request, or a StorageError that says why there is none. */
  match(request: Routed): Operation<Context>;
  /** All rows, those with more tests first: the order in which they are tried. */
  readonly rows: readonly Operation<Context>[];
}

type Tests = Readonly<Record<string, string | true>>;

interface Test {
  readonly name: string;
  /** In lower case; true: whatever the value. */
  readonly value: string | true;
  /** As it is documented, and nearly always sent. */
  readonly usual: string | true;
}

interface Candidate<Context> {
  readonly row: Operation<Context>;
  readonly headers: readonly Test[];
  readonly parameters: readonly Test[];
}

/**
 * `comp` and `restype` name the operation, so a request must match them exactly: an unknown comp never falls through to
 * the plain row. The other tests are tried within the few rows that share them.
 */
export function routerOf<Context>(table: readonly Operation<Context>[]): Router<Context> {
  refuseTwins(table);
  const rows = table.toSorted((one, other) => testsOf(other).length - testsOf(one).length);
  const places = new Map<string, Candidate<Context>[]>();
  for (const row of rows) {
    const headers = testList(row.when);
    const parameters = testList(row.query).filter(({ name }) => name !== 'comp' && name !== 'restype');
    for (const method of row.methods) {
      const place = placeOf(method, row.shape, row.query);
      places.set(place, [...(places.get(place) ?? []), { row, headers, parameters }]);
    }
  }
  return {
    rows,
    match(request) {
      const candidates = places.get(placeOf(request.method, request.shape, request.query));
      if (candidates === undefined) throw unmatched(request, rows);
      for (const candidate of candidates) {
        if (passes(candidate.headers, request.headers) && passes(candidate.parameters, request.query)) {
          return candidate.row;
        }
      }
      throw failedTest(request, candidates);
    },
  };
}

function placeOf(method: string, shape: Shape, query: Tests = {}): string {
  const { comp, restype } = query;
  const place = `${method} ${shape}`;
  return !comp && !restype ? place : `${place}?${fold(comp)}&${fold(restype)}`;
}

/** Azure takes the values of these parameters and headers in any case. */
function fold(value: string | true | undefined): string {
  return value === undefined ? '' : String(value).toLowerCase();
}

function passes(tests: readonly Test[], values: Readonly<Record<string, unknown>>): boolean {
  for (const { name, value, usual } of tests) {
    const sent = values[name];
    if (sent === undefined) return false;
    if (value === true || sent === usual) continue;
    if (typeof sent !== 'string' || sent.toLowerCase() !== value) return false;
  }
  return true;
}

/** Why no row takes the request, in Azure's words. */
function unmatched<Context>(request: Routed, rows: readonly Operation<Context>[]): StorageError {
  const { comp, restype } = request.query;
  const place = placeOf('', request.shape, request.query);
  const here = rows.filter((row) => row.shape === request.shape && row.methods.some((one) => one === request.method));
  // A preflight is answered on every resource, so its row says nothing about the parameters of the other verbs.
  const elsewhere = rows.filter((row) => !row.methods.some((one) => one === 'OPTIONS'));
  if (here.length === 0 || elsewhere.some((row) => placeOf('', row.shape, row.query) === place)) {
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
function failedTest<Context>(request: Routed, candidates: readonly Candidate<Context>[]): StorageError {
  const headers = candidates.flatMap((candidate) => candidate.headers.map((test) => test.name));
  for (const name of headers) {
    const value = request.headers[name];
    if (value !== undefined) return fail('InvalidHeaderValue', { HeaderName: name, HeaderValue: String(value) });
  }
  if (headers[0] !== undefined) return fail('MissingRequiredHeader', { HeaderName: headers[0] });
  const parameter = candidates.flatMap((candidate) => candidate.parameters.map((test) => test.name))[0] ?? 'comp';
  return fail('MissingRequiredQueryParameter', { QueryParameterName: parameter });
}

function testList(tests: Tests = {}): Test[] {
  return Object.entries(tests).map(([name, value]) => ({
    name: name.toLowerCase(),
    value: value === true ? true : value.toLowerCase(),
    usual: value,
  }));
}

/** Every test of a row, as `?name=value` for parameters and `name=value` for headers. */
function testsOf<Context>(row: Operation<Context>): Test[] {
  return [...testList(row.query).map((test) => ({ ...test, name: `?${test.name}` })), ...testList(row.when)];
}

/**
 * Two rows are twins when a request can pass the tests of both, neither has more tests, and no third row, with the tests
 * of both, would take that request.
 */
function refuseTwins<Context>(table: readonly Operation<Context>[]): void {
  for (const [at, one] of table.entries()) {
    for (const other of table.slice(at + 1)) {
      const method = one.methods.find((verb) => other.methods.includes(verb));
      if (method === undefined || placeOf(method, one.shape, one.query) !== placeOf(method, other.shape, other.query)) {
        continue;
      }
      const [left, right] = [testsOf(one), testsOf(other)];
      if (left.length !== right.length || contradict(left, right)) continue;
      const both = [...left, ...right];
      const arbiter = table.some((row) => {
        const tests = testsOf(row);
        return tests.length > left.length && row.shape === one.shape && both.every((test) => has(tests, test));
      });
      if (!arbiter) throw new Error(`Two operations for one request: ${one.name} and ${other.name} (${one.route})`);
    }
  }
}

function contradict(left: readonly Test[], right: readonly Test[]): boolean {
  return left.some(({ name, value }) =>
    right.some((test) => test.name === name && test.value !== value && test.value !== true && value !== true),
  );
}

function has(tests: readonly Test[], wanted: Test): boolean {
  return tests.some(({ name, value }) => name === wanted.name && (wanted.value === true || value === wanted.value));
}
