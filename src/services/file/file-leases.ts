/** Lease File: leases of files are infinite, and end at once when they are broken. */
import {
  changeLease,
  type LeaseAnswer,
  type LeaseRequest,
  leaseAnswer,
  parseLeaseAction,
} from '../common/lease-actions.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { checkPath, type PathInput, pathQueueKey, resolveFile, updateNode } from './namespace.ts';
import { checkSharing } from './opens.ts';
import { checkNoPendingCopy } from './request-checks.ts';

/** A lease changes neither ETag nor Last-Modified. */
export async function leaseFile(storage: Storage, input: PathInput & LeaseRequest): Promise<LeaseAnswer> {
  const path = checkPath(input);
  const action = parseLeaseAction(input, 'infinite');
  const { value } = await storage.partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const target = await resolveFile(tx, storage, input.share, path);
    const { share, node } = target;
    await checkSharing(tx, target, action.action === 'acquire' ? 'lease' : 'none');
    checkNoPendingCopy(node);
    const changed = changeLease(tx, node.lease, action, (code) => fail(code));
    await updateNode(tx, share, node, { lease: changed.lease }, 'keep');
    return leaseAnswer(node, action, changed);
  });
  return value;
}
