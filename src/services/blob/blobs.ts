/** Get, change and delete a blob. */
import type { ContentRead } from '../../content/content.ts';
import type { Snapshot } from '../../partition/partition.ts';
import { decodeBytes } from '../../partition/values.ts';
import { parseRange, resolveRange } from '../../rules/byte-ranges.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { leaseAfterWrite, leaseState } from '../../rules/lease.ts';
import { tierState } from '../../rules/tiers.ts';
import { HASHED_RANGE_MAX, openBytes, type PlanRanges } from '../common/content-reads.ts';
import type { Storage } from '../common/storage.ts';
import { planBlobRead } from './blob-reads.ts';
import { encodeBlobRecord, readBlob } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  type BlobInput,
  checkChangeable,
  checkLease,
  checkOnline,
  checkReadable,
  checkReadConditions,
  checkReadInput,
  checkWritable,
  checkWriteConditions,
  checkWriteInput,
  parseMetadata,
  type SentMetadata,
  type SnapshotInput,
} from './request-checks.ts';
import {
  type Blob,
  type BlobRecord,
  blobKey,
  type ContainerId,
  type ContentHeaders,
  inlineKey,
  recordFrom,
  txQueueKey,
} from './rows.ts';

export { deleteBlob } from './delete-blob.ts';

export interface GetBlobInput extends SnapshotInput {
  readonly range: string | undefined;
  readonly rangeMd5: boolean | undefined;
  readonly rangeCrc64: boolean | undefined;
}

export async function getBlob(storage: Storage, input: GetBlobInput) {
  const { rangeMd5, rangeCrc64 } = input;
  checkRangeHashes(input);
  const leaseId = checkReadInput(input);
  const queueKey = () => txQueueKey(storage.account, input.container, input.blob);
  const hash = rangeMd5 || rangeCrc64 ? { md5: rangeMd5 === true } : undefined;
  const { found, bytes, hashed } = await openBytes(storage, queueKey, hash, async (at, plan, read) => {
    const { id, blob } = await readBlob(at, storage, input.container, input.blob, input.snapshot);
    checkGet(at, blob, input, leaseId);
    checkOnline(at, blob);
    checkReadable(blob);
    const { range, from, to, inline, isPlanned } = await prepareRead(at, storage, id, blob, input, read, plan);
    const tier = tierState(blob.tier, at.now);
    return { blob, leaseState: leaseState(blob.lease, at.now), tier, range, from, to, inline, isPlanned };
  });
  return {
    blob: found.blob,
    leaseState: found.leaseState,
    tier: found.tier,
    range: found.range,
    length: found.to - found.from,
    bytes,
    rangeMd5: hashed?.md5,
    rangeCrc64: rangeCrc64 ? hashed?.crc64 : undefined,
  };
}

/** At most one hash, and only of a range. */
function checkRangeHashes({ range, rangeMd5, rangeCrc64 }: GetBlobInput): void {
  if ((rangeMd5 || rangeCrc64) && range === undefined) {
    throw fail('InvalidHeaderValue', {
      HeaderName: rangeMd5 ? 'x-ms-range-get-content-md5' : 'x-ms-range-get-content-crc64',
      HeaderValue: 'true',
    });
  }
  if (rangeMd5 && rangeCrc64) {
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-range-get-content-crc64', HeaderValue: 'true' });
  }
}

function checkGet(at: Snapshot, blob: Blob, { conditions }: BlobInput, leaseId: string | undefined): void {
  checkLease(at, blob.lease, leaseId, 'read', 'blob');
  checkReadConditions(blob, conditions);
}

/** Resolves the requested range, and reads its bytes from the inline row or plans the content read. */
async function prepareRead(
  at: Snapshot,
  storage: Storage,
  id: ContainerId,
  blob: Blob,
  { blob: name, range: text, rangeMd5, rangeCrc64 }: GetBlobInput,
  read: ContentRead,
  plan: PlanRanges,
) {
  const requested = text === undefined ? undefined : parseRange(text);
  const range = requested && resolveRange(requested, blob.length);
  if (range === 'InvalidRange') throw fail('InvalidRange').withHeaders({ 'Content-Range': `bytes */${blob.length}` });
  const from = range?.from ?? 0;
  const to = range ? range.to + 1 : blob.length;
  if ((rangeMd5 || rangeCrc64) && to - from > HASHED_RANGE_MAX) throw fail('OutOfRangeInput');
  let inline: Buffer | undefined;
  let isPlanned = true;
  if (blob.contentId !== undefined) {
    isPlanned = await planBlobRead(at, storage, blob, read, { from, to }, plan);
  } else {
    const row = await at.get(inlineKey(storage.account, id, name, blob.snapshot));
    if (!row) throw new Error('a blob without its content');
    inline = decodeBytes(row);
    if (range) inline = inline.subarray(from, to);
  }
  return { range, from, to, inline, isPlanned };
}

export async function getBlobProperties(storage: Storage, input: SnapshotInput) {
  const leaseId = checkReadInput(input);
  return await storage.partition.read(async (at) => {
    const { blob } = await readBlob(at, storage, input.container, input.blob, input.snapshot);
    checkGet(at, blob, input, leaseId);
    return { blob, leaseState: leaseState(blob.lease, at.now), tier: tierState(blob.tier, at.now) };
  });
}

export function setBlobMetadata(storage: Storage, input: BlobInput & { metadata: SentMetadata }) {
  return changeRecord(storage, input, { metadata: parseMetadata(input.metadata) });
}

/** Headers that are not sent are cleared, and so is the state of a copy. */
export function setBlobProperties(storage: Storage, input: BlobInput & { content: ContentHeaders }) {
  return changeRecord(storage, input, { content: input.content, copy: undefined });
}

async function changeRecord(storage: Storage, input: BlobInput, changes: Partial<BlobRecord>) {
  const { container, blob, conditions } = input;
  const { account } = storage;
  checkWritable(storage, container);
  const leaseId = checkWriteInput(input);
  const { timestamp } = await storage.partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const { id, blob: found } = await readBlob(tx, storage, container, blob);
    checkLease(tx, found.lease, leaseId, 'write', 'blob');
    checkWriteConditions(found, conditions, leaseId);
    checkChangeable(found);
    checkOnline(tx, found);
    const lease = leaseAfterWrite(found.lease, tx.now);
    tx.put(blobKey(account, id, blob), encodeBlobRecord({ ...recordFrom(found), ...changes, lease }));
  });
  return { etag: formatEtag(timestamp), modified: timestamp };
}
