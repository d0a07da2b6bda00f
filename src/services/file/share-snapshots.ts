/**
 * Snapshot Share, and the deletion of snapshots. A snapshot is a row, the held generation and the share's name row, whatever the share has: every
 * writer checks the name row, so a snapshot is one state of the whole share.
 */
import { deletionKey } from '../../content/rows.ts';
import type { Instant, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { formatEtag, type Validators } from '../../rules/conditions.ts';
import { nextSnapshotSecond, SNAPSHOTS_MAX, secondsSince1970 } from '../../rules/file/share-snapshots.ts';
import { isLocked } from '../../rules/lease.ts';
import { encodeDeletion } from '../common/deletions.ts';
import { parseLeaseId } from '../common/lease-actions.ts';
import { parseMetadata, type SentMetadata } from '../common/names.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { GENERATIONS_MAX, holdShareGeneration } from './generations.ts';
import { encodeShare, nameKey, readShare, type ShareKeys, snapshotKey, snapshotsIn, txQueueKey } from './rows.ts';
import {
  checkShareLease,
  checkShareName,
  type LeasedShareInput,
  readShareProperties,
  type ShareInput,
} from './share-reads.ts';
import { decodeSnapshot, encodeSnapshot, readSnapshot, type ShareSnapshot } from './snapshot-rows.ts';

/** Unless metadata is sent, the snapshot has that of the share, and its ETag. */
export async function snapshotShare(
  storage: Storage,
  input: ShareInput & { readonly metadata: SentMetadata },
): Promise<Validators & { readonly snapshot: Instant }> {
  const { share } = input;
  checkShareName(share);
  const sent = parseMetadata(input.metadata);
  const { account } = storage;
  const { value } = await storage.partition.transact(txQueueKey(account, share), async (tx) => {
    const found = await readShareProperties(tx, storage, share);
    const { gen, quota, tier, tierChanged } = found;
    const taken = await tx.scan(snapshotsIn(found), { limit: SNAPSHOTS_MAX });
    if (taken.length >= SNAPSHOTS_MAX || gen >= GENERATIONS_MAX) throw fail('ShareSnapshotCountExceeded');
    const second = nextSnapshotSecond(tx.now, found.lastSecond);
    const hasOwn = input.metadata.length > 0;
    const version: Timestamp = hasOwn ? tx.timestamp : found.version;
    const metadata = hasOwn ? sent : found.metadata;
    holdShareGeneration(tx, found, gen);
    tx.put(snapshotKey(found, second), encodeSnapshot({ gen, quota, tier, tierChanged, metadata, version }));
    const next = { gen: gen + 1, newest: gen, lastSecond: secondsSince1970(second) };
    tx.put(nameKey(account, share), encodeShare({ ...found, ...next }));
    return { etag: formatEtag(version), modified: version, snapshot: second };
  });
  return value;
}

/** What only this snapshot shows is removed by the sweeper, once the reads that may have found it have ended. */
export async function deleteShareSnapshot(
  storage: Storage,
  input: LeasedShareInput & { readonly snapshot: Instant },
): Promise<void> {
  const { share, snapshot: second } = input;
  checkShareName(share);
  const leaseId = parseLeaseId(input.leaseId);
  const { account } = storage;
  await storage.partition.transact(txQueueKey(account, share), async (tx) => {
    const found = await readShare(tx, storage, share);
    const { gen, lease } = await readSnapshot(tx, found, second);
    checkShareLease(tx, lease, leaseId, 'write');
    tx.remove(snapshotKey(found, second));
    const id = found.id.toString();
    const deletion = { kind: 'shareSnapshot', share: id, gen } as const;
    tx.put(deletionKey(account, tx.timestamp, `${id} ${gen}`), encodeDeletion(deletion));
  });
  storage.heldLeases?.end(account, { service: 'file', container: share, blob: second.toString() });
  storage.sweeper.wake();
}

/** The header x-ms-delete-snapshots of Delete Share. */
export type DeleteShareSnapshots = 'include' | 'include-leased' | undefined;

/** Part of Delete Share. A snapshot that is taken meanwhile writes the name row, which the caller removes. */
export async function checkSnapshotsDeletable(
  tx: Transaction,
  share: ShareKeys,
  asked: DeleteShareSnapshots,
): Promise<void> {
  if (asked === 'include-leased') return;
  const rows = await tx.scan(snapshotsIn(share), { limit: asked === undefined ? 1 : SNAPSHOTS_MAX });
  if (rows.length === 0) return;
  if (asked === undefined) throw fail('ShareHasSnapshots');
  if (rows.some((row) => isLocked(decodeSnapshot(row).lease, tx.now))) throw fail('DeleteShareWhenSnapshotLeased');
}

/** The snapshots of a share in the order of time, for SMB's previous versions: their seconds name them. */
export async function listShareSnapshots(at: Snapshot, share: ShareKeys): Promise<ShareSnapshot[]> {
  return (await at.scan(snapshotsIn(share), { limit: SNAPSHOTS_MAX })).map(decodeSnapshot);
}
