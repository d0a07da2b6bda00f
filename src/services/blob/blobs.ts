import type { ContentRead } from '../../content/content.ts';
import { parseId } from '../../content/rows.ts';
import { createHasher } from '../../hashing/hasher.ts';
import type { Snapshot } from '../../partition/partition.ts';
import { decodeBytes } from '../../partition/values.ts';
import { parseRange, resolveRange } from '../../rules/byte-ranges.ts';
import type { Conditions } from '../../rules/conditions.ts';
import { formatEtag } from '../../rules/etag.ts';
import { leaseAfterWrite, leaseState } from '../../rules/lease.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { encodeBlobRecord, readBlob } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  checkBlobName,
  checkContainerName,
  checkLease,
  checkReadConditions,
  checkSingleCondition,
  checkWritable,
  checkWriteConditions,
  parseLeaseId,
  parseMetadata,
  type SentMetadata,
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
import { currentLease, readTarget, releaseReplaced } from './write-target.ts';

export interface BlobInput {
  readonly container: string;
  readonly blob: string;
  readonly conditions: Conditions;
  readonly leaseId: string | undefined;
}

export interface GetBlobInput extends BlobInput {
  readonly range: string | undefined;
  readonly rangeMd5: boolean | undefined;
  readonly rangeCrc64: boolean | undefined;
}

/** Ranges whose hash may be asked for. */
const HASHED_RANGE_MAX = 4 << 20;

/** A stream ends its read; what else becomes of it, the read has ended before the answer is given. */
export async function getBlob(storage: Storage, input: GetBlobInput) {
  const { range, rangeMd5, rangeCrc64 } = input;
  if ((rangeMd5 || rangeCrc64) && range === undefined) {
    throw fail('InvalidHeaderValue', {
      HeaderName: rangeMd5 ? 'x-ms-range-get-content-md5' : 'x-ms-range-get-content-crc64',
      HeaderValue: 'true',
    });
  }
  if (rangeMd5 && rangeCrc64) {
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-range-get-content-crc64', HeaderValue: 'true' });
  }
  const read = storage.content.beginRead();
  let streams = false;
  try {
    const found = await find(storage, input, (at, account, id, blob) =>
      prepareRead(at, account, id, blob, input, read),
    );
    const { inline } = found;
    const hashed =
      rangeMd5 || rangeCrc64 ? await readAndHash(inline ? [inline] : read.stream(), rangeMd5 === true) : undefined;
    streams = inline === undefined && hashed === undefined;
    return {
      blob: found.blob,
      leaseState: found.leaseState,
      range: found.range,
      length: found.length,
      bytes: inline ?? hashed?.pieces ?? read.stream(),
      rangeMd5: hashed?.md5,
      rangeCrc64: rangeCrc64 ? hashed?.crc64 : undefined,
    };
  } finally {
    if (!streams) read.end();
  }
}

/** What was asked for of this blob, with its bytes, or with the read prepared for them. */
async function prepareRead(
  at: Snapshot,
  account: AccountId,
  id: ContainerId,
  blob: Blob,
  { blob: name, range: text, rangeMd5, rangeCrc64 }: GetBlobInput,
  read: ContentRead,
) {
  const asked = text === undefined ? undefined : parseRange(text);
  const range = asked && resolveRange(asked, blob.length);
  if (range === 'InvalidRange') throw fail('InvalidRange').withHeaders({ 'Content-Range': `bytes */${blob.length}` });
  const from = range?.from ?? 0;
  const to = range ? range.to + 1 : blob.length;
  if ((rangeMd5 || rangeCrc64) && to - from > HASHED_RANGE_MAX) throw fail('OutOfRangeInput');
  let inline: Buffer | undefined;
  if (blob.contentId !== undefined) {
    await read.plan(at, account, parseId(blob.contentId), from, to);
  } else {
    const row = await at.get(inlineKey(account, id, name));
    if (!row) throw new Error('a blob without its content');
    inline = decodeBytes(row);
    if (range) inline = inline.subarray(from, to);
  }
  return { blob, leaseState: leaseState(blob.lease, at.now), range, length: to - from, inline };
}

/** The hashes go out before the bytes. They are made piece by piece, as these come: 4 MiB at once would hold the event loop. */
async function readAndHash(stream: AsyncIterable<Buffer> | Iterable<Buffer>, md5: boolean) {
  const pieces: Buffer[] = [];
  const hash = createHasher({ md5 });
  for await (const piece of stream) {
    hash.update(piece);
    // Its memory is used again.
    pieces.push(Buffer.from(piece));
  }
  return { pieces, ...hash.digest() };
}

export function getBlobProperties(storage: Storage, input: BlobInput) {
  return find(storage, input, async (at, _account, _id, found) => ({
    blob: found,
    leaseState: leaseState(found.lease, at.now),
  }));
}

export function setBlobMetadata(storage: Storage, input: BlobInput & { metadata: SentMetadata }) {
  const metadata = parseMetadata(input.metadata);
  return change(storage, input, (head) => ({ ...head, metadata }));
}

/** What is not sent is cleared, and with it what a copy has left. */
export function setBlobProperties(storage: Storage, input: BlobInput & { content: ContentHeaders }) {
  return change(storage, input, (head) => ({ ...head, content: input.content, copy: undefined }));
}

/** A blob of uncommitted blocks only can be deleted, though it cannot be read. */
export async function deleteBlob(storage: Storage, input: BlobInput): Promise<void> {
  const { container, blob, conditions } = input;
  const { account, partition, sweeper } = storage;
  const leaseId = checkWriteInput(input);
  const { value: trashed } = await partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const target = await readTarget(tx, storage, container, blob);
    if (!target.blob && !target.uncommitted) throw fail('BlobNotFound');
    checkLease(tx, currentLease(target), leaseId, 'write', 'blob');
    checkWriteConditions(target.blob, conditions, leaseId);
    tx.remove(blobKey(account, target.container, blob));
    return releaseReplaced(tx, storage, target);
  });
  if (trashed) sweeper.wake();
}

/** The lease id, in its one form. */
export function checkWriteInput(input: BlobInput): string | undefined {
  checkContainerName(input.container);
  checkBlobName(input.blob);
  checkSingleCondition(input.conditions);
  return parseLeaseId(input.leaseId);
}

async function change(storage: Storage, input: BlobInput, changed: (found: BlobRecord) => BlobRecord) {
  const { container, blob, conditions } = input;
  checkWritable(storage, container);
  const { account } = storage;
  const leaseId = checkWriteInput(input);
  const { timestamp } = await storage.partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const { id, blob: found } = await readBlob(tx, storage, container, blob);
    checkLease(tx, found.lease, leaseId, 'write', 'blob');
    checkWriteConditions(found, conditions, leaseId);
    const lease = leaseAfterWrite(found.lease, tx.now);
    tx.put(blobKey(account, id, blob), encodeBlobRecord({ ...changed(recordFrom(found)), lease }));
  });
  return { etag: formatEtag(timestamp), modified: timestamp };
}

function find<T>(
  storage: Storage,
  input: BlobInput,
  answer: (at: Snapshot, account: bigint, id: bigint, found: Blob) => Promise<T>,
): Promise<T> {
  checkContainerName(input.container);
  checkBlobName(input.blob);
  const leaseId = parseLeaseId(input.leaseId);
  const { account } = storage;
  return storage.partition.read(async (at) => {
    const { id, blob } = await readBlob(at, storage, input.container, input.blob);
    checkLease(at, blob.lease, leaseId, 'read', 'blob');
    checkReadConditions(blob, input.conditions);
    return answer(at, account, id, blob);
  });
}
