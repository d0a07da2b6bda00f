/** Put Blob. */
import { formatId } from '../../content/rows.ts';
import { encodeBytes } from '../../partition/values.ts';
import { formatEtag } from '../../rules/conditions.ts';
import type { Storage } from '../common/storage.ts';
import { type SentContent, withInlineOrUpload } from '../common/upload.ts';
import { type BlobInput, checkWritable, checkWriteInput, parseMetadata, type SentMetadata } from './request-checks.ts';
import { type ContentHeaders, inlineKey, txQueueKey } from './rows.ts';
import { parseTags } from './tags.ts';
import {
  checkPut,
  checkSameContainer,
  findContainerId,
  putBlobRecord,
  readTarget,
  releaseReplaced,
} from './write-target.ts';

export interface PutBlobInput extends BlobInput {
  readonly content: ContentHeaders;
  readonly metadata: SentMetadata;
  /** The header x-ms-tags. */
  readonly tags?: string | undefined;
  readonly body: SentContent;
}

/** For Expect: 100-continue: fails as Put Blob would, before the body is sent. */
export async function precheckPutBlob(storage: Storage, input: Omit<PutBlobInput, 'body'>): Promise<void> {
  const { leaseId } = checkPutBlobInput(storage, input);
  await storage.partition.read(async (at) => {
    checkPut(at, storage, await readTarget(at, storage, input), input, leaseId);
  });
}

export async function putBlob(storage: Storage, input: PutBlobInput) {
  const { container, blob, body } = input;
  const { account, content, partition, sweeper } = storage;
  const { leaseId, metadata, tags } = checkPutBlobInput(storage, input);
  const containerId = body.whole ? undefined : await findContainerId(storage, container);
  return withInlineOrUpload(storage, body, async (uploaded) => {
    const { md5, crc64 } = uploaded;
    const id = uploaded.inline ? undefined : content.newId();
    const { timestamp, value: needsSweep } = await partition.transact(
      txQueueKey(account, container, blob),
      async (tx) => {
        const target = await readTarget(tx, storage, input);
        checkPut(tx, storage, target, input, leaseId);
        checkSameContainer(target, containerId);
        const hasReleased = await releaseReplaced(tx, storage, target, {
          keepsInlineRow: uploaded.inline !== undefined,
        });
        if (uploaded.inline) {
          tx.put(inlineKey(account, target.containerId, blob), encodeBytes(uploaded.inline));
        } else {
          await content.commitUpload(tx, account, uploaded);
          content.addContent(tx, account, id!, [{ length: uploaded.length, chunkRefs: uploaded.chunkRefs }]);
        }
        const contentId = id && formatId(id);
        const record = { length: body.length, crc64, contentId, content: input.content, metadata, tags };
        putBlobRecord(tx, storage, target, record, md5);
        return hasReleased;
      },
    );
    if (needsSweep) sweeper.wake();
    return { etag: formatEtag(timestamp), modified: timestamp, md5: md5!, crc64 };
  });
}

function checkPutBlobInput(storage: Storage, input: Omit<PutBlobInput, 'body'>) {
  const leaseId = checkWriteInput(input);
  const metadata = parseMetadata(input.metadata);
  const tags = parseTags(input.tags);
  checkWritable(storage, input.container);
  return { leaseId, metadata, tags };
}
