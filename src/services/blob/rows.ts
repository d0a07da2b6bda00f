/** Containers and blobs as rows; docs/adr/0002-rows.md has the schema. */

import { TICKS_PER_SECOND } from '../../base/time.ts';
import {
  type Counting,
  decodeCell,
  encodeCell,
  encodeTrash,
  type Id,
  idOf,
  type Piece,
  textOf,
  trashKey,
  uncountedIf,
} from '../../content/rows.ts';
import { beginning, decodeKey, encodeKey, type Key, type Range, under } from '../../partition/keys.ts';
import type { Instant, Row, Snapshot, Stamp, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { Found } from '../../rules/conditions.ts';
import { etagOf } from '../../rules/etag.ts';
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
export const namesIn = (account: AccountId, prefix: string): Key => names.namesFrom(account, 'blob', prefix);
export const propertiesKey = (account: AccountId, id: ContainerId): Key => names.propertiesKey(account, 'blob', id);
export const headKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'b', id, ROOT, blob]);
export const headsIn = (account: AccountId, id: ContainerId, prefix: string): Key =>
  beginning([account, 'b', id, ROOT], prefix);
export const inlineKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'i', id, ROOT, blob]);
export const stageKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'u', id, ROOT, blob]);
export const stagesIn = (account: AccountId, id: ContainerId, prefix: string): Key =>
  beginning([account, 'u', id, ROOT], prefix);
/** `block` as it is behind its base64. */
export const blockKey = (account: AccountId, stage: StageId, block: Uint8Array): Key =>
  encodeKey([...stageParts(account, stage), block]);
export const blocksIn = (account: AccountId, stage: StageId): Range => under(stageParts(account, stage));
/** When to look at a stage again: whether its blocks have expired. */
export const dueKey = (account: AccountId, instant: Instant, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'w', instant, 'stage', id, blob]);
/** All that is due at this instant. */
export const dueIn = (account: AccountId, now: Instant): Range => ({
  from: under([account, 'w']).from,
  to: encodeKey([account, 'w', now + 1n]),
});
/** Where the requests for one container or blob take turns: before its container's id is known. */
export const anchorOf = (account: AccountId, ...path: string[]): Key => encodeKey([account, 'blob', ...path]);

/** The last part of a key: the name of the container or blob. */
export function nameIn(key: Key): string {
  return decodeKey(key).at(-1) as string;
}

/** What a row with an ETag of its own knows of itself: the write that made it, unless that one was to leave the ETag alone. */
interface Marked {
  readonly etag?: Stamp;
}

/** What strangers may read: the blobs, or also what there is. */
export type PublicAccess = 'blob' | 'container';

export interface ContainerProperties extends Marked {
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
  readonly completed: Stamp;
}

export interface BlobHead extends Marked {
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
  readonly created: Stamp;
}

export type StageId = Id;

/** The uncommitted blocks of one blob. Written by every Put Block. */
export interface Stage {
  readonly id: StageId;
  readonly created: Stamp;
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

const STAGE_TICKS = 7n * 24n * 3600n * TICKS_PER_SECOND;
export const stageEnd = (touched: Instant): Instant => touched + STAGE_TICKS;

/** A row as it was found, with its ETag and the instant of its last change. */
export type Located<T> = Omit<T, 'etag'> & Found & { readonly stamp: Stamp };
export type Container = Located<ContainerProperties> & { readonly id: ContainerId };
export type Blob = Located<BlobHead>;

/** Whose container, and for whom. */
export type Place = Pick<Storage, 'account' | 'granted'>;

export async function containerIdAt(
  at: Snapshot,
  { account, granted }: Place,
  container: string,
): Promise<ContainerId> {
  const row = await at.get(nameKey(account, container));
  if (!row) throw fail('ContainerNotFound');
  const id = names.decodeName(row);
  if (granted?.container !== undefined && granted.container !== id) throw fail('ContainerNotFound');
  return id;
}

export async function containerAt(at: Snapshot, place: Place, container: string): Promise<Container> {
  const { account } = place;
  const id = await containerIdAt(at, place, container);
  return { id, ...decodeProperties((await at.get(propertiesKey(account, id)))!) };
}

/** What is in it can be reached no more, once its name is gone too. */
export function trashContainer(tx: Transaction, account: AccountId, id: ContainerId): void {
  const container = id.toString();
  tx.put(trashKey(account, tx.stamp, container), encodeTrash({ kind: 'container', container }));
}

/** Whoever adds a block checks the stage's row: what is left of the blocks can be reached no more. */
export function trashStage(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  stage: Stage,
  counting?: Counting,
): void {
  removeStage(tx, account, id, blob, stage);
  const text = textOf(stage.id);
  tx.put(trashKey(account, tx.stamp, text), encodeTrash({ kind: 'stage', stage: text, ...uncountedIf(counting) }));
}

/** Without its blocks: there are none left. */
export function removeStage(tx: Transaction, account: AccountId, id: ContainerId, blob: string, stage: Stage): void {
  tx.remove(stageKey(account, id, blob));
  tx.remove(dueKey(account, stage.due, id, blob));
}

export function encodeProperties({ metadata, access, policies, lease, etag }: ContainerProperties): Buffer {
  return encodeValue({ metadata, access, policies, lease: storedLease(lease), etag: etag?.toString() });
}

export function decodeProperties(row: Row): Located<ContainerProperties> {
  const { metadata, access, policies, lease, etag } = decodeValue<Stored<ContainerProperties>>(row);
  return { metadata, access, policies, lease: loadedLease(lease), ...located(row, etag) };
}

/** As it would be written again, under a new ETag. */
export function headOf({ etag: _, modified: __, stamp: ___, ...head }: Blob): BlobHead {
  return head;
}

export function encodeStage({ id, created, lease, idLength, count, gen, touched, due }: Stage): Buffer {
  return encodeValue({
    id: textOf(id),
    created: created.toString(),
    lease: storedLease(lease),
    idLength,
    count,
    gen,
    touched: touched.toString(),
    due: due.toString(),
  });
}

export function decodeStage(row: Row): Stage {
  const { id, created, lease, touched, due, ...counts } = decodeValue<StoredStage>(row);
  return {
    id: idOf(id),
    created: BigInt(created),
    lease: loadedLease(lease),
    touched: BigInt(touched),
    due: BigInt(due),
    ...counts,
  };
}

type StoredStage = Pick<Stage, 'idLength' | 'count' | 'gen'> & {
  id: string;
  created: string;
  lease?: StoredLease;
  touched: string;
  due: string;
};

/** Whether the sweeper has come to them or not, blocks that have expired are not there. */
export const isExpired = ({ touched }: Stage, now: Instant): boolean => now >= stageEnd(touched);

export const encodeBlock = (block: Piece): Buffer => encodeCell([block]);
export const decodeBlock = (row: Row): Piece => decodeCell(row)[0]!;

function stageParts(account: AccountId, { epoch, number }: StageId) {
  return [account, 'y', epoch, number] as const;
}

/** JSON has no bigint: instants are text in a row. */
type Stored<T> = Omit<T, 'lease' | 'etag'> & { lease?: StoredLease; etag?: string };
export type StoredLease = { id: string; state: Lease['state']; seconds?: number; until?: string };

export function storedLease(lease: Lease | undefined): StoredLease | undefined {
  if (!lease || lease.state === 'broken' || lease.until === undefined) return lease as StoredLease | undefined;
  return { ...lease, until: lease.until.toString() };
}

export function loadedLease(lease: StoredLease | undefined): Lease | undefined {
  if (!lease || lease.until === undefined) return lease as Lease | undefined;
  return { ...lease, until: BigInt(lease.until) } as Lease;
}

export function located({ version }: Row, etag: string | undefined): Found & { stamp: Stamp } {
  const stamp = etag === undefined ? version : BigInt(etag);
  return { etag: etagOf(stamp), modified: stamp, stamp };
}
