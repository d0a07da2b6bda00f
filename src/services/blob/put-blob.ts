/**
 * Put Blob: the body is uploaded and its extents are synced (a short body becomes a row instead); then one transaction checks the request
 * again and writes the blob record, and its write-ahead-log record is synced; then the answer is sent. So an acknowledged blob never refers
 * to bytes that a crash can lose.
 */
import { formatId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { encodeBytes } from '../../partition/values.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { type Tier, tierAfterWrite } from '../../rules/tiers.ts';
import type { Storage } from '../common/storage.ts';
import { type SentContent, type StagedContent, withInlineOrUpload } from '../common/upload.ts';
import {
  type BlobInput,
  checkWritable,
  checkWriteInput,
  parseMetadata,
  parseOptionalTier,
  type SentMetadata,
} from './request-checks.ts';
import { type BlobRecord, type ContainerId, type ContentHeaders, inlineKey, txQueueKey } from './rows.ts';
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
  readonly tier?: string | undefined;
  /** The header x-ms-tags. */
  readonly tags?: string | undefined;
  readonly body: SentContent;
}

/** For Expect: 100-continue: fails as Put Blob would, before the body is sent. */
export async function precheckPutBlob(
  storage: Storage,
  input: BlobInput & { readonly metadata: SentMetadata },
): Promise<void> {
  const { leaseId } = checkPutBlobInput(storage, input);
  await storage.partition.read(async (at) => {
    checkPut(at, storage, await readTarget(at, storage, input), input, leaseId);
  });
}

export async function putBlob(storage: Storage, input: PutBlobInput) {
  const { container, body } = input;
  const { leaseId, metadata, tier, tags } = checkPutBlobInput(storage, input);
  const containerId = body.whole ? undefined : await findContainerId(storage, container);
  return await withInlineOrUpload(storage, body, async (staged) => {
    const described = { content: input.content, metadata, tags };
    const { etag, modified } = await commitBlob(
      storage,
      input,
      { leaseId, tier, containerId },
      staged,
      () => described,
    );
    return { etag, modified, md5: staged.md5!, crc64: staged.crc64 };
  });
}

interface CheckedPut {
  /** In its canonical form. */
  readonly leaseId: string | undefined;
  /** Undefined: the blob keeps the one that it had. */
  readonly tier: Tier | undefined;
  /** The container as it was found before the bytes came; undefined: they came with the request. */
  readonly containerId: ContainerId | undefined;
}

/** One commit: the blob has these bytes, and whatever it had before is released. */
export async function commitBlob(
  storage: Storage,
  input: Pick<BlobInput, 'container' | 'blob' | 'conditions'>,
  checked: CheckedPut,
  staged: StagedContent,
  describe: (tx: Transaction) => Pick<BlobRecord, 'content' | 'metadata' | 'tags' | 'copy'>,
) {
  const { container, blob } = input;
  const { account, content, partition, sweeper } = storage;
  const { length, md5, crc64 } = staged;
  const id = staged.inline ? undefined : content.newId();
  const { timestamp, value: needsSweep } = await partition.transact(
    txQueueKey(account, container, blob),
    async (tx) => {
      const target = await readTarget(tx, storage, input);
      checkPut(tx, storage, target, input, checked.leaseId);
      checkSameContainer(target.containerId, checked.containerId);
      // Before the old content is released: source and target of a copy may be the same blob.
      await staged.reference?.(tx);
      const hasReleased = await releaseReplaced(tx, storage, target, { keepsInlineRow: staged.inline !== undefined });
      if (staged.inline) tx.put(inlineKey(account, target.containerId, blob), encodeBytes(staged.inline));
      else content.addContent(tx, account, id!, [{ length, chunkRefs: staged.chunkRefs }]);
      const replacedTier = target.blob?.tier;
      const tier = (replacedTier ?? checked.tier) && tierAfterWrite(replacedTier, checked.tier, tx.now);
      const { content: headers, metadata, tags, copy } = describe(tx);
      const record = { length, crc64, contentId: id && formatId(id), tier, content: headers, metadata, tags, copy };
      await putBlobRecord(tx, storage, target, record, md5);
      return hasReleased;
    },
  );
  if (needsSweep) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp };
}

export function checkPutBlobInput(
  storage: Storage,
  input: BlobInput & {
    readonly metadata: SentMetadata;
    readonly tier?: string | undefined;
    readonly tags?: string | undefined;
  },
) {
  const leaseId = checkWriteInput(input);
  const metadata = parseMetadata(input.metadata);
  const tags = parseTags(input.tags);
  checkWritable(storage, input.container);
  const tier = parseOptionalTier(input.tier);
  return { leaseId, metadata, tier, tags };
}
