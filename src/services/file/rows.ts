/** Shares as rows, and the keys of all rows of a share. docs/adr/0002-row-schema.md has the schema, docs/adr/0033-files.md the reasons. */
import { encodeKey, type Key, keyPrefix, keysUnder, type Range } from '../../partition/keys.ts';
import type { Instant, Row, Snapshot, Timestamp } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { ShareTier } from '../../rules/file/shares.ts';
import type { Lease } from '../../rules/lease.ts';
import { decodeLease, encodeLease, type StoredLease, versionFields, type WithVersion } from '../common/etagged-rows.ts';
import type { Metadata } from '../common/names.ts';
import * as names from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { AccountId, AccountScope } from '../common/storage.ts';
import { fail } from './errors.ts';

export type { WithVersion };
export type ShareId = bigint;
/** A directory or file: the timestamp of the commit that made it, so no id is used twice. */
export type NodeId = bigint;

/** The root directory of every share. It has a node, and no entry. */
export const ROOT: NodeId = 0n;

/** The value of a share's name row. */
export interface Share {
  readonly account: AccountId;
  readonly id: ShareId;
  /** The generation of the next write: only a snapshot of the share begins another one. So every writer reads the name row. */
  readonly gen: number;
  /** The generation of the newest snapshot, which may be deleted since; 0: there was none. What is younger is in no snapshot. */
  readonly newest: number;
  /** The second of the last snapshot, since 1970, so that none is named like a deleted one; 0: there was none. */
  readonly lastSecond: number;
  /** In GiB. It is here because every write that needs space reads this row. */
  readonly quota: number;
}

export interface ShareProperties {
  /** The version that the ETag shows; undefined: the row's. */
  readonly etag?: Timestamp;
  readonly metadata: Metadata;
  readonly policies: readonly AccessPolicy[];
  readonly lease?: Lease | undefined;
  readonly tier: ShareTier;
  /** When the tier was set last; undefined: with the creation. */
  readonly tierChanged?: Timestamp | undefined;
}

export const nameKey = (account: AccountId, share: string): Key => names.nameKey(account, 'file', share);
export const nameKeyPrefix = (account: AccountId, prefix: string): Key => names.nameKeyPrefix(account, 'file', prefix);
export const propertiesKey = (account: AccountId, id: ShareId): Key => names.propertiesKey(account, 'file', id);
/** What the directory `parent` has under this folded name. */
export const entryKey = ({ account, id }: ShareKeys, parent: NodeId, folded: string): Key =>
  encodeKey([account, 'd', id, parent, folded]);
/** The common prefix of the keys of all entries of a directory whose folded names start with `prefix`. */
export const entryKeyPrefix = ({ account, id }: ShareKeys, parent: NodeId, prefix: string): Key =>
  keyPrefix([account, 'd', id, parent], prefix);
export const entriesIn = ({ account, id }: ShareKeys, ...parent: NodeId[]): Range =>
  keysUnder([account, 'd', id, ...parent]);
export const nodeKey = ({ account, id }: ShareKeys, node: NodeId): Key => encodeKey([account, 'j', id, node]);
export const nodesIn = ({ account, id }: ShareKeys): Range => keysUnder([account, 'j', id]);
/** When the entries of a directory changed last: written by `max` only. */
export const timesKey = ({ account, id }: ShareKeys, node: NodeId): Key => encodeKey([account, 'z', id, node]);
export const timesIn = ({ account, id }: ShareKeys): Range => keysUnder([account, 'z', id]);
/** A snapshot, by its second. */
export const snapshotKey = ({ account, id }: ShareKeys, second: Instant): Key => encodeKey([account, 'S', id, second]);
export const snapshotsIn = ({ account, id }: ShareKeys): Range => keysUnder([account, 'S', id]);
/** Entries, nodes and times of directories as snapshots see them: history.ts. */
export const historyIn = ({ account, id }: ShareKeys, ...row: (string | bigint)[]): Range =>
  keysUnder([account, 'h', id, ...row]);
export const historyKey = ({ account, id }: ShareKeys, row: readonly (string | bigint)[], died: number): Key =>
  encodeKey([account, 'h', id, ...row, died]);
/** A security descriptor, by its hash: the permission key of answers. */
export const permissionKey = ({ account, id }: ShareKeys, hash: string): Key => encodeKey([account, 'P', id, hash]);
export const permissionsIn = ({ account, id }: ShareKeys): Range => keysUnder([account, 'P', id]);
/** Bytes in use: written by `add` only. Their sum over all shards is what the quota limits. */
export const usageKey = ({ account, id }: ShareKeys, shard: number): Key => encodeKey([account, '$', id, shard]);
export const usageIn = ({ account, id }: ShareKeys): Range => keysUnder([account, '$', id]);
/** The copy that runs onto a file, in `running-copies.ts`. By the name of the share, every change of the file checks that the share exists. */
export const runningCopyKey = ({ account, id }: ShareKeys, node: NodeId, share: string): Key =>
  encodeKey([account, 'R', id, node, share]);
export const runningCopiesIn = (account: AccountId, ...share: ShareId[]): Range => keysUnder([account, 'R', ...share]);
/** The queue of the transactions on one share, directory or file: by folded path, since ids are not known before. */
export const txQueueKey = (account: AccountId, share: string, ...path: string[]): Key =>
  encodeKey([account, 'file', share, ...path]);

/** What the keys of a share's rows begin with. */
export type ShareKeys = Pick<Share, 'account' | 'id'>;

export const FIRST_GENERATION: Pick<Share, 'gen' | 'newest' | 'lastSecond'> = { gen: 1, newest: 0, lastSecond: 0 };

const LAST_SECOND_AT = 12;

export function encodeShare({ id, gen, newest, quota, lastSecond }: Omit<Share, 'account'>): Buffer {
  const numbers = Buffer.alloc(16);
  numbers.writeUInt32BE(gen);
  numbers.writeUInt32BE(newest, 4);
  numbers.writeUInt32BE(quota, 8);
  numbers.writeUInt32BE(lastSecond, LAST_SECOND_AT);
  return names.encodeName(id, numbers);
}

export function decodeShare(account: AccountId, row: Pick<Row, 'value'>): Share {
  const numbers = names.bytesAfterId(row);
  return {
    account,
    id: names.decodeName(row),
    gen: numbers.readUInt32BE(),
    newest: numbers.readUInt32BE(4),
    quota: numbers.readUInt32BE(8),
    // Rows of earlier formats end before it.
    lastSecond: numbers.length > LAST_SECOND_AT ? numbers.readUInt32BE(LAST_SECOND_AT) : 0,
  };
}

/** In a transaction this is the check that the share is not deleted, and that no snapshot is taken meanwhile. */
export async function readShare(at: Snapshot, scope: AccountScope, share: string): Promise<Share> {
  return checkShareAccess(scope, await at.get(nameKey(scope.account, share)));
}

export function checkShareAccess({ account, granted }: AccountScope, name: Row | undefined): Share {
  if (!name) throw fail('ShareNotFound');
  const share = decodeShare(account, name);
  if (granted?.container !== undefined && granted.container !== share.id) throw fail('ShareNotFound');
  return share;
}

export function encodeShareProperties({ lease, etag, tierChanged, ...properties }: ShareProperties): Buffer {
  return encodeValue({
    ...properties,
    lease: encodeLease(lease),
    etag: etag?.toString(),
    tierChanged: tierChanged?.toString(),
  });
}

export function decodeShareProperties(row: Row): WithVersion<ShareProperties> {
  const { lease, etag, tierChanged, ...properties } = decodeValue<StoredShareProperties>(row);
  return {
    ...properties,
    lease: decodeLease(lease),
    tierChanged: tierChanged === undefined ? undefined : BigInt(tierChanged),
    ...versionFields(row, etag),
  };
}

type StoredShareProperties = Omit<ShareProperties, 'lease' | 'etag' | 'tierChanged'> & {
  lease?: StoredLease;
  etag?: string;
  tierChanged?: string;
};
