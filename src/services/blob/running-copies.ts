/**
 * Running copies as rows: each names its source, the content that it builds, and the process that runs it. The blob itself is empty
 * until the copy is complete; its record has the state of the copy.
 */

import type { ContentStore } from '../../content/content.ts';
import { type ContentId, formatId, parseId } from '../../content/rows.ts';
import { crc64Base64 } from '../../hashing/hasher.ts';
import { decodeKey, type Key } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeBytes, encodeValue } from '../../partition/values.ts';
import type { CopyState } from '../../rules/copy-state.ts';
import type { AccountId } from '../common/storage.ts';
import { decodeBlobRecord, encodeBlobRecord } from './blob-record.ts';
import { type Blob, blobKey, type ContainerId, inlineKey, recordFrom, runningCopyKey } from './rows.ts';

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
  /** Its manifest grows with the copy. No content row exists before the end, so this row is what names the pages. */
  readonly content: ContentId;
  /** The epoch of the process that runs it. Once the epoch is gone, another process takes the copy over. */
  readonly owner: bigint;
  readonly started: bigint;
  /** The Content-MD5 that the blob gets with its bytes. */
  readonly md5: string | undefined;
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

export function encodeRunningCopy({ source, content, owner, started, ...copy }: RunningCopy): Buffer {
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
    owner: owner.toString(),
    started: started.toString(),
  });
}

export function decodeRunningCopy(row: Row): RunningCopy {
  const { id, md5, source, content, owner, started } = decodeValue<StoredCopy>(row);
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
  owner: string;
  started: string;
};

const parseOptional = (text: string | undefined): bigint | undefined => (text === undefined ? undefined : BigInt(text));

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
export function endWithoutBytes(
  tx: Transaction,
  content: Pick<ContentStore, 'discardContent'>,
  place: CopyPlace,
  { content: contentId }: RunningCopy,
  found: Blob,
  copy: CopyState,
): boolean {
  const { account, container, blob } = place;
  tx.remove(keyOfCopy(place));
  tx.put(blobKey(account, container, blob), encodeBlobRecord({ ...recordFrom(found), copy }));
  const hasPages = (found.copy?.copied ?? 0) > 0;
  if (hasPages) content.discardContent(tx, account, contentId);
  return hasPages;
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
