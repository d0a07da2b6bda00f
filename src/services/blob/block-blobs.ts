import { textOf } from '../../content/rows.ts';
import { crc64Base64, md5Base64 } from '../../hashing/hasher.ts';
import type { Transaction } from '../../partition/partition.ts';
import { encodeBytes } from '../../partition/values.ts';
import { etagOf } from '../../rules/etag.ts';
import { afterWrite } from '../../rules/lease.ts';
import { checkHashes, type SentContent } from '../common/sent-content.ts';
import type { Storage } from '../common/storage.ts';
import { withTaken } from '../common/upload.ts';
import { encodeHead } from './blob-record.ts';
import { type BlobInput, checkWrite } from './blobs.ts';
import { fail } from './errors.ts';
import { checkWritable, type Judged, mayWrite, metadataOf, type SentMetadata, useLease } from './request-checks.ts';
import { anchorOf, type BlobHead, type ContentHeaders, headKey, inlineKey, type Metadata } from './rows.ts';
import { checkHome, homeOf, leaseOn, letGo, type Target, targetAt } from './write-target.ts';

export interface PutBlobInput extends BlobInput {
  readonly content: ContentHeaders;
  readonly metadata: SentMetadata;
  readonly body: SentContent;
}

/** Refuses what would be refused anyway, before the body is sent. */
export async function lookAtPutBlob(storage: Storage, input: Omit<PutBlobInput, 'body'>): Promise<void> {
  const leaseId = checkWrite(input);
  metadataOf(input.metadata);
  await storage.partition.read((at) => mayPut(at, storage, input, leaseId));
}

export async function putBlob(storage: Storage, input: PutBlobInput) {
  const checked = { leaseId: checkWrite(input), metadata: metadataOf(input.metadata) };
  const { whole, expected } = input.body;
  if (whole) {
    const hashes = { md5: md5Base64(whole), crc64: crc64Base64(whole) };
    checkHashes(expected, hashes);
    return put(storage, input, checked, hashes, async (tx, { container, name }) => {
      tx.put(inlineKey(storage.account, container, name), encodeBytes(whole));
      return undefined;
    });
  }
  const home = await homeOf(storage, input.container);
  return withTaken(storage, input.body, { md5: true }, (taken) => {
    const id = storage.content.newId();
    return put(storage, input, checked, { md5: taken.md5!, crc64: taken.crc64 }, async (tx, target) => {
      checkHome(target, home);
      await storage.content.nameChunks(tx, storage.account, taken);
      storage.content.addContent(tx, storage.account, id, [{ length: taken.length, parts: taken.parts }]);
      return textOf(id);
    });
  });
}

/** `write` leaves the bytes, and gives the content's id if they are not in the inline row. */
async function put(
  storage: Storage,
  input: PutBlobInput,
  { leaseId, metadata }: { leaseId: string | undefined; metadata: Metadata },
  { md5, crc64 }: { md5: string; crc64: string },
  write: (tx: Transaction, target: Target) => Promise<string | undefined>,
) {
  const { content, body } = input;
  const { account, partition, sweeper } = storage;
  const { stamp, value } = await partition.transact(anchorOf(account, input.container, input.blob), async (tx) => {
    const target = await mayPut(tx, storage, input, leaseId);
    const trashed = await letGo(tx, storage, target, { inline: body.whole !== undefined });
    const contentId = await write(tx, target);
    putHead(tx, storage, target, { length: body.length, crc64, contentId, content, metadata }, md5);
    return trashed;
  });
  if (value) sweeper.wake();
  return { etag: etagOf(stamp), modified: stamp, md5, crc64 };
}

/**
 * The head of a blob that is new from its first byte on: it keeps only the time of its creation and a lease that holds.
 * `md5` is that of its bytes, if the client sets none.
 */
export function putHead(
  tx: Transaction,
  { account }: Storage,
  target: Target,
  { length, crc64, contentId, content, metadata, copy }: Omit<BlobHead, 'created' | 'lease' | 'etag'>,
  md5?: string,
): void {
  const { container, name, blob } = target;
  const head = {
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
    created: blob?.created ?? tx.stamp,
    lease: afterWrite(leaseOn(target), tx.now),
  };
  tx.put(headKey(account, container, name), encodeHead(head));
}

/** What Put Blob, Put Block List and Copy Blob ask of the blob that they are about to replace. */
export async function mayPut(
  at: Judged,
  storage: Storage,
  input: BlobInput,
  leaseId: string | undefined,
): Promise<Target> {
  checkWritable(storage, input.container);
  const target = await targetAt(at, storage, input.container, input.blob);
  useLease(at, leaseOn(target), leaseId, 'write', 'blob');
  mayWrite(target.blob, input.conditions, leaseId, true);
  if (target.blob && storage.granted?.overwrite === false) throw fail('UnauthorizedBlobOverwrite');
  return target;
}
