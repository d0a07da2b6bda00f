/** Lease Container and Lease Blob: each action runs the lease state machine (rules/lease.ts) in one transaction. */
import { type Conditions, formatEtag } from '../../rules/conditions.ts';
import type { LeaseRefusal } from '../../rules/lease.ts';
import {
  changeLease,
  type LeaseAnswer,
  type LeaseRequest,
  leaseAnswer,
  parseLeaseAction,
} from '../common/lease-actions.ts';
import type { Storage } from '../common/storage.ts';
import { encodeBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  checkBlobName,
  checkChangeable,
  checkContainerName,
  checkSingleCondition,
  checkWriteConditions,
  type LeasedResource,
  leaseError,
} from './request-checks.ts';
import {
  blobKey,
  encodeProperties,
  encodeUncommitted,
  propertiesKey,
  readContainer,
  recordFrom,
  txQueueKey,
  uncommittedKey,
} from './rows.ts';
import { currentLease, readTarget } from './write-target.ts';

interface LeaseTarget {
  readonly container: string;
  readonly conditions: Conditions;
}

/** A lease changes neither ETag nor Last-Modified. */
export async function leaseContainer(storage: Storage, input: LeaseTarget & LeaseRequest): Promise<LeaseAnswer> {
  const { container, conditions } = input;
  const { account } = storage;
  checkContainerName(container);
  checkSingleCondition(conditions);
  const action = parseLeaseAction(input, 'timed');
  const { value } = await storage.partition.transact(txQueueKey(account, container), async (tx) => {
    const found = await readContainer(tx, storage, container);
    checkWriteConditions(found, conditions);
    const changed = changeLease(tx, found.lease, action, refusedAs('container'));
    const { id, metadata, access, policies, version: etag } = found;
    tx.put(propertiesKey(account, id), encodeProperties({ metadata, access, policies, lease: changed.lease, etag }));
    return { answer: leaseAnswer(found, action, changed), lease: changed.lease };
  });
  storage.heldLeases?.record(account, { container }, value.lease);
  return value.answer;
}

export async function leaseBlob(
  storage: Storage,
  input: LeaseTarget & LeaseRequest & { blob: string },
): Promise<LeaseAnswer> {
  const { container, blob, conditions } = input;
  const { account } = storage;
  checkContainerName(container);
  checkBlobName(blob);
  checkSingleCondition(conditions);
  const action = parseLeaseAction(input, 'timed');
  const { value } = await storage.partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const target = await readTarget(tx, storage, input);
    const { containerId, blob: found, uncommitted } = target;
    if (!found && !uncommitted) throw fail('BlobNotFound');
    // For conditions, a blob that consists of uncommitted blocks only does not exist.
    checkWriteConditions(found, conditions);
    checkChangeable(found);
    const changed = changeLease(tx, currentLease(target), action, refusedAs('blob'));
    const { lease } = changed;
    if (found) {
      const record = { ...recordFrom(found), lease, etag: found.version };
      tx.put(blobKey(account, containerId, blob), encodeBlobRecord(record));
      return { answer: leaseAnswer(found, action, changed), lease };
    }
    const { created } = uncommitted!;
    tx.put(uncommittedKey(account, containerId, blob), encodeUncommitted({ ...uncommitted!, lease }));
    return { answer: leaseAnswer({ etag: formatEtag(created), modified: created }, action, changed), lease };
  });
  storage.heldLeases?.record(account, { container, blob }, value.lease);
  return value.answer;
}

const refusedAs = (what: LeasedResource) => (code: LeaseRefusal['refused']) => leaseError(code, what);
