/**
 * A lock for a table, as Azure Storage has it: tables know no leases, so that a lease on a blob of one's own choice stands for
 * the table, and every client that changes the table acquires that lease first.
 *
 *   node examples/lease-guards-table.mjs [connection string]
 *
 * Without one it is that of AZURE_STORAGE_CONNECTION_STRING, or the development storage.
 *
 * Four workers move money between accounts. Each account lies in a partition of its own, where no transaction of the table
 * reaches both, and no client uses If-Match: only the lease prevents lost updates.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { RestError, TableClient } from '@azure/data-tables';
import { BlobServiceClient } from '@azure/storage-blob';

const LEASE_SECONDS = 15;
const RENEW_MILLISECONDS = 5_000;
const RETRY_MILLISECONDS = 100;

/**
 * Runs the work while no other client holds the lock. The signal tells it that the lock is lost: whoever was not heard of for as long as
 * a lease lasts must not write any more, because another may have begun.
 * @template T
 * @param {import('@azure/storage-blob').BlockBlobClient} lock a blob that exists
 * @param {(signal: AbortSignal) => Promise<T>} work
 */
export async function whileLocked(lock, work) {
  const lease = lock.getBlobLeaseClient(randomUUID());
  await acquire(lease);
  const lost = new AbortController();
  const renewing = setInterval(() => lease.renewLease().catch((error) => lost.abort(error)), RENEW_MILLISECONDS);
  try {
    return await work(lost.signal);
  } finally {
    clearInterval(renewing);
    await lease.releaseLease().catch(() => {});
  }
}

async function acquire(lease) {
  for (;;) {
    try {
      await lease.acquireLease(LEASE_SECONDS);
      return;
    } catch (error) {
      // 409: another holds it. A holder that died loses it by itself.
      if (!(error instanceof Error) || /** @type {{ statusCode?: number }} */ (error).statusCode !== 409) throw error;
      await sleep(RETRY_MILLISECONDS * Math.random());
    }
  }
}

/**
 * The blob that stands for this table.
 * @param {BlobServiceClient} blobs
 * @param {string} table
 * @param {string} [containerName] of the blobs that stand for tables
 */
export async function lockOf(blobs, table, containerName = 'table-locks') {
  const container = blobs.getContainerClient(containerName);
  await container.createIfNotExists();
  const blob = container.getBlockBlobClient(table);
  await blob.upload('', 0, { conditions: { ifNoneMatch: '*' } }).catch((error) => {
    // It is there, and perhaps leased by now.
    if (error.statusCode !== 409 && error.statusCode !== 412) throw error;
  });
  return blob;
}

/**
 * @param {import('@azure/data-tables').TableClient} table
 * @param {AbortSignal} signal
 */
export async function transfer(table, from, to, amount, signal) {
  const [payer, payee] = await Promise.all([table.getEntity(from, 'balance'), table.getEntity(to, 'balance')]);
  for (const [account, change] of [
    [payer, -amount],
    [payee, amount],
  ]) {
    signal.throwIfAborted();
    const { partitionKey, rowKey, cents } = account;
    await table.updateEntity({ partitionKey, rowKey, cents: cents + change }, 'Replace', { abortSignal: signal });
  }
}

async function main(connectionString = process.env.AZURE_STORAGE_CONNECTION_STRING ?? 'UseDevelopmentStorage=true') {
  const blobs = BlobServiceClient.fromConnectionString(connectionString);
  const name = `accounts${Date.now()}`;
  const table = TableClient.fromConnectionString(connectionString, name, { allowInsecureConnection: true });
  await table.createTable();
  try {
    const accounts = ['ada', 'bob', 'eve'];
    for (const account of accounts) {
      await table.createEntity({ partitionKey: account, rowKey: 'balance', cents: 10_000 });
    }
    const lock = await lockOf(blobs, name);
    const workers = Array.from({ length: 4 }, async (_, worker) => {
      for (let round = 0; round < 5; round++) {
        const [from, to] = [accounts[(worker + round) % 3], accounts[(worker + round + 1) % 3]];
        await whileLocked(lock, (signal) => transfer(table, from, to, worker + 1, signal));
      }
    });
    await Promise.all(workers);
    let sum = 0;
    for await (const { partitionKey, cents } of table.listEntities()) {
      console.log(`${partitionKey}  ${cents}`);
      sum += Number(cents);
    }
    console.log(`sum  ${sum}`);
  } finally {
    await table.deleteTable();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(process.argv[2]).catch((error) => {
    console.error(error instanceof RestError ? error.message : error);
    process.exitCode = 1;
  });
}
