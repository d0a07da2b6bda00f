/** The whole story, in an account that may hold other data: what it creates it removes. */
import { TableClient } from '@azure/data-tables';
import { BlobServiceClient } from '@azure/storage-blob';
import { ShareServiceClient } from '@azure/storage-file-share';
import { QueueServiceClient } from '@azure/storage-queue';
import { updateBlobByETag } from './blob-etag.ts';
import { leaseFile, openOverSmb } from './file-share.ts';
import { leaseBlob, leaseContainer } from './leases.ts';
import { consumeOnce } from './queue-consumers.ts';
import { type Account, Story } from './story.ts';
import { guardTableByLease, updateEntityByETag } from './table-entities.ts';

export async function tell(account: Account, print: (line: string) => void): Promise<void> {
  const story = new Story(print);
  const { connectionString, prefix } = account;
  const blobs = BlobServiceClient.fromConnectionString(connectionString);
  const container = blobs.getContainerClient(prefix);
  const table = TableClient.fromConnectionString(connectionString, prefix, { allowInsecureConnection: true });
  const queue = QueueServiceClient.fromConnectionString(connectionString).getQueueClient(prefix);
  const share = ShareServiceClient.fromConnectionString(connectionString).getShareClient(prefix);
  await Promise.all([container.create(), table.createTable(), queue.create(), share.create()]);
  try {
    await updateBlobByETag(container, story);
    await leaseBlob(container, account, story);
    await leaseContainer(blobs, account, story);
    await updateEntityByETag(table, story);
    await guardTableByLease(blobs, table, prefix, story);
    await consumeOnce(queue, table, account, story);
    await leaseFile(share, story);
    if (account.smb) await openOverSmb(share, account, story);
  } finally {
    await Promise.all([container.delete(), table.deleteTable(), queue.delete(), share.delete()]);
  }
}
