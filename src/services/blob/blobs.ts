import { crc64Base64, md5Base64 } from '../../base/hashes.ts';
import type { Snapshot } from '../../partition/partition.ts';
import { decodeBytes } from '../../partition/values.ts';
import { parseRange, resolveRange } from '../../rules/byte-ranges.ts';
import type { Conditions } from '../../rules/conditions.ts';
import { etagOf } from '../../rules/etag.ts';
import { afterWrite, leaseState } from '../../rules/lease.ts';
import type { Storage } from '../storage.ts';
import { fail } from './errors.ts';
import {
  checkBlobName,
  checkContainerName,
  checkWriteConditions,
  leaseIdOf,
  mayRead,
  mayWrite,
  metadataOf,
  type SentMetadata,
  useLease,
} from './requests.ts';
import {
  anchorOf,
  type Blob,
  type BlobHead,
  blobAt,
  type ContentHeaders,
  encodeHead,
  headKey,
  inlineKey,
} from './rows.ts';

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

export async function getBlob(storage: Storage, input: GetBlobInput) {
  const { range, rangeMd5, rangeCrc64 } = input;
  if ((rangeMd5 || rangeCrc64) && range === undefined) {
    throw fail('InvalidHeaderValue', {
      HeaderName: rangeMd5 ? 'x-ms-range-get-content-md5' : 'x-ms-range-get-content-crc64',
      HeaderValue: 'true',
    });
  }
  return find(storage, input, async (at, account, id, found) => {
    const asked = range === undefined ? undefined : parseRange(range);
    const part = asked && resolveRange(asked, found.length);
    if (part === 'InvalidRange') throw fail('InvalidRange').with({ 'Content-Range': `bytes */${found.length}` });
    const row = await at.get(inlineKey(account, id, input.blob));
    if (!row) throw new Error('a blob without its content');
    const whole = decodeBytes(row);
    const bytes = part ? whole.subarray(part.from, part.to + 1) : whole;
    if ((rangeMd5 || rangeCrc64) && bytes.length > HASHED_RANGE_MAX) throw fail('OutOfRangeInput');
    return {
      blob: found,
      leaseState: leaseState(found.lease, at.now),
      bytes,
      range: part,
      rangeMd5: rangeMd5 ? md5Base64(bytes) : undefined,
      rangeCrc64: rangeCrc64 ? crc64Base64(bytes) : undefined,
    };
  });
}

export function getBlobProperties(storage: Storage, input: BlobInput) {
  return find(storage, input, async (at, _account, _id, found) => ({
    blob: found,
    leaseState: leaseState(found.lease, at.now),
  }));
}

export function setBlobMetadata(storage: Storage, input: BlobInput & { metadata: SentMetadata }) {
  const metadata = metadataOf(input.metadata);
  return change(storage, input, ({ content }) => ({ content, metadata }));
}

/** What is not sent is cleared. */
export function setBlobProperties(storage: Storage, input: BlobInput & { content: ContentHeaders }) {
  return change(storage, input, ({ metadata }) => ({ content: input.content, metadata }));
}

export async function deleteBlob(storage: Storage, input: BlobInput): Promise<void> {
  const { container, blob, conditions } = input;
  const { account } = storage;
  const leaseId = checkWrite(input);
  await storage.partition.transact(anchorOf(account, container, blob), async (tx) => {
    const { id, blob: found } = await blobAt(tx, account, container, blob);
    useLease(tx, found.lease, leaseId, 'write', 'blob');
    mayWrite(found, conditions, leaseId);
    tx.remove(headKey(account, id, blob));
    tx.remove(inlineKey(account, id, blob));
  });
}

/** The lease id, in its one form. */
export function checkWrite(input: BlobInput): string | undefined {
  checkContainerName(input.container);
  checkBlobName(input.blob);
  checkWriteConditions(input.conditions);
  return leaseIdOf(input.leaseId);
}

async function change(
  storage: Storage,
  input: BlobInput,
  changed: (found: Blob) => Pick<BlobHead, 'content' | 'metadata'>,
) {
  const { container, blob, conditions } = input;
  const { account } = storage;
  const leaseId = checkWrite(input);
  const { stamp } = await storage.partition.transact(anchorOf(account, container, blob), async (tx) => {
    const { id, blob: found } = await blobAt(tx, account, container, blob);
    useLease(tx, found.lease, leaseId, 'write', 'blob');
    mayWrite(found, conditions, leaseId);
    const { length, crc64, created } = found;
    const lease = afterWrite(found.lease, tx.now);
    tx.put(headKey(account, id, blob), encodeHead({ length, crc64, created, lease, ...changed(found) }));
  });
  return { etag: etagOf(stamp), modified: stamp };
}

function find<T>(
  storage: Storage,
  input: BlobInput,
  answer: (at: Snapshot, account: bigint, id: bigint, found: Blob) => Promise<T>,
): Promise<T> {
  checkContainerName(input.container);
  checkBlobName(input.blob);
  const leaseId = leaseIdOf(input.leaseId);
  const { account } = storage;
  return storage.partition.read(async (at) => {
    const { id, blob } = await blobAt(at, account, input.container, input.blob);
    useLease(at, blob.lease, leaseId, 'read', 'blob');
    mayRead(blob, input.conditions);
    return answer(at, account, id, blob);
  });
}
