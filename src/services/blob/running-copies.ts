/**
 * Running copies as rows: each names its source, the content that it builds, and the process that runs it. The blob itself is empty
 * until the copy is complete; its record has the state of the copy.
 */

import type { ContentStore } from '../../content/content.ts';
import { NO_END } from '../../content/ranges/range-maps.ts';
import { type ContentId, formatId, parseId } from '../../content/rows.ts';
import { crc64Base64 } from '../../hashing/hasher.ts';
import { decodeKey, type Key } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeBytes, encodeValue } from '../../partition/values.ts';
import { type CopyState, completeCopy } from '../../rules/copy-state.ts';
import type { AccountId } from '../common/storage.ts';
import { decodeBlobRecord, encodeBlobRecord } from './blob-record.ts';
import {
  type AppendState,
  type Blob,
  type BlobRecord,
  blobKey,
  type ContainerId,
  inlineKey,
  recordFrom,
  runningCopyKey,
} from './rows.ts';

/** A blob of another account of this server. */
export interface LocalCopySource {
  readonly account: AccountId;
  readonly container: string;
  /** The container whose access settings authorized the read: another one of the same name does not. */
  readonly grantedContainer: ContainerId | undefined;
  readonly blob: string;
  /** Undefined: the base blob. */
  readonly snapshot?: bigint | undefined;
  readonly etag: string;
}

export interface RemoteCopySource {
  /** With its signature, which the blob record does not show. */
  readonly url: string;
  readonly etag: string | undefined;
  readonly modified: bigint | undefined;
}

export interface RunningCopy {
  readonly id: string;
  readonly source: LocalCopySource | RemoteCopySource;
  /**
   * Its manifest grows with the copy. No content row exists before the end, so this row is what names the pages. With `inPlace` it is the
   * content of the blob.
   */
  readonly content: ContentId;
  /** The copy is an append or page blob. */
  readonly inPlace?: InPlaceCopy | undefined;
  /** The epoch of the process that runs it. Once the epoch is gone, another process takes the copy over. */
  readonly owner: bigint;
  readonly started: bigint;
  /** The Content-MD5 that the blob gets with its bytes. */
  readonly md5: string | undefined;
}

/** The copy writes into the content of its blob, which shows none of it before the end. */
export interface InPlaceCopy {
  /** What the append blob has in the end. */
  readonly append?: AppendState | undefined;
  readonly incremental?: IncrementalCopy | undefined;
}

/** Incremental Copy Blob: the end is a snapshot of the copy. */
export interface IncrementalCopy {
  /** Of the source. */
  readonly snapshot: bigint;
  /** The one that was copied before; undefined: everything is copied. */
  readonly since?: bigint | undefined;
}

/** Where a running copy is. */
export interface CopyPlace {
  readonly account: AccountId;
  readonly container: ContainerId;
  readonly blob: string;
}

export const isRemote = (source: RunningCopy['source']): source is RemoteCopySource => 'url' in source;
export const keyOfCopy = ({ account, container, blob }: CopyPlace): Key => runningCopyKey(account, container, blob);

export function placeOfCopy(key: Key): CopyPlace {
  const [account, , container, , blob] = decodeKey(key) as [AccountId, string, ContainerId, bigint, string];
  return { account, container, blob };
}

export function encodeRunningCopy({ source, content, owner, started, inPlace, ...copy }: RunningCopy): Buffer {
  return encodeValue({
    ...copy,
    source: isRemote(source)
      ? { ...source, modified: source.modified?.toString() }
      : {
          ...source,
          account: source.account.toString(),
          grantedContainer: source.grantedContainer?.toString(),
          snapshot: source.snapshot?.toString(),
        },
    content: formatId(content),
    inPlace: inPlace && { append: inPlace.append, incremental: formatIncremental(inPlace.incremental) },
    owner: owner.toString(),
    started: started.toString(),
  });
}

export function decodeRunningCopy(row: Row): RunningCopy {
  const { id, md5, source, content, inPlace, owner, started } = decodeValue<StoredCopy>(row);
  return {
    id,
    md5,
    source:
      'url' in source
        ? { url: source.url, etag: source.etag, modified: parseOptional(source.modified) }
        : {
            ...source,
            account: BigInt(source.account),
            grantedContainer: parseOptional(source.grantedContainer),
            snapshot: parseOptional(source.snapshot),
          },
    content: parseId(content),
    inPlace: inPlace && { append: inPlace.append, incremental: parseIncremental(inPlace.incremental) },
    owner: BigInt(owner),
    started: BigInt(started),
  };
}

/** JSON has no bigint. */
type StoredCopy = Pick<RunningCopy, 'id' | 'md5'> & {
  source:
    | { url: string; etag?: string; modified?: string }
    | { account: string; container: string; grantedContainer?: string; blob: string; snapshot?: string; etag: string };
  content: string;
  inPlace?: { append?: AppendState; incremental?: StoredIncremental };
  owner: string;
  started: string;
};

type StoredIncremental = { snapshot: string; since?: string };

const formatIncremental = (copy: IncrementalCopy | undefined) =>
  copy && { snapshot: copy.snapshot.toString(), since: copy.since?.toString() };
const parseIncremental = (stored: StoredIncremental | undefined): IncrementalCopy | undefined =>
  stored && { snapshot: BigInt(stored.snapshot), since: parseOptional(stored.since) };
const parseOptional = (text: string | undefined): bigint | undefined => (text === undefined ? undefined : BigInt(text));

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
