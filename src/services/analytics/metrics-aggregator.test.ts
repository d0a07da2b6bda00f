import { describe, expect, it } from 'vitest';
import { anAnswered, MONDAY } from '../../../test/support/access-record.ts';
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { totalRequests } from '../../rules/analytics/request-counters.ts';
import { createMetricsAggregator } from './metrics-aggregator.ts';

const MINUTE = 60n * TICKS_PER_SECOND;

async function readingsOf(meter: ReturnType<typeof createMetricsAggregator>, outcome: 'written' | 'retry' = 'written') {
  const readings: unknown[] = [];
  await meter.writeAll(async ({ account, span, partitionKey, counters }) => {
    for (const [rowKey, tally] of counters) readings.push([account, span, partitionKey, rowKey, totalRequests(tally)]);
    return outcome;
  });
  return readings;
}

describe('A meter', () => {
  it('counts by account, hour or minute, and operation', async () => {
    const meter = createMetricsAggregator();
    meter.count(1n, 'hour', anAnswered({}), true);
    meter.count(1n, 'hour', anAnswered({ started: MONDAY + MINUTE, operation: undefined }), true);
    meter.count(1n, 'minute', anAnswered({}), false);
    meter.count(1n, 'minute', anAnswered({ started: MONDAY + MINUTE }), false);
    meter.count(2n, 'hour', anAnswered({}), false);
    expect(await readingsOf(meter)).toEqual([
      [1n, 'hour', '20261116T0900', 'user;All', 2],
      [1n, 'hour', '20261116T0900', 'user;PutBlob', 1],
      [1n, 'hour', '20261116T0900', 'user;Unknown', 1],
      [1n, 'minute', '20261116T0905', 'user;All', 1],
      [1n, 'minute', '20261116T0906', 'user;All', 1],
      [2n, 'hour', '20261116T0900', 'user;All', 1],
    ]);
    expect(await readingsOf(meter)).toEqual([]);
  });

  it('holds so many rows, and counts what found no room', async () => {
    const meter = createMetricsAggregator({ countersMax: 2 });
    for (let i = 0n; i < 5n; i++) meter.count(1n, 'minute', anAnswered({ started: MONDAY + i * MINUTE }), false);
    expect([meter.takeDropped(), meter.takeDropped()]).toEqual([3, 0]);
    expect(await readingsOf(meter)).toHaveLength(2);
    for (let i = 0n; i < 2n; i++) meter.count(1n, 'minute', anAnswered({ started: MONDAY + i * MINUTE }), false);
    expect(meter.takeDropped()).toBe(0);
  });

  it('keeps what could not be written, and adds it to what came meanwhile', async () => {
    const meter = createMetricsAggregator();
    meter.count(1n, 'hour', anAnswered({}), false);
    await meter.writeAll(async () => {
      meter.count(1n, 'hour', anAnswered({}), false);
      return 'retry';
    });
    expect(await readingsOf(meter)).toEqual([[1n, 'hour', '20261116T0900', 'user;All', 2]]);
  });
});
