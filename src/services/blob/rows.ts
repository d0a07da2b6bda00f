/** Containers and blobs as rows; docs/adr/0002-rows.md has the schema. */
import { beginning, decodeKey, encodeKey, type Key, type Range, under } from '../../partition/keys.ts';
import type { Row, Snapshot, Stamp } from '../../partition/partition.ts';
import { decodeBytes, decodeValue, encodeBytes, encodeValue } from '../../partition/values.ts';
import type { Found } from '../../rules/conditions.ts';
import { etagOf } from '../../rules/etag.ts';
import type { Lease } from '../../rules/lease.ts';
import type { AccountId } from '../storage.ts';
import { fail } from './errors.ts';

export type ContainerId = bigint;
export type Metadata = Readonly<Record<string, string>>;

/** Flat accounts have one directory, which holds whole names. */
const ROOT = 0n;

export const nameKey = (account: AccountId, container: string): Key => encodeKey([account, 'n', 'blob', container]);
export const namesIn = (account: AccountId, prefix: string): Key => beginning([account, 'n', 'blob'], prefix);
export const propertiesKey = (account: AccountId, id: ContainerId): Key => encodeKey([account, 'p', 'blob', id]);
export const trashKey = (account: AccountId, stamp: Stamp, id: bigint): Key => encodeKey([account, 'x', stamp, id]);
export const trashIn = (account: AccountId): Range => under([account, 'x']);
export const headKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'b', id, ROOT, blob]);
export const headsIn = (account: AccountId, id: ContainerId, prefix: string): Key =>
  beginning([account, 'b', id, ROOT], prefix);
export const inlineKey = (account: AccountId, id: ContainerId, blob: string): Key =>
  encodeKey([account, 'i', id, ROOT, blob]);
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

export interface AccessPolicy {
  readonly id: string;
  readonly start?: string;
  readonly expiry?: string;
  readonly permission?: string;
}

export interface ContainerProperties extends Marked {
  readonly metadata: Metadata;
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

export interface BlobHead extends Marked {
  readonly length: number;
  /** Of the bytes, as base64; what `check` goes by. The MD5 among the headers is the client's to set. */
  readonly crc64: string;
  readonly content: ContentHeaders;
  readonly metadata: Metadata;
  readonly lease?: Lease | undefined;
  readonly created: Stamp;
}

/** A row as it was found, with its ETag and the instant of its last change. */
export type Located<T> = Omit<T, 'etag'> & Found & { readonly stamp: Stamp };
export type Container = Located<ContainerProperties> & { readonly id: ContainerId };
export type Blob = Located<BlobHead>;

export async function containerIdAt(at: Snapshot, account: AccountId, container: string): Promise<ContainerId> {
  const row = await at.get(nameKey(account, container));
  if (!row) throw fail('ContainerNotFound');
  return decodeName(row);
}

export async function containerAt(at: Snapshot, account: AccountId, container: string): Promise<Container> {
  const id = await containerIdAt(at, account, container);
  return { id, ...decodeProperties((await at.get(propertiesKey(account, id)))!) };
}

export async function findBlob(
  at: Snapshot,
  account: AccountId,
  id: ContainerId,
  blob: string,
): Promise<Blob | undefined> {
  const row = await at.get(headKey(account, id, blob));
  return row && decodeHead(row);
}

export async function blobAt(at: Snapshot, account: AccountId, container: string, blob: string) {
  const name = await at.get(nameKey(account, container));
  if (!name) throw fail('ContainerNotFound');
  const id = decodeName(name);
  const head = await at.get(headKey(account, id, blob));
  if (!head) throw fail('BlobNotFound');
  return { id, blob: decodeHead(head) };
}

/** Read with every request: eight bytes, not JSON. */
export function encodeName(id: ContainerId): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(id);
  return encodeBytes(bytes);
}

export function decodeName(row: Row): ContainerId {
  return decodeBytes(row).readBigUInt64BE();
}

export function encodeProperties({ metadata, policies, lease, etag }: ContainerProperties): Buffer {
  return encodeValue({ metadata, policies, lease: storedLease(lease), etag: etag?.toString() });
}

export function decodeProperties(row: Row): Located<ContainerProperties> {
  const { metadata, policies, lease, etag } = decodeValue<Stored<ContainerProperties>>(row);
  return { metadata, policies, lease: loadedLease(lease), ...located(row, etag) };
}

export function encodeHead({ length, crc64, content, metadata, lease, created, etag }: BlobHead): Buffer {
  const type = 'block';
  return encodeValue({
    type,
    length,
    crc64,
    content,
    metadata,
    lease: storedLease(lease),
    created: created.toString(),
    etag: etag?.toString(),
  });
}

export function decodeHead(row: Row): Blob {
  const { length, crc64, content, metadata, lease, created, etag } = decodeValue<Stored<BlobHead>>(row);
  return {
    length,
    crc64,
    content,
    metadata,
    lease: loadedLease(lease),
    created: BigInt(created),
    ...located(row, etag),
  };
}

/** JSON has no bigint: instants are text in a row. */
type Stored<T> = Omit<T, 'lease' | 'etag' | 'created'> & { lease?: StoredLease; etag?: string; created: string };
type StoredLease = { id: string; state: Lease['state']; seconds?: number; until?: string };

function storedLease(lease: Lease | undefined): StoredLease | undefined {
  if (!lease || lease.state === 'broken' || lease.until === undefined) return lease as StoredLease | undefined;
  return { ...lease, until: lease.until.toString() };
}

function loadedLease(lease: StoredLease | undefined): Lease | undefined {
  if (!lease || lease.until === undefined) return lease as Lease | undefined;
  return { ...lease, until: BigInt(lease.until) } as Lease;
}

function located({ version }: Row, etag: string | undefined): Found & { stamp: Stamp } {
  const stamp = etag === undefined ? version : BigInt(etag);
  return { etag: etagOf(stamp), modified: stamp, stamp };
}
