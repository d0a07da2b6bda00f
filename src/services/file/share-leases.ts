/** Lease Share. */
import {
  changeLease,
  type LeaseAnswer,
  type LeaseRequest,
  leaseAnswer,
  parseLeaseAction,
} from '../common/lease-actions.ts';
import type { Storage } from '../common/storage.ts';
import { encodeShareProperties, propertiesKey, txQueueKey } from './rows.ts';
import { checkShareName, readShareProperties, type ShareInput, shareLeaseError } from './share-reads.ts';

/** A lease changes neither ETag nor Last-Modified. */
export async function leaseShare(storage: Storage, input: ShareInput & LeaseRequest): Promise<LeaseAnswer> {
  const { share } = input;
  const { account } = storage;
  checkShareName(share);
  const action = parseLeaseAction(input, 'timed');
  const { value } = await storage.partition.transact(txQueueKey(account, share), async (tx) => {
    const found = await readShareProperties(tx, storage, share);
    const changed = changeLease(tx, found.lease, action, shareLeaseError);
    const { id, metadata, policies, tier, tierChanged, version: etag } = found;
    const properties = { metadata, policies, tier, tierChanged, lease: changed.lease, etag };
    tx.put(propertiesKey(account, id), encodeShareProperties(properties));
    return { answer: leaseAnswer(found, action, changed), lease: changed.lease };
  });
  storage.heldLeases?.record(account, { service: 'file', container: share }, value.lease);
  return value.answer;
}
