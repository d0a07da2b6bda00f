/** Request counters, and the columns of a metrics table that they become. */
import type { EdmValue } from '../table/edm.ts';
import type { AccessRecord } from './access-record.ts';
import { COLUMNS, type Outcome, outcomeColumn } from './outcomes.ts';

export interface RequestCounters {
  ingress: number;
  egress: number;
  /** Sums over the requests that succeeded. */
  milliseconds: number;
  serverMilliseconds: number;
  /** Number of requests by column. */
  readonly counts: Map<string, number>;
}

export const createCounters = (): RequestCounters => ({
  ingress: 0,
  egress: 0,
  milliseconds: 0,
  serverMilliseconds: 0,
  counts: new Map(),
});

export function countRequest(counters: RequestCounters, request: AccessRecord): void {
  const column = outcomeColumn(request);
  counters.counts.set(column, (counters.counts.get(column) ?? 0) + 1);
  counters.ingress += request.bytesIn;
  counters.egress += request.bytesOut;
  if (!column.endsWith('Success')) return;
  counters.milliseconds += request.milliseconds;
  counters.serverMilliseconds += request.serverMilliseconds;
}

export function mergeCounters(counters: RequestCounters, other: RequestCounters): void {
  for (const [column, count] of other.counts) counters.counts.set(column, (counters.counts.get(column) ?? 0) + count);
  counters.ingress += other.ingress;
  counters.egress += other.egress;
  counters.milliseconds += other.milliseconds;
  counters.serverMilliseconds += other.serverMilliseconds;
}

interface Column {
  readonly name: string;
  readonly value: EdmValue;
}

export function metricsColumns(counters: RequestCounters): Column[] {
  const total = totalRequests(counters);
  const successes = sumOutcomes(counters, ['Success']);
  const unbilled = sumOutcomes(counters, ['ThrottlingError', 'ServerTimeoutError', 'ServerOtherError']);
  const throttled = sumOutcomes(counters, ['ThrottlingError']);
  const average = (sum: number) => (successes === 0 ? 0 : sum / successes);
  const percent = (...outcomes: Outcome[]) => share(sumOutcomes(counters, outcomes), total);
  return [
    int64('TotalIngress', counters.ingress),
    int64('TotalEgress', counters.egress),
    int64('TotalRequests', total),
    int64('TotalBillableRequests', total - unbilled),
    double('Availability', share(total - unbilled, total - throttled)),
    double('AverageE2ELatency', average(counters.milliseconds)),
    double('AverageServerLatency', average(counters.serverMilliseconds)),
    double('PercentSuccess', percent('Success')),
    double('PercentThrottlingError', percent('ThrottlingError')),
    double('PercentTimeoutError', percent('ClientTimeoutError', 'ServerTimeoutError')),
    double('PercentServerOtherError', percent('ServerOtherError')),
    double('PercentClientOtherError', percent('ClientOtherError')),
    double('PercentAuthorizationError', percent('AuthorizationError')),
    double('PercentNetworkError', percent('NetworkError')),
    ...COLUMNS.map((name) => int64(name, counters.counts.get(name) ?? 0)),
  ];
}

/** Restores the counters from the columns of a stored row. */
export function parseCounters(valueIn: (column: string) => EdmValue | undefined): RequestCounters {
  const number = (name: string) => Number(valueIn(name)?.value ?? 0);
  const counters = createCounters();
  for (const column of COLUMNS) if (number(column) > 0) counters.counts.set(column, number(column));
  counters.ingress = number('TotalIngress');
  counters.egress = number('TotalEgress');
  const successes = sumOutcomes(counters, ['Success']);
  counters.milliseconds = number('AverageE2ELatency') * successes;
  counters.serverMilliseconds = number('AverageServerLatency') * successes;
  return counters;
}

export function totalRequests({ counts }: RequestCounters): number {
  let sum = 0;
  for (const count of counts.values()) sum += count;
  return sum;
}

function sumOutcomes({ counts }: RequestCounters, outcomes: readonly Outcome[]): number {
  let sum = 0;
  for (const [column, count] of counts) if (outcomes.some((outcome) => column.endsWith(outcome))) sum += count;
  return sum;
}

/** 100 % of nothing: availability without requests is complete. */
const share = (part: number, of: number): number => (of === 0 ? 100 : (100 * part) / of);

const int64 = (name: string, value: number): Column => ({
  name,
  value: { type: 'Edm.Int64', value: BigInt(Math.round(value)) },
});
const double = (name: string, value: number): Column => ({ name, value: { type: 'Edm.Double', value } });
