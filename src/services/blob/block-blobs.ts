import { formatId } from '../../content/rows.ts';
import { crc64Base64, md5Base64 } from '../../hashing/hasher.ts';
import type { Transaction } from '../../partition/partition.ts';
import { encodeBytes } from '../../partition/values.ts';
import { formatEtag } from '../../rules/etag.ts';
import { leaseAfterWrite } from '../../rules/lease.ts';
import { checkHashes, type SentContent } from '../common/sent-content.ts';
import type { Storage } from '../common/storage.ts';
import { withUpload } from '../common/upload.ts';
import { encodeBlobRecord } from './blob-record.ts';
import { type BlobInput, checkWriteInput } from './blobs.ts';
import { fail } from './errors.ts';
import {
  checkLease,
  checkWritable,
  checkWriteConditions,
  type DecisionSnapshot,
  parseMetadata,
  type SentMetadata,
} from './request-checks.ts';
import { type BlobRecord, blobKey, type ContentHeaders, inlineKey, type Metadata, txQueueKey } from './rows.ts';
import {
  checkSameContainer,
  currentLease,
  findContainerId,
  readTarget,
  releaseReplaced,
  type WriteTarget,
} from './write-target.ts';

export interface PutBlobInput extends BlobInput {
  readonly content: ContentHeaders;
  readonly metadata: SentMetadata;
  readonly body: SentContent;
}

/** Refuses what would be refused anyway, before the body is sent. */
export async function precheckPutBlob(storage: Storage, input: Omit<PutBlobInput, 'body'>): Promise<void> {
  const leaseId = checkWriteInput(input);
  parseMetadata(input.metadata);
  await storage.partition.read((at) => checkPut(at, storage, input, leaseId));
}

export async function putBlob(storage: Storage, input: PutBlobInput) {
  const checked = { leaseId: checkWriteInput(input), metadata: parseMetadata(input.metadata) };
  const { whole, expected } = input.body;
  if (whole) {
    const hashes = { md5: md5Base64(whole), crc64: crc64Base64(whole) };
    checkHashes(expected, hashes);
    return put(storage, input, checked, hashes, async (tx, { container, name }) => {
      tx.put(inlineKey(storage.account, container, name), encodeBytes(whole));
      return undefined;
    });
  }
  const containerId = await findContainerId(storage, input.container);
  return withUpload(storage, input.body, { md5: true }, (uploaded) => {
    const id = storage.content.newId();
    return put(storage, input, checked, { md5: uploaded.md5!, crc64: uploaded.crc64 }, async (tx, target) => {
      checkSameContainer(target, containerId);
      await storage.content.commitUpload(tx, storage.account, uploaded);
      storage.content.addContent(tx, storage.account, id, [{ length: uploaded.length, chunkRefs: uploaded.chunkRefs }]);
      return formatId(id);
    });
  });
}

/** `write` leaves the bytes, and gives the content's id if they are not in the inline row. */
async function put(
  storage: Storage,
  input: PutBlobInput,
  { leaseId, metadata }: { leaseId: string | undefined; metadata: Metadata },
  { md5, crc64 }: { md5: string; crc64: string },
  write: (tx: Transaction, target: WriteTarget) => Promise<string | undefined>,
) {
  const { content, body } = input;
  const { account, partition, sweeper } = storage;
  const { timestamp, value } = await partition.transact(
    txQueueKey(account, input.container, input.blob),
    async (tx) => {
      const target = await checkPut(tx, storage, input, leaseId);
      const trashed = await releaseReplaced(tx, storage, target, { inline: body.whole !== undefined });
      const contentId = await write(tx, target);
      putBlobRecord(tx, storage, target, { length: body.length, crc64, contentId, content, metadata }, md5);
      return trashed;
    },
  );
  if (value) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp, md5, crc64 };
}

/**
 * The head of a blob that is new from its first byte on: it keeps only the time of its creation and a lease that holds.
 * `md5` is that of its bytes, if the client sets none.
 */
export function putBlobRecord(
  tx: Transaction,
  { account }: Storage,
  target: WriteTarget,
  { length, crc64, contentId, content, metadata, copy }: Omit<BlobRecord, 'created' | 'lease' | 'etag'>,
  md5?: string,
): void {
  const { container, name, blob } = target;
  const record = {
    length,
    crc64,
    contentId,
    // Each by its name: to spread such objects costs as much as all the rest of it.
    content: {
      contentType: content.contentType ?? 'application/octet-stream',
      contentEncoding: content.contentEncoding,
      contentLanguage: content.contentLanguage,
      contentDisposition: content.contentDisposition,
      cacheControl: content.cacheControl,
      contentMd5: content.contentMd5 ?? md5,
    },
    metadata,
    copy,
    created: blob?.created ?? tx.timestamp,
    lease: leaseAfterWrite(currentLease(target), tx.now),
  };
  tx.put(blobKey(account, container, name), encodeBlobRecord(record));
}

/** What Put Blob, Put Block List and Copy Blob ask of the blob that they are about to replace. */
export async function checkPut(
  at: DecisionSnapshot,
  storage: Storage,
  input: BlobInput,
  leaseId: string | undefined,
): Promise<WriteTarget> {
  checkWritable(storage, input.container);
  const target = await readTarget(at, storage, input.container, input.blob);
  checkLease(at, currentLease(target), leaseId, 'write', 'blob');
  checkWriteConditions(target.blob, input.conditions, leaseId, true);
  if (target.blob && storage.granted?.overwrite === false) throw fail('UnauthorizedBlobOverwrite');
  return target;
}
