/** Lease Share. */
import {
  changeLease,
  type LeaseAnswer,
  type LeaseRequest,
  leaseAnswer,
  parseLeaseAction,
} from '../common/lease-actions.ts';
import type { Storage } from '../common/storage.ts';
import { encodeShareProperties, propertiesKey, readShare, snapshotKey, txQueueKey } from './rows.ts';
import { checkShareName, readShareProperties, type ShareInput, shareLeaseError } from './share-reads.ts';
import { encodeSnapshot, readSnapshot, type ShareSnapshotInput } from './snapshot-rows.ts';

/** Of the share or of a snapshot, which are leased apart. A lease changes neither ETag nor Last-Modified. */
export async function leaseShare(
  storage: Storage,
  input: ShareInput & ShareSnapshotInput & LeaseRequest,
): Promise<LeaseAnswer> {
  const { share, snapshot: second } = input;
  const { account } = storage;
  checkShareName(share);
  const action = parseLeaseAction(input, 'timed');
  const { value } = await storage.partition.transact(txQueueKey(account, share), async (tx) => {
    if (second !== undefined) {
      const keys = await readShare(tx, storage, share);
      const snapshot = await readSnapshot(tx, keys, second);
      const changed = changeLease(tx, snapshot.lease, action, shareLeaseError);
      tx.put(snapshotKey(keys, second), encodeSnapshot({ ...snapshot, lease: changed.lease }));
      return { answer: leaseAnswer(snapshot, action, changed), lease: changed.lease };
    }
    const found = await readShareProperties(tx, storage, share);
    const changed = changeLease(tx, found.lease, action, shareLeaseError);
    const { id, metadata, policies, tier, tierChanged, version: etag } = found;
    const properties = { metadata, policies, tier, tierChanged, lease: changed.lease, etag };
    tx.put(propertiesKey(account, id), encodeShareProperties(properties));
    return { answer: leaseAnswer(found, action, changed), lease: changed.lease };
  });
  const leased = { service: 'file', container: share, blob: second?.toString() } as const;
  storage.heldLeases?.record(account, leased, value.lease);
  return value.answer;
}
