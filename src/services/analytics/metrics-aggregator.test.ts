import { describe, expect, it } from 'vitest';
import { anAnswered, MONDAY } from '../../../test/support/access-record.ts';
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { totalRequests } from '../../rules/analytics/request-counters.ts';
import { createMetricsAggregator } from './metrics-aggregator.ts';

const MINUTE = 60n * TICKS_PER_SECOND;

async function writtenBatches(
  aggregator: ReturnType<typeof createMetricsAggregator>,
  outcome: 'written' | 'retry' = 'written',
) {
  const batches: unknown[] = [];
  await aggregator.writeAll(async ({ account, span, partitionKey, counters }) => {
    for (const [rowKey, counter] of counters)
      batches.push([account, span, partitionKey, rowKey, totalRequests(counter)]);
    return outcome;
  });
  return batches;
}

describe('A metrics aggregator', () => {
  it('counts by account, hour or minute, and operation', async () => {
    const aggregator = createMetricsAggregator();
    aggregator.count(1n, 'hour', anAnswered({}), true);
    aggregator.count(1n, 'hour', anAnswered({ started: MONDAY + MINUTE, operation: undefined }), true);
    aggregator.count(1n, 'minute', anAnswered({}), false);
    aggregator.count(1n, 'minute', anAnswered({ started: MONDAY + MINUTE }), false);
    aggregator.count(2n, 'hour', anAnswered({}), false);
    expect(await writtenBatches(aggregator)).toEqual([
      [1n, 'hour', '20261116T0900', 'user;All', 2],
      [1n, 'hour', '20261116T0900', 'user;PutBlob', 1],
      [1n, 'hour', '20261116T0900', 'user;Unknown', 1],
      [1n, 'minute', '20261116T0905', 'user;All', 1],
      [1n, 'minute', '20261116T0906', 'user;All', 1],
      [2n, 'hour', '20261116T0900', 'user;All', 1],
    ]);
    expect(await writtenBatches(aggregator)).toEqual([]);
  });

  it('holds at most countersMax counters, and counts the requests that it drops', async () => {
    const aggregator = createMetricsAggregator({ countersMax: 2 });
    for (let i = 0n; i < 5n; i++) aggregator.count(1n, 'minute', anAnswered({ started: MONDAY + i * MINUTE }), false);
    expect([aggregator.takeDropped(), aggregator.takeDropped()]).toEqual([3, 0]);
    expect(await writtenBatches(aggregator)).toHaveLength(2);
    for (let i = 0n; i < 2n; i++) aggregator.count(1n, 'minute', anAnswered({ started: MONDAY + i * MINUTE }), false);
    expect(aggregator.takeDropped()).toBe(0);
  });

  it('keeps a batch that could not be written, and adds it to the newer counters', async () => {
    const aggregator = createMetricsAggregator();
    aggregator.count(1n, 'hour', anAnswered({}), false);
    await aggregator.writeAll(async () => {
      aggregator.count(1n, 'hour', anAnswered({}), false);
      return 'retry';
    });
    expect(await writtenBatches(aggregator)).toEqual([[1n, 'hour', '20261116T0900', 'user;All', 2]]);
  });
});
