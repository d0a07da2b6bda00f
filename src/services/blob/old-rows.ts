/** Older states of a blob as rows: its snapshots, and the mark below which all of them are deleted. */
import { encodeKey, type Key, keyAfter, keyPrefix, prefixEnd, type Range } from '../../partition/keys.ts';
import type { Row, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { AccountId } from '../common/storage.ts';
import { blobKey, type ContainerId, inlineKey, ROOT } from './rows.ts';

const STAMP_BYTES = 11;
const STAMP_BITS = 6n;
/** The bytes of a stamp are 0x80 to 0xBF, with which no character begins: a delimiter of List Blobs is never found in one. */
const STAMP_BASE = 0x80n;
const STAMP_MASK = (1n << STAMP_BITS) - 1n;

export function encodeStamp(stamp: Timestamp): Uint8Array {
  const bytes = new Uint8Array(STAMP_BYTES);
  for (let at = STAMP_BYTES - 1, left = stamp; at >= 0; at--, left >>= STAMP_BITS) {
    bytes[at] = Number(STAMP_BASE | (left & STAMP_MASK));
  }
  return bytes;
}

export function decodeStamp(bytes: Uint8Array): Timestamp {
  let stamp = 0n;
  for (const byte of bytes) stamp = (stamp << STAMP_BITS) | (BigInt(byte) & STAMP_MASK);
  return stamp;
}

/** The snapshot that was taken at this timestamp. */
export const snapshotKey = (account: AccountId, id: ContainerId, blob: string, stamp: Timestamp): Key =>
  encodeKey([account, 'v', id, ROOT, blob, encodeStamp(stamp)]);
/** Stands before the snapshots of the blob: those up to the stamp in it are deleted, and the sweeper follows. */
export const deletedUpToKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'v', id, ROOT, blob]);
export const snapshotKeyPrefix = (account: AccountId, id: ContainerId, prefix: string): Key =>
  keyPrefix([account, 'v', id, ROOT], prefix);
export const recordKey = (account: AccountId, id: ContainerId, blob: string, snapshot: Timestamp | undefined): Key =>
  snapshot === undefined ? blobKey(account, id, blob) : snapshotKey(account, id, blob, snapshot);

/** A part of a key that is the stamp: type, bytes, end. */
const STAMP_KEY_LENGTH = STAMP_BYTES + 2;

/** From the key of the mark to that of a snapshot of the same blob, and back. */
export const withStamp = (key: Key, stamp: Timestamp): Key => (key + encodeKey([encodeStamp(stamp)])) as Key;
export const withoutStamp = (key: Key): Key => key.slice(0, -STAMP_KEY_LENGTH) as Key;
/** Undefined: the key has no stamp. */
export function stampInKey(key: Key): Timestamp | undefined {
  // The end of a name is followed by nothing: in it a zero byte is followed by 0xFF.
  if (key.at(-STAMP_KEY_LENGTH) !== '\x01' || key.at(-STAMP_KEY_LENGTH - 1) !== '\x00') return undefined;
  return decodeStamp(Buffer.from(key.slice(1 - STAMP_KEY_LENGTH, -1), 'latin1'));
}

export const encodeDeletedUpTo = (upTo: Timestamp): Buffer => encodeValue({ upTo: upTo.toString() });
export const decodeDeletedUpTo = (row: Row): Timestamp => BigInt(decodeValue<{ upTo: string }>(row).upTo);

/** 0: none are deleted. */
export async function readDeletedUpTo(
  at: Snapshot,
  account: AccountId,
  id: ContainerId,
  blob: string,
): Promise<Timestamp> {
  const row = await at.get(deletedUpToKey(account, id, blob));
  return row ? decodeDeletedUpTo(row) : 0n;
}

/** The snapshots of the blob with later stamps than this one. */
export function snapshotsAfter(account: AccountId, id: ContainerId, blob: string, stamp: Timestamp): Range {
  const to = prefixEnd(deletedUpToKey(account, id, blob));
  return { from: keyAfter(snapshotKey(account, id, blob, stamp)), to };
}

/** The snapshots of the blob up to this stamp. */
export function snapshotsUpTo(account: AccountId, id: ContainerId, blob: string, stamp: Timestamp): Range {
  const from = keyAfter(deletedUpToKey(account, id, blob));
  return { from, to: keyAfter(snapshotKey(account, id, blob, stamp)) };
}

/** The caller has released the content, unless it is in a row. */
export function removeSnapshotRows(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  stamp: Timestamp,
): void {
  tx.remove(snapshotKey(account, id, blob, stamp));
  tx.remove(inlineKey(account, id, blob, stamp));
}
