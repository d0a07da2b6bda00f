/** The metrics tables of an account, whose entities only the server writes. */
import type { Transaction } from '../../partition/partition.ts';
import {
  createCounters,
  mergeCounters,
  metricsColumns,
  parseCounters,
} from '../../rules/analytics/request-counters.ts';
import { metricsPartition, retentionStart } from '../../rules/analytics/time-partitions.ts';
import { metricsTableName } from '../../rules/names.ts';
import { checkNotRemoved } from '../common/account-rows.ts';
import { decodeName, type ServiceName } from '../common/names.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import {
  canonicalize,
  encodeEntity,
  entitiesIn,
  entityFromRow,
  entityKey,
  propertyName,
  propertyValue,
  type TableId,
} from '../table/entity-rows.ts';
import {
  encodeProperties,
  encodeTable,
  entityTxQueueKey,
  nameKey,
  propertiesKey,
  tableTxQueueKey,
} from '../table/rows.ts';
import type { Granularity, MetricsBatch } from './metrics-aggregator.ts';

type MetricsScope = Pick<Storage, 'account' | 'partition'>;

/** Adds to the sums that this and other processes have written for the same hour or minute. */
export async function writeMetrics({ account, partition }: MetricsScope, batch: MetricsBatch): Promise<void> {
  const { service, span, partitionKey } = batch;
  const table = metricsTableName(span, service);
  const counters = [...batch.counters];
  await partition.transact(entityTxQueueKey({ account }, table, { partitionKey, rowKey: '' }), async (tx) => {
    const id = await ensureTable(tx, account, table);
    const keys = counters.map(([rowKey]) => entityKey(account, id, partitionKey, rowKey));
    const rows = await tx.getMany(keys);
    for (const [i, [rowKey, counter]] of counters.entries()) {
      const sum = createCounters();
      mergeCounters(sum, counter);
      const entity = rows[i] && entityFromRow(rows[i]);
      if (entity)
        mergeCounters(
          sum,
          parseCounters((column) => propertyValue(entity, column)),
        );
      const properties = metricsColumns(sum).map(({ name, value }) => ({
        name: propertyName(name),
        value: canonicalize(value),
      }));
      tx.put(keys[i]!, encodeEntity({ partitionKey, rowKey }, properties));
    }
  });
}

/** Creates the table when it is first needed. */
async function ensureTable(tx: Transaction, account: AccountId, table: string): Promise<TableId> {
  const row = await tx.get(nameKey(account, table));
  if (row) return decodeName(row);
  await checkNotRemoved(tx, account);
  const properties = propertiesKey(account, tx.timestamp);
  // As in Create Table: this read check keeps two processes from using one timestamp as the id of two tables.
  await tx.get(properties);
  tx.put(nameKey(account, table), encodeTable(tx.timestamp, table));
  tx.put(properties, encodeProperties({ policies: [] }));
  return tx.timestamp;
}

const SLICE = { limit: 200 };

export async function removeOldMetrics(
  { account, partition }: MetricsScope,
  service: ServiceName,
  span: Granularity,
  days: number,
  now: bigint,
): Promise<void> {
  const table = metricsTableName(span, service);
  for (let isOver = false; !isOver; ) {
    const { value } = await partition.transact(tableTxQueueKey(account, table), async (tx) => {
      const name = await tx.get(nameKey(account, table));
      if (!name) return 0;
      const id = decodeName(name);
      const to = entityKey(account, id, metricsPartition(retentionStart(now, days), span), '');
      const old = await tx.scanUnchecked({ from: entitiesIn(account, id).from, to }, SLICE);
      for (const { key } of old) tx.remove(key);
      return old.length;
    });
    isOver = value < SLICE.limit;
  }
}
