import { encodeBytes } from '../../partition/values.ts';
import { etagOf } from '../../rules/etag.ts';
import { afterWrite } from '../../rules/lease.ts';
import type { Storage } from '../storage.ts';
import { type BlobInput, checkWrite } from './blobs.ts';
import { type Judged, mayWrite, metadataOf, type SentMetadata, useLease } from './requests.ts';
import { anchorOf, type ContentHeaders, containerIdAt, encodeHead, findBlob, headKey, inlineKey } from './rows.ts';

export interface PutBlobInput extends BlobInput {
  readonly content: ContentHeaders;
  readonly metadata: SentMetadata;
  readonly body: { readonly bytes: Uint8Array; readonly md5: string; readonly crc64: string };
}

/** Refuses what would be refused anyway, before the body is sent. */
export async function lookAtPutBlob(storage: Storage, input: Omit<PutBlobInput, 'body'>): Promise<void> {
  const { account } = storage;
  const leaseId = checkWrite(input);
  metadataOf(input.metadata);
  await storage.partition.read((at) => mayPut(at, input, account, leaseId));
}

export async function putBlob(storage: Storage, input: PutBlobInput) {
  const { container, blob, body } = input;
  const { account } = storage;
  const leaseId = checkWrite(input);
  const metadata = metadataOf(input.metadata);
  const { contentType = 'application/octet-stream', contentMd5 = body.md5 } = input.content;
  const content = { ...input.content, contentType, contentMd5 };
  const { stamp } = await storage.partition.transact(anchorOf(account, container, blob), async (tx) => {
    const { id, found } = await mayPut(tx, input, account, leaseId);
    const head = {
      length: body.bytes.length,
      crc64: body.crc64,
      content,
      metadata,
      created: found?.created ?? tx.stamp,
      lease: afterWrite(found?.lease, tx.now),
    };
    tx.put(headKey(account, id, blob), encodeHead(head));
    tx.put(inlineKey(account, id, blob), encodeBytes(body.bytes));
  });
  return { etag: etagOf(stamp), modified: stamp, md5: body.md5, crc64: body.crc64 };
}

async function mayPut(
  at: Judged,
  { container, blob, conditions }: Omit<PutBlobInput, 'body'>,
  account: bigint,
  leaseId: string | undefined,
) {
  const id = await containerIdAt(at, account, container);
  const found = await findBlob(at, account, id, blob);
  useLease(at, found?.lease, leaseId, 'write', 'blob');
  mayWrite(found, conditions, leaseId, true);
  return { id, found };
}
