/** Data in all its forms, written and read by Microsoft's SDKs: the same for Azurite and for the server that took it over. */
import { createHash } from 'node:crypto';
import { TableClient, TableServiceClient } from '@azure/data-tables';
import { type BlobLeaseClient, BlobServiceClient, type ContainerClient } from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';

const policy = (id: string, permission: string) => ({
  id,
  accessPolicy: { startsOn: new Date('2024-01-01'), expiresOn: new Date('2090-01-01'), permissions: permission },
});
const blockId = (text: string) => Buffer.from(text).toString('base64');
const LEASE_ID = '6f9619ff-8b86-d011-b42d-00c04fc964ff';
const insecure = { allowInsecureConnection: true };

/** @param lasting only what is the same on another day: no message that expires or becomes visible */
export async function fill(connectionString: string, { lasting }: { readonly lasting: boolean }): Promise<void> {
  await fillBlobs(BlobServiceClient.fromConnectionString(connectionString));
  await fillQueues(QueueServiceClient.fromConnectionString(connectionString), lasting);
  await fillTables(connectionString);
}

async function fillBlobs(service: BlobServiceClient): Promise<void> {
  const photos = service.getContainerClient('photos');
  await photos.create({ metadata: { Owner: 'me' } });
  await photos.setAccessPolicy('container', [policy('readers', 'rl')]);
  await service.getContainerClient('empty').create();
  await service.getContainerClient('empty').getBlobLeaseClient(LEASE_ID).acquireLease(-1);
  await service.getContainerClient('public').create({ access: 'blob' });
  await photos.getBlockBlobClient('a/hello ü %41.txt').upload('hello', 5, {
    blobHTTPHeaders: {
      ...{ blobContentType: 'text/plain', blobCacheControl: 'no-cache', blobContentLanguage: 'de' },
      ...{ blobContentDisposition: 'inline', blobContentEncoding: 'identity' },
    },
    metadata: { Key: 'value', other: '2' },
    tags: { tag: '1', 'b c': 'd/e' },
    tier: 'Cool',
  });
  await photos.getBlockBlobClient('empty').upload('', 0);
  await photos.getBlockBlobClient('archived').upload('zz', 2, { tier: 'Archive' });
  const large = Buffer.alloc(300_000, 'large');
  await photos.getBlockBlobClient('large').upload(large, large.length);
  const blocks = photos.getBlockBlobClient('blocks');
  for (const [id, text] of Object.entries({ one: 'first ', two: 'x'.repeat(70_000), six: 'last' }))
    await blocks.stageBlock(blockId(id), text, text.length);
  await blocks.commitBlockList(['one', 'two', 'six', 'one'].map(blockId), { metadata: { by: 'blocks' } });
  await blocks.stageBlock(blockId('new'), 'uncommitted', 11);
  await photos.getBlockBlobClient('only-uncommitted').stageBlock(blockId('new'), 'abc', 3);
  const overwritten = photos.getBlockBlobClient('overwritten');
  await overwritten.upload('old', 3);
  await overwritten.upload('newer', 5);
  await photos.getBlockBlobClient('deleted').upload('x', 1);
  await photos.getBlockBlobClient('deleted').delete();
  await fillInPlace(photos);
  await fillSnapshots(photos);
  const leased = photos.getBlockBlobClient('leased');
  await leased.upload('l', 1);
  await leased.getBlobLeaseClient(LEASE_ID).acquireLease(-1);
}

async function fillInPlace(container: ContainerClient): Promise<void> {
  const appended = container.getAppendBlobClient('append');
  await appended.create({ metadata: { by: 'append' }, blobHTTPHeaders: { blobContentType: 'text/x-log' } });
  for (const line of ['line', ' and ', 'x'.repeat(70_000)]) await appended.appendBlock(line, line.length);
  await appended.createSnapshot();
  await appended.createSnapshot({ metadata: { state: 'its own' } });
  await appended.appendBlock('more', 4);
  await appended.setMetadata({ state: 'longer' });
  await appended.setHTTPHeaders({ blobContentType: 'text/plain', blobCacheControl: 'no-cache' });
  await appended.createSnapshot();
  await appended.create({ metadata: { state: 'created anew' } });
  await appended.appendBlock('again', 5);
  await appended.createSnapshot();
  await appended.appendBlock(' and again', 10);
  await container.getAppendBlobClient('append-empty').create();
  const pages = container.getPageBlobClient('pages');
  await pages.create(2 ** 40, { metadata: { by: 'pages' }, blobSequenceNumber: 7 });
  const put = (byte: number, from: number, length: number) =>
    pages.uploadPages(Buffer.alloc(length, byte), from, length);
  await put(1, 0, 4_096);
  // In the middle of the first: Azurite then names three parts of it.
  await put(2, 1_024, 512);
  await put(3, 2 ** 39, 512);
  await put(4, 2 ** 20, 70_656);
  await pages.createSnapshot();
  await pages.clearPages(2 ** 20 + 512, 1_024);
  await put(5, 512, 1_024);
  await put(6, 2 ** 30, 512);
  await pages.setMetadata({ by: 'pages', state: 'second' });
  await pages.updateSequenceNumber('update', 3);
  await pages.createSnapshot();
  // Shorter, and longer again: what was at 2 ** 39 is gone.
  await pages.resize(2 ** 38);
  await pages.createSnapshot();
  await pages.resize(2 ** 40);
  await pages.clearPages(0, 4_096);
  await put(7, 2 ** 39 + 512, 512);
  await container.getPageBlobClient('pages-empty').create(512);
}

async function fillSnapshots(container: ContainerClient): Promise<void> {
  const snapped = container.getBlockBlobClient('snapped');
  await snapped.upload('then', 4, { metadata: { state: 'first' }, tier: 'Archive' });
  await snapped.createSnapshot();
  await snapped.stageBlock(blockId('one'), 'by blocks', 9);
  await snapped.commitBlockList([blockId('one')], { metadata: { state: 'second' }, tier: 'Cool' });
  await snapped.createSnapshot({ metadata: { state: 'its own' } });
  await snapped.upload('now', 3);
}

async function fillQueues(service: QueueServiceClient, lasting: boolean): Promise<void> {
  const jobs = service.getQueueClient('jobs');
  await jobs.create({ metadata: { team: 'blue' } });
  await jobs.setAccessPolicy([policy('peekers', 'r')]);
  for (const text of ['first & <ü>', 'second', 'x'.repeat(30_000)])
    await jobs.sendMessage(text, { messageTimeToLive: -1 });
  await service.getQueueClient('empty').create();
  if (lasting) return;
  const timed = service.getQueueClient('timed');
  await timed.create();
  await timed.sendMessage('received', { messageTimeToLive: 50_000 });
  await timed.receiveMessages({ visibilityTimeout: 1 });
  await timed.sendMessage('expires');
  await timed.sendMessage('later', { visibilityTimeout: 3_600 });
  await timed.sendMessage('gone', { messageTimeToLive: 1 });
}

async function fillTables(connectionString: string): Promise<void> {
  const people = TableClient.fromConnectionString(connectionString, 'People', insecure);
  await people.createTable();
  await people.createEntity({
    ...{ partitionKey: "p'1", rowKey: 'r', name: 'Ann ü', age: 3, ok: true, height: 1.5, empty: '' },
    ...{ big: { type: 'Int64', value: '9007199254740993' }, whole: { type: 'Double', value: '2' } },
    ...{ when: new Date('2020-01-02T03:04:05Z'), bytes: new Uint8Array([1, 2, 255]) },
    guid: { type: 'Guid', value: '6f9619ff-8b86-d011-b42d-00c04fc964ff' },
  });
  for (let i = 0; i < 130; i++) await people.createEntity({ partitionKey: 'many', rowKey: String(i), i });
  await TableClient.fromConnectionString(connectionString, 'Empty', insecure).createTable();
}

/** Everything that the SDKs show, without ETags and times, which an import cannot keep. */
export async function readEverything(connectionString: string): Promise<unknown> {
  return {
    containers: await readContainers(BlobServiceClient.fromConnectionString(connectionString)),
    queues: await readQueues(QueueServiceClient.fromConnectionString(connectionString)),
    tables: await readTables(connectionString),
  };
}

async function readContainers(service: BlobServiceClient) {
  const containers: Record<string, unknown> = {};
  const options = { includeUncommitedBlobs: true, includeTags: true, includeSnapshots: true };
  for await (const { name } of service.listContainers()) {
    const container = service.getContainerClient(name);
    const { metadata, blobPublicAccess, leaseState } = await container.getProperties();
    const { signedIdentifiers } = await container.getAccessPolicy();
    const blobs: Record<string, unknown> = {};
    for await (const { name: blob, snapshot = '', tags } of container.listBlobsFlat(options)) {
      blobs[`${blob} ${snapshot}`.trim()] = await readBlob(container, blob, snapshot, tags);
    }
    const lease = await leaseOf(leaseState, container.getBlobLeaseClient(LEASE_ID));
    containers[name] = { metadata, blobPublicAccess, signedIdentifiers, lease, blobs };
  }
  return containers;
}

async function readBlob(
  container: ContainerClient,
  name: string,
  snapshot: string,
  tags: Record<string, string> | undefined,
) {
  const blob = container.getBlockBlobClient(name).withSnapshot(snapshot);
  const properties = await blob.getProperties().catch(() => undefined);
  const { blobType = 'BlockBlob', accessTier } = properties ?? {};
  const isArchived = accessTier === 'Archive';
  const lists = blobType === 'BlockBlob' && !isArchived ? await blob.getBlockList('all') : undefined;
  const { contentLength, contentType, contentEncoding, contentLanguage, contentDisposition, cacheControl, metadata } =
    properties ?? {};
  return {
    ...{ contentLength, contentType, contentEncoding, contentLanguage, contentDisposition, cacheControl },
    ...{ metadata, tags, blobType },
    md5: properties?.contentMD5 && Buffer.from(properties.contentMD5).toString('base64'),
    tier: accessTier,
    lease: await leaseOf(properties?.leaseState, blob.getBlobLeaseClient(LEASE_ID)),
    sha256: properties && !isArchived ? await hashOf(container, name, snapshot, blobType) : undefined,
    committed: lists?.committedBlocks,
    uncommitted: lists?.uncommittedBlocks,
    ...(blobType === 'AppendBlob' && { appended: properties!.blobCommittedBlockCount }),
    ...(blobType === 'PageBlob' && { sequenceNumber: properties!.blobSequenceNumber }),
  };
}

/** Renewed, to see that it has this id. */
async function leaseOf(state: string | undefined, lease: BlobLeaseClient): Promise<string | undefined> {
  return state === 'leased' ? (await lease.renewLease()).leaseId : undefined;
}

/** Of a page blob: of the ranges that were written, with their positions. */
async function hashOf(container: ContainerClient, name: string, snapshot: string, blobType: string): Promise<string> {
  const hash = createHash('sha256');
  const pages = container.getPageBlobClient(name).withSnapshot(snapshot);
  if (blobType !== 'PageBlob') return hash.update(await pages.downloadToBuffer()).digest('hex');
  for (const [from, to] of joined((await pages.getPageRanges()).pageRange ?? [])) {
    hash.update(`${from}-${to}:`);
    hash.update(await pages.downloadToBuffer(from, to - from));
  }
  return hash.digest('hex');
}

/** Azurite lists neighbours one by one. The count of the SDK is that of the bytes before the last one. */
function joined(ranges: readonly { readonly offset: number; readonly count?: number }[]): [from: number, to: number][] {
  const found: [from: number, to: number][] = [];
  for (const { offset, count = 0 } of ranges) {
    const last = found.at(-1);
    const end = offset + count + 1;
    if (last?.[1] === offset) last[1] = end;
    else found.push([offset, end]);
  }
  return found;
}

async function readQueues(service: QueueServiceClient) {
  const queues: Record<string, unknown> = {};
  for await (const { name } of service.listQueues()) {
    const queue = service.getQueueClient(name);
    const { metadata } = await queue.getProperties();
    const { signedIdentifiers } = await queue.getAccessPolicy();
    const { peekedMessageItems } = await queue.peekMessages({ numberOfMessages: 32 });
    const messages = peekedMessageItems.map(({ messageText, dequeueCount, insertedOn, expiresOn }) => ({
      ...{ messageText, dequeueCount },
      insertedOn: insertedOn.toISOString(),
      expiresOn: expiresOn.getUTCFullYear() === 9999 ? 'never' : expiresOn.toISOString(),
    }));
    queues[name] = { metadata, signedIdentifiers, messages };
  }
  return queues;
}

async function readTables(connectionString: string) {
  const tables: Record<string, unknown> = {};
  for await (const { name = '' } of TableServiceClient.fromConnectionString(connectionString, insecure).listTables()) {
    const entities: unknown[] = [];
    for await (const { etag: _, timestamp: __, ...entity } of TableClient.fromConnectionString(
      connectionString,
      name,
      insecure,
    ).listEntities({ disableTypeConversion: true }))
      entities.push(withIsoTimes(entity));
    tables[name] = entities;
  }
  return tables;
}

/** Azurite answers with the text that was sent, Azure with its own. */
function withIsoTimes(entity: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(
    Object.entries(entity).map(([name, value]) => {
      const { type, value: text } = Object(value) as { type?: string; value?: string };
      return [name, type === 'DateTime' ? new Date(text!).toISOString() : value];
    }),
  );
}
