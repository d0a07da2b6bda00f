/** Entities: optimistic concurrency is the default, `*` makes the last writer win, and a blob's lease locks a whole table. */
import type { TableClient } from '@azure/data-tables';
import type { BlobServiceClient } from '@azure/storage-blob';
import { lockOf, transfer, whileLocked } from '../lease-guards-table.mjs';
import type { Story } from './story.ts';

const key = { partitionKey: 'Walter', rowKey: 'Harp' };
const read = (table: TableClient) => table.getEntity<{ email: string; phone?: string }>(key.partitionKey, key.rowKey);

export async function updateEntityByETag(table: TableClient, story: Story): Promise<void> {
  story.chapter('An entity and its ETag');
  await story.step('A client inserts a customer', () => table.createEntity({ ...key, email: 'walter@example.com' }));
  await story.refused('Another inserts the same customer', 409, 'EntityAlreadyExists', () =>
    table.createEntity({ ...key, email: 'harp@example.com' }),
  );
  const { etag } = await story.step('The client reads the customer', () => read(table));
  await story.step('A third party adds a telephone number', () =>
    table.updateEntity({ ...key, phone: '555' }, 'Merge'),
  );
  await story.refused(
    'The client replaces the customer, with the ETag that it read',
    412,
    'UpdateConditionNotSatisfied',
    () => table.updateEntity({ ...key, email: 'new@example.com' }, 'Replace', { etag }),
  );
  await story.step('It reads again, and replaces with the new ETag', async () => {
    const { etag, phone } = await read(table);
    await table.updateEntity({ ...key, email: 'new@example.com', phone }, 'Replace', { etag });
  });
  story.fact('The number of the third party is kept', (await read(table)).phone ?? 'none', '555');
  await story.step('A client replaces with "*" instead of an ETag', () =>
    table.updateEntity({ ...key, email: 'last@example.com' }, 'Replace', { etag: '*' }),
  );
  story.fact('Now the last writer has won, and the number is lost', (await read(table)).phone ?? 'none', 'none');
  await story.refused('A client deletes the customer, with the first ETag', 412, 'UpdateConditionNotSatisfied', () =>
    table.deleteEntity(key.partitionKey, key.rowKey, { etag }),
  );
}

/** No transaction reaches two partitions. */
export async function guardTableByLease(
  blobs: BlobServiceClient,
  table: TableClient,
  containerName: string,
  story: Story,
): Promise<void> {
  story.chapter('A table that a lease on a blob guards');
  const accounts = ['ada', 'bob', 'eve'];
  await story.step('Three accounts have 100 each, in a partition of their own', async () => {
    for (const account of accounts) {
      await table.createEntity({ partitionKey: account, rowKey: 'balance', cents: 100 });
    }
  });
  const lock = await lockOf(blobs, table.tableName, containerName);
  await story.step('Three workers move money, two transfers each; every transfer waits for the lease of one blob', () =>
    Promise.all(
      accounts.map(async (from, index) => {
        for (const next of [1, 2]) {
          const to = accounts[(index + next) % 3];
          await whileLocked(lock, (signal) => transfer(table, from, to, 10 * (index + 1), signal));
        }
      }),
    ),
  );
  let sum = 0;
  for (const account of accounts) {
    const { cents } = await table.getEntity<{ cents: number }>(account, 'balance');
    sum += cents;
    story.fact(`The balance of ${account}`, cents, { ada: 130, bob: 100, eve: 70 }[account]!);
  }
  story.fact('The sum is what it was', sum, 300);
}
