/** Containers, blobs and uncommitted blocks as rows: keys, values, reads; docs/adr/0002-row-schema.md has the schema. */
import { TICKS_PER_SECOND } from '../../base/time.ts';
import {
  decodeManifestPage,
  deletionKey,
  encodeManifestPage,
  formatId,
  type Id,
  parseId,
  type RefCounting,
  type Segment,
  uncountedFlag,
} from '../../content/rows.ts';
import { decodeKey, encodeKey, type Key, keyPrefix, keysUnder, type Range } from '../../partition/keys.ts';
import type { Instant, Row, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { CopyState } from '../../rules/copy-state.ts';
import type { IncrementalState } from '../../rules/incremental-copy.ts';
import type { Lease } from '../../rules/lease.ts';
import type { PageTier } from '../../rules/page-tiers.ts';
import type { Tags } from '../../rules/tags.ts';
import type { StoredTier } from '../../rules/tiers.ts';
import type { ContentHeaders } from '../common/content-headers.ts';
import { encodeDeletion } from '../common/deletions.ts';
import { decodeLease, encodeLease, type StoredLease, versionFields, type WithVersion } from '../common/etagged-rows.ts';
import type { Metadata } from '../common/names.ts';
import * as names from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { AccountId, AccountScope } from '../common/storage.ts';
import { fail } from './errors.ts';

export type ContainerId = bigint;
export type { ContentHeaders, CopyState, Metadata };

/** An account without a hierarchical namespace has one directory, which holds whole names. */
export const ROOT = 0n;

export const nameKey = (account: AccountId, container: string): Key => names.nameKey(account, 'blob', container);
export const nameKeyPrefix = (account: AccountId, prefix: string): Key => names.nameKeyPrefix(account, 'blob', prefix);
export const propertiesKey = (account: AccountId, id: ContainerId): Key => names.propertiesKey(account, 'blob', id);
export const blobKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'b', id, ROOT, blob]);
export const blobKeyPrefix = (account: AccountId, id: ContainerId, prefix: string): Key =>
  keyPrefix([account, 'b', id, ROOT], prefix);
/** With a stamp: the bytes of a snapshot. */
export const inlineKey = (account: AccountId, id: ContainerId, blob: string, stamp?: Timestamp): Key =>
  encodeKey([account, 'i', id, ROOT, blob, ...(stamp === undefined ? [] : [stamp])]);
/** The name of a container that has tags. */
export const taggedNameKey = (account: AccountId, id: ContainerId): Key => encodeKey([account, 'U', id]);
export const uncommittedKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'u', id, ROOT, blob]);
export const uncommittedKeyPrefix = (account: AccountId, id: ContainerId, prefix: string): Key =>
  keyPrefix([account, 'u', id, ROOT], prefix);
/** The copy that runs onto this blob, in `running-copies.ts`. */
export const runningCopyKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'r', id, ROOT, blob]);
export const runningCopiesIn = (account: AccountId, ...container: ContainerId[]): Range =>
  keysUnder([account, 'r', ...container]);
/** `blockId`: decoded from base64, so that the rows are in the order of the bytes. */
export const blockKey = (account: AccountId, id: UncommittedId, blockId: Uint8Array): Key =>
  encodeKey([...uncommittedKeyParts(account, id), blockId]);
export const blocksIn = (account: AccountId, id: UncommittedId): Range => keysUnder(uncommittedKeyParts(account, id));
/** Expiry index: the instant at which the sweeper checks whether uncommitted blocks have expired. */
export const expiryKey = (account: AccountId, instant: Instant, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'w', instant, 'stage', id, blob]);
/** The entries of the expiry index up to this instant. */
export const expiredIn = (account: AccountId, now: Instant): Range => ({
  from: keysUnder([account, 'w']).from,
  to: encodeKey([account, 'w', now + 1n]),
});
/** The queue of the transactions on one container or blob: by name, because the container's id is not known before. */
export const txQueueKey = (account: AccountId, ...path: string[]): Key => encodeKey([account, 'blob', ...path]);

/** The last part of a key: the name of the container or blob. */
export function nameFromKey(key: Key): string {
  return decodeKey(key).at(-1) as string;
}

/** A row whose version is its ETag, unless the last write had to keep the ETag. */
interface ETagged {
  /** The version that the ETag shows. Set by lease operations, Set Blob Tier and Set Blob Tags only; any other write leaves it out. */
  readonly etag?: Timestamp | undefined;
}

/** What anonymous callers can read: blobs, or also the container and its list of blobs. */
export type PublicAccess = 'blob' | 'container';

export interface ContainerProperties extends ETagged {
  readonly metadata: Metadata;
  /** Undefined: no anonymous access. */
  readonly access?: PublicAccess | undefined;
  readonly policies: readonly AccessPolicy[];
  readonly lease?: Lease | undefined;
}

export type BlobType = 'block' | 'append' | 'page';

export interface AppendState {
  /** How many appends there were. */
  readonly blocks: number;
  /** Nothing can be appended any more. */
  readonly isSealed?: true | undefined;
}

export interface PageState {
  readonly sequenceNumber: bigint;
  /** Undefined: never set. */
  readonly tier?: PageTier | undefined;
  /** The blob consists of copies of another one's snapshots; it cannot be changed, and only its snapshots can be read. */
  readonly incremental?: IncrementalState | undefined;
}

export interface BlobRecord extends ETagged {
  readonly length: number;
  /**
   * Of the bytes, in base64: `check` verifies an inline content by it. (Content-MD5 is for the client to set.) A blob of a block
   * list has none, because its bytes never passed through in one stream.
   */
  readonly crc64?: string | undefined;
  /** Exactly one of this and the inline row exists. Append and page blobs have it: their content changes in place. */
  readonly contentId?: string | undefined;
  /** Of an older state whose content changes in place: the generation that it shows. */
  readonly generation?: number | undefined;
  /** Of an append blob only. */
  readonly append?: AppendState | undefined;
  /** Of a page blob only. */
  readonly page?: PageState | undefined;
  readonly copy?: CopyState | undefined;
  readonly content: ContentHeaders;
  readonly metadata: Metadata;
  readonly lease?: Lease | undefined;
  readonly created: Timestamp;
  /** Undefined: never set. */
  readonly tier?: StoredTier | undefined;
  readonly tags?: Tags | undefined;
}

export function blobTypeOf({ append, page }: Pick<BlobRecord, 'append' | 'page'>): BlobType {
  if (append) return 'append';
  return page ? 'page' : 'block';
}
/** Whether the content is a range map. */
export const changesInPlace = (blob: Pick<BlobRecord, 'append' | 'page'>): boolean => blobTypeOf(blob) !== 'block';

export type UncommittedId = Id;

/** The uncommitted blocks of one blob. Every Put Block writes this row, so two of them on one blob conflict. */
export interface UncommittedBlocks {
  readonly id: UncommittedId;
  readonly created: Timestamp;
  /** Only of a blob that consists of nothing else: the lease of a committed blob is in its record. */
  readonly lease?: Lease | undefined;
  /** The length of every block's id, in bytes. */
  readonly idLength: number;
  /** The number of block rows: every new block raises it. */
  readonly count: number;
  /** Every replacement of a block raises it: a block list that is built in slices must not mix old and new blocks. */
  readonly gen: number;
  /** The instant of the last Put Block. */
  readonly touched: Instant;
  /** The instant in the key of its expiry row; both are written in one commit. */
  readonly due: Instant;
}

const UNCOMMITTED_TTL_TICKS = 7n * 24n * 3600n * TICKS_PER_SECOND;
export const uncommittedExpiry = (touched: Instant): Instant => touched + UNCOMMITTED_TTL_TICKS;

export type Container = WithVersion<ContainerProperties> & { readonly id: ContainerId };
/** `snapshot`: the stamp, if it is a snapshot. */
export type Blob = WithVersion<BlobRecord> & { readonly tags: Tags; readonly snapshot?: Timestamp };

export async function readContainerId(
  at: Snapshot,
  { account, granted }: AccountScope,
  container: string,
): Promise<ContainerId> {
  const row = await at.get(nameKey(account, container));
  if (!row) throw fail('ContainerNotFound');
  const id = names.decodeName(row);
  checkGranted(granted, id);
  return id;
}

/** Of a caller that one container's access settings authorized: another one of the same name does not exist. */
export function checkGranted(granted: AccountScope['granted'], id: ContainerId): void {
  if (granted?.container !== undefined && granted.container !== id) throw fail('ContainerNotFound');
}

export async function readContainer(at: Snapshot, scope: AccountScope, container: string): Promise<Container> {
  const { account } = scope;
  const id = await readContainerId(at, scope, container);
  return { id, ...decodeProperties((await at.get(propertiesKey(account, id)))!) };
}

/** The caller removes the name and the properties: without the name, nothing in the container can be reached. */
export function scheduleContainerDeletion(tx: Transaction, account: AccountId, id: ContainerId): void {
  const container = id.toString();
  tx.put(deletionKey(account, tx.timestamp, container), encodeDeletion({ kind: 'container', container }));
  tx.remove(taggedNameKey(account, id));
}

/** Put Block checks the uncommitted-blocks row, so the blocks that are left cannot be found any more. */
export function scheduleUncommittedDeletion(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  uncommitted: UncommittedBlocks,
  counting?: RefCounting,
): void {
  removeUncommitted(tx, account, id, blob, uncommitted);
  const text = formatId(uncommitted.id);
  tx.put(
    deletionKey(account, tx.timestamp, text),
    encodeDeletion({ kind: 'stage', stage: text, ...uncountedFlag(counting) }),
  );
}

/** Without the blocks: the caller has removed or scheduled them. */
export function removeUncommitted(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  { due }: UncommittedBlocks,
): void {
  tx.remove(uncommittedKey(account, id, blob));
  tx.remove(expiryKey(account, due, id, blob));
}

export function encodeProperties({ metadata, access, policies, lease, etag }: ContainerProperties): Buffer {
  return encodeValue({ metadata, access, policies, lease: encodeLease(lease), etag: etag?.toString() });
}

export function decodeProperties(row: Row): WithVersion<ContainerProperties> {
  const { metadata, access, policies, lease, etag } = decodeValue<Stored<ContainerProperties>>(row);
  return { metadata, access, policies, lease: decodeLease(lease), ...versionFields(row, etag) };
}

/** The record as it would be written again, under a new ETag. */
export function recordFrom({ etag: _, modified: __, version: ___, snapshot: ____, ...record }: Blob): BlobRecord {
  return record;
}

export function encodeUncommitted({
  id,
  created,
  lease,
  idLength,
  count,
  gen,
  touched,
  due,
}: UncommittedBlocks): Buffer {
  return encodeValue({
    id: formatId(id),
    created: created.toString(),
    lease: encodeLease(lease),
    idLength,
    count,
    gen,
    touched: touched.toString(),
    due: due.toString(),
  });
}

export function decodeUncommitted(row: Row): UncommittedBlocks {
  const { id, created, lease, touched, due, ...counts } = decodeValue<StoredUncommitted>(row);
  return {
    id: parseId(id),
    created: BigInt(created),
    lease: decodeLease(lease),
    touched: BigInt(touched),
    due: BigInt(due),
    ...counts,
  };
}

type StoredUncommitted = Pick<UncommittedBlocks, 'idLength' | 'count' | 'gen'> & {
  id: string;
  created: string;
  lease?: StoredLease;
  touched: string;
  due: string;
};

/** Expired blocks do not exist for requests, whether the sweeper has removed their rows or not. */
export const isExpired = ({ touched }: UncommittedBlocks, now: Instant): boolean => now >= uncommittedExpiry(touched);

export const encodeBlock = (block: Segment): Buffer => encodeManifestPage([block]);
export const decodeBlock = (row: Row): Segment => decodeManifestPage(row)[0]!;

function uncommittedKeyParts(account: AccountId, { epoch, number }: UncommittedId) {
  return [account, 'y', epoch, number] as const;
}

/** JSON has no bigint: instants are stored as text. */
type Stored<T> = Omit<T, 'lease' | 'etag'> & { lease?: StoredLease; etag?: string };
