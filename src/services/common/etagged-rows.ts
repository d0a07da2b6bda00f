/** Values of rows that have a lease and an ETag: the ETag shows the version of the last write, unless that write had to keep an older one. */
import type { Row, Timestamp } from '../../partition/partition.ts';
import { formatEtag, type Validators } from '../../rules/conditions.ts';
import type { Lease } from '../../rules/lease.ts';

/** A row as it was read, with its ETag, and the version that the ETag shows. */
export type WithVersion<T> = Omit<T, 'etag'> & Validators & { readonly version: Timestamp };

/** JSON has no bigint: instants are stored as text. */
export type StoredLease = { id: string; state: Lease['state']; seconds?: number; until?: string };

export function encodeLease(lease: Lease | undefined): StoredLease | undefined {
  if (!lease || lease.state === 'broken' || lease.until === undefined) return lease as StoredLease | undefined;
  return { ...lease, until: lease.until.toString() };
}

export function decodeLease(lease: StoredLease | undefined): Lease | undefined {
  if (!lease || lease.until === undefined) return lease as Lease | undefined;
  return { ...lease, until: BigInt(lease.until) } as Lease;
}

export function versionFields(row: Row, etag: string | undefined): Validators & { version: Timestamp } {
  const version = etag === undefined ? row.version : BigInt(etag);
  return { etag: formatEtag(version), modified: version, version };
}
