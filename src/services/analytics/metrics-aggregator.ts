/** Metrics aggregator: bounded in-memory counters of requests, by hour and by minute, that are not written yet. */
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
import type { WriteOutcome } from './log-buffer.ts';

export type Granularity = 'hour' | 'minute';

/** Rows of one partition of a metrics table. */
export interface MetricsBatch {
  readonly account: AccountId;
  readonly service: ServiceName;
  readonly span: Granularity;
  readonly partitionKey: string;
  /** By row key. */
  readonly counters: Map<string, RequestCounters>;
}

export interface MetricsAggregator {
  count(account: AccountId, span: Granularity, request: AccessRecord, perApi: boolean): void;
  /** Writes each batch. A batch that is to be retried is added to the counters of the requests since then. */
  writeAll(write: (batch: MetricsBatch) => Promise<WriteOutcome>): Promise<void>;
  /** The number of requests that were not counted since the last call. */
  takeDropped(): number;
  clear(): void;
}

export function createMetricsAggregator({
  countersMax = 20_000,
}: {
  readonly countersMax?: number;
} = {}): MetricsAggregator {
  const batches = new Map<string, MetricsBatch>();
  /** The counters of all batches. */
  let counterTotal = 0;
  let dropped = 0;

  function counterFor(batch: MetricsBatch, rowKey: string): RequestCounters | undefined {
    let counter = batch.counters.get(rowKey);
    if (counter || counterTotal >= countersMax) return counter;
    counterTotal++;
    counter = createCounters();
    batch.counters.set(rowKey, counter);
    return counter;
  }

  function batchFor(wanted: Omit<MetricsBatch, 'counters'>): MetricsBatch {
    const key = `${wanted.account} ${wanted.service} ${wanted.span} ${wanted.partitionKey}`;
    let batch = batches.get(key);
    if (!batch) {
      batch = { ...wanted, counters: new Map() };
      batches.set(key, batch);
    }
    return batch;
  }

  return {
    count(account, span, request, perApi) {
      const { service } = request;
      const batch = batchFor({ account, service, span, partitionKey: metricsPartition(request.started, span) });
      const all = counterFor(batch, 'user;All');
      const own = perApi ? counterFor(batch, `user;${request.operation ?? 'Unknown'}`) : undefined;
      if (!all || (perApi && !own)) dropped++;
      for (const counter of [all, own]) if (counter) countRequest(counter, request);
    },
    async writeAll(write) {
      for (const [key, batch] of [...batches]) {
        // Requests during the write are counted in a new batch.
        batches.delete(key);
        counterTotal -= batch.counters.size;
        if (batch.counters.size > 0 && (await write(batch)) === 'retry') requeue(batch);
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

  function requeue(batch: MetricsBatch): void {
    const newer = batchFor(batch);
    for (const [rowKey, counter] of batch.counters) {
      const sum = counterFor(newer, rowKey);
      if (sum) mergeCounters(sum, counter);
      else dropped += totalRequests(counter);
    }
  }
}
