/** Pessimistic concurrency: a lease locks a blob against writes, and a container against its deletion. */
import { randomUUID } from 'node:crypto';
import type { BlobServiceClient, BlockBlobClient, ContainerClient } from '@azure/storage-blob';
import type { Account, Story } from './story.ts';

const LEASE_SECONDS = 15;
const BREAK_SECONDS = 5;

export async function leaseBlob(container: ContainerClient, account: Account, story: Story): Promise<void> {
  story.chapter('A lease on a blob (pessimistic concurrency)');
  const blob = container.getBlockBlobClient('leased.txt');
  await write(blob, 'first');
  const mine = blob.getBlobLeaseClient(randomUUID());
  const others = blob.getBlobLeaseClient(randomUUID());

  await story.step(`Client 1 acquires a lease of ${LEASE_SECONDS} seconds`, () => mine.acquireLease(LEASE_SECONDS));
  await story.refused('Client 2 acquires one, too', 409, 'LeaseAlreadyPresent', () =>
    others.acquireLease(LEASE_SECONDS),
  );
  await story.refused('Client 2 writes without a lease id', 412, 'LeaseIdMissing', () => write(blob, 'second'));
  await story.refused('Client 2 writes with an id of its own', 412, 'LeaseIdMismatchWithBlobOperation', () =>
    write(blob, 'second', others.leaseId),
  );
  await story.step('Client 2 reads: reads need no lease', () => blob.getProperties());
  await story.step('Client 1 writes with its lease id', () => write(blob, 'by the holder', mine.leaseId));
  await story.step('Client 1 renews the lease', () => mine.renewLease());

  await story.step(`An administrator breaks the lease, in ${BREAK_SECONDS} seconds`, () =>
    blob.getBlobLeaseClient().breakLease(BREAK_SECONDS),
  );
  await story.refused('Client 1 renews it now', 409, 'LeaseIsBrokenAndCannotBeRenewed', () => mine.renewLease());
  await story.step('Client 1 still writes with it', () => write(blob, 'last words', mine.leaseId));
  await account.pass(BREAK_SECONDS + 1);
  await story.refused('When the time is over, client 1 writes with it', 412, 'LeaseLost', () =>
    write(blob, 'too late', mine.leaseId),
  );

  await story.step('Client 2 acquires the lease', () => others.acquireLease(LEASE_SECONDS));
  await story.step('Client 2 releases it', () => others.releaseLease());
  await story.step('Anyone writes again', () => write(blob, 'free'));

  await story.step('Client 1 acquires the lease and crashes', () => mine.acquireLease(LEASE_SECONDS));
  await account.pass(LEASE_SECONDS + 1);
  await story.step(`${LEASE_SECONDS} seconds later the lease has expired, and client 2 writes`, () =>
    write(blob, 'after the expiry'),
  );
  await story.refused('Client 1 is back and writes with its lease id', 412, 'LeaseNotPresentWithBlobOperation', () =>
    write(blob, 'too late', mine.leaseId),
  );
}

export async function leaseContainer(blobs: BlobServiceClient, account: Account, story: Story): Promise<void> {
  story.chapter('A lease on a container');
  const container = blobs.getContainerClient(`${account.prefix}leased`);
  await container.create();
  const lease = container.getBlobLeaseClient(randomUUID());
  await story.step('A client acquires a lease that never expires on a container', () => lease.acquireLease(-1));
  await story.step('Others write blobs: the lease is about the container alone', () =>
    write(container.getBlockBlobClient('any.txt'), 'text'),
  );
  await story.refused('Another deletes the container', 412, 'LeaseIdMissing', () => container.delete());
  await story.step('The holder deletes it, with the lease id', () =>
    container.delete({ conditions: { leaseId: lease.leaseId } }),
  );
}

function write(blob: BlockBlobClient, text: string, leaseId?: string) {
  return blob.upload(text, text.length, leaseId === undefined ? {} : { conditions: { leaseId } });
}
