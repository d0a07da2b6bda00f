/** Get and set the tags of a blob: neither changes its ETag or its last modification. */
import { parseTagCondition, type TagCondition, TagFilterError } from '../../rules/tag-filter.ts';
import { parseTagsHeader, sortTags, type Tags, tagsFault } from '../../rules/tags.ts';
import type { Storage } from '../common/storage.ts';
import { encodeBlobRecord, readBlob } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  type BlobInput,
  checkChangeable,
  checkLease,
  checkReadConditions,
  checkReadInput,
  checkWritable,
  checkWriteConditions,
  type SnapshotInput,
} from './request-checks.ts';
import { blobKey, recordFrom, txQueueKey } from './rows.ts';
import { updateTagIndex } from './tag-index.ts';

/** The tags of a write: the header x-ms-tags as it was sent. */
export function parseTags(text: string | undefined): Tags | undefined {
  if (text === undefined) return undefined;
  const sent = parseTagsHeader(text);
  if (!sent) throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-tags', HeaderValue: text });
  return checkTags(sent);
}

/** x-ms-if-tags as it was sent. */
export function parseIfTags(text: string, header = 'x-ms-if-tags'): TagCondition {
  try {
    return parseTagCondition(text);
  } catch (error) {
    if (!(error instanceof TagFilterError)) throw error;
    throw fail('InvalidHeaderValue', { HeaderName: header, HeaderValue: text, Reason: error.message });
  }
}

/** Returns the tags in the order in which they are stored. */
function checkTags(sent: Tags): Tags {
  const fault = tagsFault(sent);
  if (fault) throw fail(fault);
  return sortTags(sent);
}

export async function getBlobTags(storage: Storage, input: SnapshotInput): Promise<Tags> {
  const leaseId = checkReadInput(input);
  return storage.partition.read(async (at) => {
    const { blob } = await readBlob(at, storage, input.container, input.blob, input.snapshot);
    checkLease(at, blob.lease, leaseId, 'read', 'blob');
    checkReadConditions(blob, input.conditions);
    return blob.tags;
  });
}

export async function setBlobTags(storage: Storage, input: BlobInput & { readonly tags: Tags }): Promise<void> {
  const { container, blob } = input;
  const { account } = storage;
  const leaseId = checkReadInput(input);
  const tags = checkTags(input.tags);
  checkWritable(storage, container);
  await storage.partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const { id, blob: found } = await readBlob(tx, storage, container, blob);
    checkLease(tx, found.lease, leaseId, 'write', 'blob');
    checkWriteConditions(found, input.conditions);
    checkChangeable(found);
    tx.put(blobKey(account, id, blob), encodeBlobRecord({ ...recordFrom(found), tags, etag: found.version }));
    await updateTagIndex(tx, account, { containerId: id, container, name: blob }, found.tags, tags);
  });
}
