/** Containers and blobs as rows; docs/adr/0002-row-schema.md has the schema. */

import { TICKS_PER_SECOND } from '../../base/time.ts';
import {
  decodeManifestPage,
  deletionKey,
  encodeDeletion,
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
import type { Validators } from '../../rules/conditions.ts';
import { formatEtag } from '../../rules/etag.ts';
import type { Lease } from '../../rules/lease.ts';
import type { Metadata } from '../common/metadata.ts';
import * as names from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { fail } from './errors.ts';

export type ContainerId = bigint;
export type { Metadata };

/** Flat accounts have one directory, which holds whole names. */
const ROOT = 0n;

export const nameKey = (account: AccountId, container: string): Key => names.nameKey(account, 'blob', container);
export const nameKeyPrefix = (account: AccountId, prefix: string): Key => names.nameKeyPrefix(account, 'blob', prefix);
export const propertiesKey = (account: AccountId, id: ContainerId): Key => names.propertiesKey(account, 'blob', id);
export const blobKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'b', id, ROOT, blob]);
export const blobKeyPrefix = (account: AccountId, id: ContainerId, prefix: string): Key =>
  keyPrefix([account, 'b', id, ROOT], prefix);
export const inlineKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'i', id, ROOT, blob]);
export const uncommittedKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'u', id, ROOT, blob]);
export const uncommittedKeyPrefix = (account: AccountId, id: ContainerId, prefix: string): Key =>
  keyPrefix([account, 'u', id, ROOT], prefix);
/** `block` as it is behind its base64. */
export const blockKey = (account: AccountId, stage: UncommittedId, block: Uint8Array): Key =>
  encodeKey([...uncommittedKeyParts(account, stage), block]);
export const blocksIn = (account: AccountId, stage: UncommittedId): Range =>
  keysUnder(uncommittedKeyParts(account, stage));
/** When to look at a stage again: whether its blocks have expired. */
export const expiryKey = (account: AccountId, instant: Instant, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'w', instant, 'stage', id, blob]);
/** All that is due at this instant. */
export const expiredIn = (account: AccountId, now: Instant): Range => ({
  from: keysUnder([account, 'w']).from,
  to: encodeKey([account, 'w', now + 1n]),
});
/** Where the requests for one container or blob take turns: before its container's id is known. */
export const txQueueKey = (account: AccountId, ...path: string[]): Key => encodeKey([account, 'blob', ...path]);

/** The last part of a key: the name of the container or blob. */
export function nameFromKey(key: Key): string {
  return decodeKey(key).at(-1) as string;
}

/** What a row with an ETag of its own knows of itself: the write that made it, unless that one was to leave the ETag alone. */
interface ETagged {
  readonly etag?: Timestamp;
}

/** What strangers may read: the blobs, or also what there is. */
export type PublicAccess = 'blob' | 'container';

export interface ContainerProperties extends ETagged {
  readonly metadata: Metadata;
  /** Undefined: nothing. */
  readonly access?: PublicAccess | undefined;
  readonly policies: readonly AccessPolicy[];
  readonly lease?: Lease | undefined;
}

export interface ContentHeaders {
  readonly contentType?: string | undefined;
  readonly contentEncoding?: string | undefined;
  readonly contentLanguage?: string | undefined;
  readonly contentDisposition?: string | undefined;
  readonly cacheControl?: string | undefined;
  readonly contentMd5?: string | undefined;
}

/** What a finished copy leaves behind, until something else is written. */
export interface CopyState {
  readonly id: string;
  /** The URL as it was sent. */
  readonly source: string;
  readonly bytes: number;
  readonly completed: Timestamp;
}

export interface BlobRecord extends ETagged {
  readonly length: number;
  /**
   * Of the bytes, as base64; what `check` goes by. The MD5 among the headers is the client's to set. Nobody has seen the bytes
   * of a block list in one go, so it has none.
   */
  readonly crc64?: string | undefined;
  /** Where the bytes are, as text; without it they lie in the inline row. */
  readonly contentId?: string | undefined;
  readonly copy?: CopyState | undefined;
  readonly content: ContentHeaders;
  readonly metadata: Metadata;
  readonly lease?: Lease | undefined;
  readonly created: Timestamp;
}

export type UncommittedId = Id;

/** The uncommitted blocks of one blob. Written by every Put Block. */
export interface UncommittedBlocks {
  readonly id: UncommittedId;
  readonly created: Timestamp;
  /** Of a blob that consists of nothing else: a committed one has its lease in its head. */
  readonly lease?: Lease | undefined;
  /** Of every block's id, in bytes. */
  readonly idLength: number;
  readonly count: number;
  /** Rises when a block is replaced: a list that is built in slices must not mix old and new. */
  readonly gen: number;
  /** The last Put Block. */
  readonly touched: Instant;
  /** The instant in the key of its due row. */
  readonly due: Instant;
}

const UNCOMMITTED_TTL_TICKS = 7n * 24n * 3600n * TICKS_PER_SECOND;
export const uncommittedExpiry = (touched: Instant): Instant => touched + UNCOMMITTED_TTL_TICKS;

/** A row as it was found, with its ETag and the instant of its last change. */
export type WithVersion<T> = Omit<T, 'etag'> & Validators & { readonly stamp: Timestamp };
export type Container = WithVersion<ContainerProperties> & { readonly id: ContainerId };
export type Blob = WithVersion<BlobRecord>;

/** Whose container, and for whom. */
export type ContainerScope = Pick<Storage, 'account' | 'granted'>;

export async function readContainerId(
  at: Snapshot,
  { account, granted }: ContainerScope,
  container: string,
): Promise<ContainerId> {
  const row = await at.get(nameKey(account, container));
  if (!row) throw fail('ContainerNotFound');
  const id = names.decodeName(row);
  if (granted?.container !== undefined && granted.container !== id) throw fail('ContainerNotFound');
  return id;
}

export async function readContainer(at: Snapshot, scope: ContainerScope, container: string): Promise<Container> {
  const { account } = scope;
  const id = await readContainerId(at, scope, container);
  return { id, ...decodeProperties((await at.get(propertiesKey(account, id)))!) };
}

/** What is in it can be reached no more, once its name is gone too. */
export function scheduleContainerDeletion(tx: Transaction, account: AccountId, id: ContainerId): void {
  const container = id.toString();
  tx.put(deletionKey(account, tx.timestamp, container), encodeDeletion({ kind: 'container', container }));
}

/** Whoever adds a block checks the stage's row: what is left of the blocks can be reached no more. */
export function scheduleUncommittedDeletion(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  stage: UncommittedBlocks,
  counting?: RefCounting,
): void {
  removeUncommitted(tx, account, id, blob, stage);
  const text = formatId(stage.id);
  tx.put(
    deletionKey(account, tx.timestamp, text),
    encodeDeletion({ kind: 'stage', stage: text, ...uncountedFlag(counting) }),
  );
}

/** Without its blocks: there are none left. */
export function removeUncommitted(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  stage: UncommittedBlocks,
): void {
  tx.remove(uncommittedKey(account, id, blob));
  tx.remove(expiryKey(account, stage.due, id, blob));
}

export function encodeProperties({ metadata, access, policies, lease, etag }: ContainerProperties): Buffer {
  return encodeValue({ metadata, access, policies, lease: encodeLease(lease), etag: etag?.toString() });
}

export function decodeProperties(row: Row): WithVersion<ContainerProperties> {
  const { metadata, access, policies, lease, etag } = decodeValue<Stored<ContainerProperties>>(row);
  return { metadata, access, policies, lease: decodeLease(lease), ...versionFields(row, etag) };
}

/** As it would be written again, under a new ETag. */
export function recordFrom({ etag: _, modified: __, stamp: ___, ...head }: Blob): BlobRecord {
  return head;
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

/** Whether the sweeper has come to them or not, blocks that have expired are not there. */
export const isExpired = ({ touched }: UncommittedBlocks, now: Instant): boolean => now >= uncommittedExpiry(touched);

export const encodeBlock = (block: Segment): Buffer => encodeManifestPage([block]);
export const decodeBlock = (row: Row): Segment => decodeManifestPage(row)[0]!;

function uncommittedKeyParts(account: AccountId, { epoch, number }: UncommittedId) {
  return [account, 'y', epoch, number] as const;
}

/** JSON has no bigint: instants are text in a row. */
type Stored<T> = Omit<T, 'lease' | 'etag'> & { lease?: StoredLease; etag?: string };
export type StoredLease = { id: string; state: Lease['state']; seconds?: number; until?: string };

export function encodeLease(lease: Lease | undefined): StoredLease | undefined {
  if (!lease || lease.state === 'broken' || lease.until === undefined) return lease as StoredLease | undefined;
  return { ...lease, until: lease.until.toString() };
}

export function decodeLease(lease: StoredLease | undefined): Lease | undefined {
  if (!lease || lease.until === undefined) return lease as Lease | undefined;
  return { ...lease, until: BigInt(lease.until) } as Lease;
}

export function versionFields({ version }: Row, etag: string | undefined): Validators & { stamp: Timestamp } {
  const stamp = etag === undefined ? version : BigInt(etag);
  return { etag: formatEtag(stamp), modified: stamp, stamp };
}
