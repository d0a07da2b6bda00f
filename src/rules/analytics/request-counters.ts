/** Requests added up, as a row of a metrics table tells them. */
import type { EdmValue } from '../table/edm.ts';
import type { AnsweredRequest } from './access-record.ts';
import { COLUMNS, columnOf, type Outcome } from './outcomes.ts';

export interface Tally {
  ingress: number;
  egress: number;
  /** Of those that succeeded. */
  milliseconds: number;
  serverMilliseconds: number;
  /** By column: how many requests ended so. */
  readonly counts: Map<string, number>;
}

export const newTally = (): Tally => ({
  ingress: 0,
  egress: 0,
  milliseconds: 0,
  serverMilliseconds: 0,
  counts: new Map(),
});

export function addRequest(tally: Tally, request: AnsweredRequest): void {
  const column = columnOf(request);
  tally.counts.set(column, (tally.counts.get(column) ?? 0) + 1);
  tally.ingress += request.bytesIn;
  tally.egress += request.bytesOut;
  if (!column.endsWith('Success')) return;
  tally.milliseconds += request.milliseconds;
  tally.serverMilliseconds += request.serverMilliseconds;
}

export function addTally(tally: Tally, other: Tally): void {
  for (const [column, count] of other.counts) tally.counts.set(column, (tally.counts.get(column) ?? 0) + count);
  tally.ingress += other.ingress;
  tally.egress += other.egress;
  tally.milliseconds += other.milliseconds;
  tally.serverMilliseconds += other.serverMilliseconds;
}

interface Column {
  readonly name: string;
  readonly value: EdmValue;
}

export function columnsOf(tally: Tally): Column[] {
  const total = requestsIn(tally);
  const successes = sumOf(tally, ['Success']);
  const unbilled = sumOf(tally, ['ThrottlingError', 'ServerTimeoutError', 'ServerOtherError']);
  const throttled = sumOf(tally, ['ThrottlingError']);
  const average = (sum: number) => (successes === 0 ? 0 : sum / successes);
  const percent = (...outcomes: Outcome[]) => share(sumOf(tally, outcomes), total);
  return [
    int64('TotalIngress', tally.ingress),
    int64('TotalEgress', tally.egress),
    int64('TotalRequests', total),
    int64('TotalBillableRequests', total - unbilled),
    double('Availability', share(total - unbilled, total - throttled)),
    double('AverageE2ELatency', average(tally.milliseconds)),
    double('AverageServerLatency', average(tally.serverMilliseconds)),
    double('PercentSuccess', percent('Success')),
    double('PercentThrottlingError', percent('ThrottlingError')),
    double('PercentTimeoutError', percent('ClientTimeoutError', 'ServerTimeoutError')),
    double('PercentServerOtherError', percent('ServerOtherError')),
    double('PercentClientOtherError', percent('ClientOtherError')),
    double('PercentAuthorizationError', percent('AuthorizationError')),
    double('PercentNetworkError', percent('NetworkError')),
    ...COLUMNS.map((name) => int64(name, tally.counts.get(name) ?? 0)),
  ];
}

/** What a row that was written before adds up to. */
export function tallyOf(valueIn: (column: string) => EdmValue | undefined): Tally {
  const number = (name: string) => Number(valueIn(name)?.value ?? 0);
  const tally = newTally();
  for (const column of COLUMNS) if (number(column) > 0) tally.counts.set(column, number(column));
  tally.ingress = number('TotalIngress');
  tally.egress = number('TotalEgress');
  const successes = sumOf(tally, ['Success']);
  tally.milliseconds = number('AverageE2ELatency') * successes;
  tally.serverMilliseconds = number('AverageServerLatency') * successes;
  return tally;
}

export function requestsIn({ counts }: Tally): number {
  let sum = 0;
  for (const count of counts.values()) sum += count;
  return sum;
}

function sumOf({ counts }: Tally, outcomes: readonly Outcome[]): number {
  let sum = 0;
  for (const [column, count] of counts) if (outcomes.some((outcome) => column.endsWith(outcome))) sum += count;
  return sum;
}

/** Where nothing could fail, nothing did. */
const share = (part: number, of: number): number => (of === 0 ? 100 : (100 * part) / of);

const int64 = (name: string, value: number): Column => ({
  name,
  value: { type: 'Edm.Int64', value: BigInt(Math.round(value)) },
});
const double = (name: string, value: number): Column => ({ name, value: { type: 'Edm.Double', value } });
