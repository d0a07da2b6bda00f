import { formatId } from '../../content/rows.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { type StagedBytes, withStagedBytes } from '../common/staged-bytes.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { checkPutBlobInput } from './put-blob.ts';
import { type BlobInput, checkWritable, checkWriteInput, type SentMetadata } from './request-checks.ts';
import { type BlobRecord, blobTypeOf, type ContainerId, type ContentHeaders, txQueueKey } from './rows.ts';
import { checkPut, putBlobRecord, readTarget, releaseReplaced, type WriteTarget } from './write-target.ts';

export interface CreateInPlaceInput extends BlobInput {
  readonly content: ContentHeaders;
  readonly metadata: SentMetadata;
  /** The header x-ms-tags. */
  readonly tags?: string | undefined;
}

/** The blob has nothing but zeros, whatever blob it replaces. */
export async function createInPlace(
  storage: Storage,
  input: CreateInPlaceInput,
  initial: Pick<BlobRecord, 'length' | 'append' | 'page'>,
) {
  const { container, blob } = input;
  const { account, content, partition, sweeper } = storage;
  const { leaseId, metadata, tags } = checkPutBlobInput(storage, input);
  const id = content.newId();
  const queueKey = txQueueKey(account, container, blob);
  const { timestamp, value: needsSweep } = await partition.transact(queueKey, async (tx) => {
    const target = await readTarget(tx, storage, input);
    checkPut(tx, storage, target, input, leaseId, blobTypeOf(initial));
    const hasReleased = await releaseReplaced(tx, storage, target);
    content.ranges.create(tx, account, id);
    const described = { content: input.content, metadata, tags };
    await putBlobRecord(tx, storage, target, { ...initial, contentId: formatId(id), ...described });
    return hasReleased;
  });
  if (needsSweep) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp };
}

/** @returns the canonical lease id */
export function checkInPlaceInput(storage: Storage, input: BlobInput): string | undefined {
  checkWritable(storage, input.container);
  return checkWriteInput(input);
}

/**
 * Calls `use` with the verified bytes, and with the container as it was found before long ones came.
 * @param offset where they will probably be
 */
export function withBlobBytes<T>(
  storage: Storage,
  input: Pick<BlobInput, 'container' | 'blob'> & { readonly body: SentContent; readonly wantsMd5: boolean },
  offset: (target: WriteTarget) => number,
  use: (bytes: StagedBytes, containerId: ContainerId | undefined) => Promise<T>,
) {
  let target: WriteTarget | undefined;
  const look = async () => {
    target = await storage.partition.read((at) => readTarget(at, storage, input));
    return offset(target);
  };
  return withStagedBytes(storage, input, look, (bytes) => use(bytes, target?.containerId));
}
