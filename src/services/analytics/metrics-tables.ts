/** The metrics of an account: entities in tables that only the server writes. */
import type { Transaction } from '../../partition/partition.ts';
import { addTally, columnsOf, newTally, tallyOf } from '../../rules/analytics/request-counters.ts';
import { keptSince, partitionOf } from '../../rules/analytics/time-partitions.ts';
import { metricsTable } from '../../rules/table/table-names.ts';
import { checkAccount } from '../common/account-rows.ts';
import { decodeName, type ServiceName } from '../common/names.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import {
  encodeEntity,
  entitiesIn,
  entityKey,
  storedEntity,
  type TableId,
  valueOf as valueIn,
  written,
} from '../table/entity-rows.ts';
import { encodeProperties, encodeTable, entityAnchor, nameKey, propertiesKey, tableAnchor } from '../table/rows.ts';
import type { Reading, Span } from './metrics-aggregator.ts';

type Place = Pick<Storage, 'account' | 'partition'>;

/** Adds to what this and other processes have written for the same hour or minute. */
export async function writeMetrics({ account, partition }: Place, reading: Reading): Promise<void> {
  const { service, span, partitionKey } = reading;
  const table = metricsTable(span, service);
  const tallies = [...reading.tallies];
  await partition.transact(entityAnchor({ account }, table, { partitionKey, rowKey: '' }), async (tx) => {
    const id = await tableAt(tx, account, table);
    const keys = tallies.map(([rowKey]) => entityKey(account, id, partitionKey, rowKey));
    const rows = await tx.getMany(keys);
    for (const [i, [rowKey, tally]] of tallies.entries()) {
      const sum = newTally();
      addTally(sum, tally);
      const entity = rows[i] && storedEntity(rows[i]);
      if (entity)
        addTally(
          sum,
          tallyOf((column) => valueIn(entity, column)),
        );
      const properties = columnsOf(sum).map(({ name, value }) => ({ name, value: written(value) }));
      tx.put(keys[i]!, encodeEntity({ partitionKey, rowKey }, properties));
    }
  });
}

/** Made when it is first needed. */
async function tableAt(tx: Transaction, account: AccountId, table: string): Promise<TableId> {
  const row = await tx.get(nameKey(account, table));
  if (row) return decodeName(row);
  await checkAccount(tx, account);
  const properties = propertiesKey(account, tx.stamp);
  // As in Create Table: two processes must not use one stamp as the id of two tables.
  await tx.get(properties);
  tx.put(nameKey(account, table), encodeTable(tx.stamp, table));
  tx.put(properties, encodeProperties({ policies: [] }));
  return tx.stamp;
}

const SLICE = { limit: 200 };

export async function removeOldMetrics(
  { account, partition }: Place,
  service: ServiceName,
  span: Span,
  days: number,
  now: bigint,
): Promise<void> {
  const table = metricsTable(span, service);
  for (let isOver = false; !isOver; ) {
    const { value } = await partition.transact(tableAnchor(account, table), async (tx) => {
      const name = await tx.get(nameKey(account, table));
      if (!name) return 0;
      const id = decodeName(name);
      const to = entityKey(account, id, partitionOf(keptSince(now, days), span), '');
      const old = await tx.glance({ from: entitiesIn(account, id).from, to }, SLICE);
      for (const { key } of old) tx.remove(key);
      return old.length;
    });
    isOver = value < SLICE.limit;
  }
}
