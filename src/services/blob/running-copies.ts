/** Copies onto blobs. The blob is empty until its copy is complete; its record has the state of the copy. */

import type { ContentStore } from '../../content/content.ts';
import { NO_END } from '../../content/ranges/range-maps.ts';
import { crc64Base64 } from '../../hashing/hasher.ts';
import { decodeKey, type Key } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { encodeBytes } from '../../partition/values.ts';
import { type CopyState, completeCopy } from '../../rules/copy-state.ts';
import type { CopyRun } from '../common/copy-target.ts';
import type { RunningCopy } from '../common/running-copies.ts';
import type { AccountId } from '../common/storage.ts';
import { decodeBlobRecord, encodeBlobRecord } from './blob-record.ts';
import {
  type Blob,
  type BlobRecord,
  blobKey,
  type ContainerId,
  inlineKey,
  recordFrom,
  runningCopyKey,
} from './rows.ts';

/** Where a running copy is. */
export interface CopyPlace {
  readonly account: AccountId;
  readonly container: ContainerId;
  readonly blob: string;
}

export const keyOfCopy = ({ account, container, blob }: CopyPlace): Key => runningCopyKey(account, container, blob);

export function placeOfCopy(key: Key): CopyPlace {
  const [account, , container, , blob] = decodeKey(key) as [AccountId, string, ContainerId, bigint, string];
  return { account, container, blob };
}

export type BlobRun = CopyRun<Blob>;
export type CopiedBlob = Blob & { readonly copy: CopyState };

/** The blob onto which a copy runs, as its record has it. */
export async function readCopied(at: Snapshot, { account, container, blob }: CopyPlace): Promise<Blob | undefined> {
  const row = await at.get(blobKey(account, container, blob));
  return row && decodeBlobRecord(row);
}

/** A change that is no write of the blob, and leaves its ETag alone. */
export function putProgress(tx: Transaction, { account, container, blob }: CopyPlace, found: Blob, copy: CopyState) {
  tx.put(blobKey(account, container, blob), encodeBlobRecord({ ...recordFrom(found), copy, etag: found.version }));
}

/** The copy ends without its bytes: the blob stays empty. True: the sweeper has work to do. */
export async function endWithoutBytes(
  tx: Transaction,
  content: Pick<ContentStore, 'discardContent' | 'ranges'>,
  place: CopyPlace,
  { content: contentId, inPlace }: RunningCopy,
  found: Blob,
  copy: CopyState,
): Promise<boolean> {
  const { account, container, blob } = place;
  tx.remove(keyOfCopy(place));
  tx.put(blobKey(account, container, blob), encodeBlobRecord({ ...recordFrom(found), copy }));
  const hasPages = (found.copy?.copied ?? 0) > 0;
  // The next incremental copy begins anew: nobody can read what this one has written.
  if (!hasPages || inPlace?.incremental) return false;
  if (!inPlace) {
    content.discardContent(tx, account, contentId);
    return true;
  }
  const map = await content.ranges.read(tx, account, contentId);
  return (await content.ranges.clear(tx, account, map, 0, NO_END)).needsSweep;
}

/** The copy is complete: its blob has all bytes. */
export function putCompleted(
  tx: Transaction,
  place: CopyPlace,
  { md5 }: RunningCopy,
  found: CopiedBlob,
  stored: Partial<BlobRecord>,
): BlobRecord {
  const { account, container, blob } = place;
  tx.remove(keyOfCopy(place));
  const record = {
    ...recordFrom(found),
    ...stored,
    length: found.copy.bytes,
    content: { ...found.content, contentMd5: md5 },
    copy: completeCopy(found.copy, tx.timestamp),
  };
  tx.put(blobKey(account, container, blob), encodeBlobRecord(record));
  return record;
}

const EMPTY = Buffer.alloc(0);

/** The content of a blob before its copy is complete. */
export function putEmptyContent(
  tx: Transaction,
  { account, container, blob }: CopyPlace,
): { length: 0; crc64: string } {
  tx.put(inlineKey(account, container, blob), encodeBytes(EMPTY));
  return { length: 0, crc64: crc64Base64(EMPTY) };
}
