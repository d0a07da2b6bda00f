/** Snapshots of a share as rows: one for each, whatever the share holds. docs/adr/0036-share-snapshots.md */
import { decodeKey } from '../../partition/keys.ts';
import type { Instant, Row, Snapshot, Timestamp } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { parseSnapshotSecond } from '../../rules/file/share-snapshots.ts';
import { decodeLease, encodeLease, type StoredLease, type WithVersion } from '../common/etagged-rows.ts';
import { fail } from './errors.ts';
import { type Share, type ShareKeys, type ShareProperties, snapshotKey } from './rows.ts';

/** Of a read: of the share as it is, or of a snapshot. */
export interface ShareSnapshotInput {
  /** The second that names the snapshot; undefined: the current state. */
  readonly snapshot?: Instant | undefined;
}

export interface SnapshotRecord
  extends Pick<ShareProperties, 'metadata' | 'tier' | 'lease'>,
    Pick<Share, 'gen' | 'quota'> {
  /** The version that the ETag shows: that of the share, or its own if it was given metadata. */
  readonly version: Timestamp;
  readonly tierChanged: Timestamp;
}

export type ShareSnapshot = WithVersion<SnapshotRecord> & {
  readonly second: Instant;
};

export function encodeSnapshot({ gen, metadata, quota, tier, version, tierChanged, lease }: SnapshotRecord): Buffer {
  return encodeValue({
    ...{ gen, metadata, quota, tier },
    version: version.toString(),
    tierChanged: tierChanged.toString(),
    lease: encodeLease(lease),
  });
}

export function decodeSnapshot(row: Row): ShareSnapshot {
  const { version: text, tierChanged, lease, ...record } = decodeValue<StoredSnapshot>(row);
  const version = BigInt(text);
  return {
    ...record,
    second: decodeKey(row.key).at(-1) as Instant,
    lease: decodeLease(lease),
    tierChanged: BigInt(tierChanged),
    version,
    etag: formatEtag(version),
    modified: version,
  };
}

type StoredSnapshot = Omit<SnapshotRecord, 'version' | 'tierChanged' | 'lease'> & {
  version: string;
  tierChanged: string;
  lease?: StoredLease;
};

/** Of a parameter of the request, or of the URL of a copy's source. */
export function parseShareSnapshot(text: string, parameter = 'sharesnapshot'): Instant {
  const second = parseSnapshotSecond(text);
  if (second === undefined)
    throw fail('InvalidQueryParameterValue', { QueryParameterName: parameter, QueryParameterValue: text });
  return second;
}

/** As recorded: a snapshot that does not exist is no share. */
export async function readSnapshot(at: Snapshot, share: ShareKeys, second: Instant): Promise<ShareSnapshot> {
  return decodeSnapshot(await readSnapshotRow(at, share, second));
}

/** What every read of a file or directory needs of its snapshot. */
export async function readSnapshotGeneration(at: Snapshot, share: ShareKeys, second: Instant): Promise<number> {
  return decodeValue<StoredSnapshot>(await readSnapshotRow(at, share, second)).gen;
}

async function readSnapshotRow(at: Snapshot, share: ShareKeys, second: Instant): Promise<Row> {
  const row = await at.get(snapshotKey(share, second));
  if (!row) throw fail('ShareNotFound');
  return row;
}
