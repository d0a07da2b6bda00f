/** Requests that are counted and not written yet, by hour and by minute. */
import type { AccessRecord } from '../../rules/analytics/access-record.ts';
import {
  countRequest,
  createCounters,
  mergeCounters,
  type RequestCounters,
  totalRequests,
} from '../../rules/analytics/request-counters.ts';
import { metricsPartition } from '../../rules/analytics/time-partitions.ts';
import type { ServiceName } from '../common/names.ts';
import type { AccountId } from '../common/storage.ts';

export type Granularity = 'hour' | 'minute';

/** Rows of one partition of a metrics table. */
export interface MetricsBatch {
  readonly account: AccountId;
  readonly service: ServiceName;
  readonly span: Granularity;
  readonly partitionKey: string;
  /** By row key. */
  readonly tallies: Map<string, RequestCounters>;
}

export interface MetricsAggregator {
  count(account: AccountId, span: Granularity, request: AccessRecord, perApi: boolean): void;
  /** Hands each reading over. One that fails stays for another time, unless it is refused for good. */
  writeAll(write: (reading: MetricsBatch) => Promise<'written' | 'refused' | 'later'>): Promise<void>;
  /** How many requests were not counted since this was asked last. */
  takeDropped(): number;
  clear(): void;
}

export function createMetricsAggregator({
  talliesMax = 20_000,
}: {
  readonly talliesMax?: number;
} = {}): MetricsAggregator {
  const batches = new Map<string, MetricsBatch>();
  let counterTotal = 0;
  let dropped = 0;

  function counterFor(reading: MetricsBatch, rowKey: string): RequestCounters | undefined {
    let tally = reading.tallies.get(rowKey);
    if (tally || counterTotal >= talliesMax) return tally;
    counterTotal++;
    tally = createCounters();
    reading.tallies.set(rowKey, tally);
    return tally;
  }

  function batchFor(wanted: Omit<MetricsBatch, 'tallies'>): MetricsBatch {
    const key = `${wanted.account} ${wanted.service} ${wanted.span} ${wanted.partitionKey}`;
    let reading = batches.get(key);
    if (!reading) {
      reading = { ...wanted, tallies: new Map() };
      batches.set(key, reading);
    }
    return reading;
  }

  return {
    count(account, span, request, perApi) {
      const { service } = request;
      const reading = batchFor({ account, service, span, partitionKey: metricsPartition(request.started, span) });
      const all = counterFor(reading, 'user;All');
      const own = perApi ? counterFor(reading, `user;${request.operation ?? 'Unknown'}`) : undefined;
      if (!all || (perApi && !own)) dropped++;
      for (const tally of [all, own]) if (tally) countRequest(tally, request);
    },
    async writeAll(write) {
      for (const [key, reading] of [...batches]) {
        // What comes from now on is counted anew.
        batches.delete(key);
        counterTotal -= reading.tallies.size;
        if (reading.tallies.size > 0 && (await write(reading)) === 'later') requeue(reading);
      }
    },
    takeDropped() {
      const count = dropped;
      dropped = 0;
      return count;
    },
    clear() {
      batches.clear();
      counterTotal = 0;
    },
  };

  function requeue(reading: MetricsBatch): void {
    const newer = batchFor(reading);
    for (const [rowKey, tally] of reading.tallies) {
      const sum = counterFor(newer, rowKey);
      if (sum) mergeCounters(sum, tally);
      else dropped += totalRequests(tally);
    }
  }
}
