/** Older states of a blob as rows: its snapshots, the mark of those that are deleted, and what is kept until its retention ends. */
import { encodeKey, type Key, keyAfter, keyPrefix, keysUnder, prefixEnd, type Range } from '../../partition/keys.ts';
import type { Instant, Row, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { decodeText, decodeValue, encodeText, encodeValue } from '../../partition/values.ts';
import type { Deletion } from '../../rules/soft-delete.ts';
import type { AccountId } from '../common/storage.ts';
import { blobKey, type ContainerId, ROOT } from './rows.ts';

const STAMP_BYTES = 11;
const STAMP_BITS = 6;
/** The bytes of a stamp are 0x80 to 0xBF, with which no character begins: a delimiter of List Blobs is never found in one. */
const STAMP_BASE = 0x80;
const STAMP_MASK = (1 << STAMP_BITS) - 1;
/** Several bytes at once, as arithmetic on a bigint takes ten times as long as on a number. */
const PIECE_BITS = 5 * STAMP_BITS;

export function encodeStamp(stamp: Timestamp): Uint8Array {
  const bytes = new Uint8Array(STAMP_BYTES);
  for (let at = STAMP_BYTES, left = stamp; at > 0; left >>= BigInt(PIECE_BITS)) {
    let piece = Number(BigInt.asUintN(PIECE_BITS, left));
    for (let bits = 0; bits < PIECE_BITS && at > 0; bits += STAMP_BITS, piece >>= STAMP_BITS) {
      bytes[--at] = STAMP_BASE | (piece & STAMP_MASK);
    }
  }
  return bytes;
}

export function decodeStamp(bytes: Uint8Array): Timestamp {
  let stamp = 0n;
  for (const byte of bytes) stamp = (stamp << BigInt(STAMP_BITS)) | BigInt(byte & STAMP_MASK);
  return stamp;
}

/** The snapshot that was taken at this timestamp. */
export const snapshotKey = (account: AccountId, id: ContainerId, blob: string, stamp: Timestamp): Key =>
  encodeKey([account, 'v', id, ROOT, blob, encodeStamp(stamp)]);
/** Stands before the snapshots of the blob. */
export const markKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'v', id, ROOT, blob]);
export const snapshotKeyPrefix = (account: AccountId, id: ContainerId, prefix: string): Key =>
  keyPrefix([account, 'v', id, ROOT], prefix);
export const recordKey = (account: AccountId, id: ContainerId, blob: string, snapshot: Timestamp | undefined): Key =>
  snapshot === undefined ? blobKey(account, id, blob) : snapshotKey(account, id, blob, snapshot);

/** A soft-deleted blob. */
export const deletedBlobKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'D', id, ROOT, blob]);
export const deletedBlobKeyPrefix = (account: AccountId, id: ContainerId, prefix: string): Key =>
  keyPrefix([account, 'D', id, ROOT], prefix);
/** A soft-deleted snapshot, or the state that a write has replaced. */
export const deletedStateKey = (account: AccountId, id: ContainerId, blob: string, stamp: Timestamp): Key =>
  encodeKey([account, 'V', id, ROOT, blob, encodeStamp(stamp)]);
export const deletedStateKeyPrefix = (account: AccountId, id: ContainerId, prefix: string): Key =>
  keyPrefix([account, 'V', id, ROOT], prefix);
/** The soft-deleted snapshots and replaced states of a blob, from the oldest to the newest. */
export const deletedStatesIn = (account: AccountId, id: ContainerId, blob: string): Range =>
  keysUnder([account, 'V', id, ROOT, blob]);
/** Entry of the expiry index: the retention of the state with this stamp ends. */
export const retentionKey = (
  account: AccountId,
  until: Instant,
  id: ContainerId,
  blob: string,
  stamp: Timestamp,
): Key => encodeKey([account, 'w', until, 'retention', id, blob, stamp]);

/** A part of a key that is the stamp: type, bytes, end. */
const STAMP_KEY_LENGTH = STAMP_BYTES + 2;

/** From the key of a blob's row without a stamp to that of one with a stamp, and back. */
export const withStamp = (key: Key, stamp: Timestamp): Key => (key + encodeKey([encodeStamp(stamp)])) as Key;
export const withoutStamp = (key: Key): Key => key.slice(0, -STAMP_KEY_LENGTH) as Key;
/** Undefined: the key has no stamp. */
export function stampInKey(key: Key): Timestamp | undefined {
  // The end of a name is followed by nothing: in it a zero byte is followed by 0xFF.
  if (key.at(-STAMP_KEY_LENGTH) !== '\x01' || key.at(-STAMP_KEY_LENGTH - 1) !== '\x00') return undefined;
  return decodeStamp(Buffer.from(key.slice(1 - STAMP_KEY_LENGTH, -1), 'latin1'));
}

/** What one commit says about any number of snapshots, until the sweeper has done it to each. */
export interface SnapshotMark {
  /** Those up to this stamp do not exist any more. */
  readonly upTo: Timestamp;
  /** Those after it, up to this stamp, are soft-deleted. */
  readonly kept?: (Deletion & { readonly upTo: Timestamp }) | undefined;
}

export const NO_MARK: SnapshotMark = { upTo: 0n };

export function encodeMark({ upTo, kept }: SnapshotMark): Buffer {
  const stored = kept && [kept.upTo, kept.deleted, kept.until].map(String);
  return encodeValue({ upTo: upTo.toString(), kept: stored });
}

export function decodeMark(row: Row): SnapshotMark {
  const { upTo, kept } = decodeValue<{ upTo: string; kept?: [string, string, string] }>(row);
  if (!kept) return { upTo: BigInt(upTo) };
  const [keptUpTo, deleted, until] = kept.map(BigInt) as [bigint, bigint, bigint];
  return { upTo: BigInt(upTo), kept: { upTo: keptUpTo, deleted, until } };
}

export async function readMark(at: Snapshot, account: AccountId, id: ContainerId, blob: string): Promise<SnapshotMark> {
  const row = await at.get(markKey(account, id, blob));
  return row ? decodeMark(row) : NO_MARK;
}

/** Only later snapshots can be read. */
export function hiddenUpTo({ upTo, kept }: SnapshotMark): Timestamp {
  return kept && kept.upTo > upTo ? kept.upTo : upTo;
}

/** All snapshots of the blob, and before them the mark. */
export const markAndSnapshots = (account: AccountId, id: ContainerId, blob: string): Range =>
  keysUnder([account, 'v', id, ROOT, blob]);

/** The snapshots of the blob with later stamps than the first, up to the last. */
export function snapshotsBetween(
  account: AccountId,
  id: ContainerId,
  blob: string,
  first: Timestamp,
  last?: Timestamp,
): Range {
  const mark = markKey(account, id, blob);
  const to = last === undefined ? prefixEnd(mark) : keyAfter(withStamp(mark, last));
  return { from: keyAfter(withStamp(mark, first)), to };
}

/** A soft-deleted state: the blob record as it was, after a line with the times of the deletion and the stamp. */
export interface DeletedHeader extends Deletion {
  readonly stamp: Timestamp;
}

export function encodeDeletedBlob({ deleted, until, stamp }: DeletedHeader, record: string): Buffer {
  return encodeText(`${deleted} ${until} ${stamp}\n${record}`);
}

export function decodeDeletedBlob(row: Row): DeletedHeader & { readonly record: string } {
  const text = decodeText(row);
  const end = text.indexOf('\n');
  const [deleted, until, stamp] = text.slice(0, end).split(' ').map(BigInt) as [bigint, bigint, bigint];
  return { deleted, until, stamp, record: text.slice(end + 1) };
}

/**
 * The stamp of another older state: later than every snapshot that a mark hides, and not that of another state. Processes may draw one
 * timestamp twice.
 * @param wanted the earliest that it may be
 */
export async function nextStamp(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  wanted = tx.timestamp,
): Promise<Timestamp> {
  for (let stamp = wanted; ; ) {
    const keys = [markKey, snapshotKey, deletedStateKey].map((key) => key(account, id, blob, stamp));
    const [mark, ...others] = await tx.getMany(keys);
    const hidden = mark ? hiddenUpTo(decodeMark(mark)) : 0n;
    if (stamp <= hidden) stamp = hidden + 1n;
    else if (others.some((row) => row !== undefined)) stamp++;
    else return stamp;
  }
}
