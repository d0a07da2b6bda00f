/** Set Blob Tier. */
import { nextSnapshotTier, nextTier, REHYDRATION_SECONDS } from '../../rules/tiers.ts';
import type { Storage } from '../common/storage.ts';
import { encodeBlobRecord, readBlob } from './blob-record.ts';
import { fail } from './errors.ts';
import { recordKey } from './old-rows.ts';
import {
  checkLease,
  checkNoPendingCopy,
  checkWritable,
  checkWriteConditions,
  checkWriteInput,
  parseSentPriority,
  parseSentTier,
  type SnapshotInput,
} from './request-checks.ts';
import { recordFrom, txQueueKey } from './rows.ts';
import { checkType } from './write-target.ts';

export interface SetTierInput extends SnapshotInput {
  readonly tier: string;
  readonly priority: string | undefined;
}

/** A tier changes neither ETag nor Last-Modified, and leaves an expired lease as it is. */
export async function setBlobTier(storage: Storage, input: SetTierInput): Promise<{ readonly isPending: boolean }> {
  const { container, blob, snapshot } = input;
  const { account, rehydrationSeconds = REHYDRATION_SECONDS } = storage;
  const leaseId = checkWriteInput(input);
  const request = { tier: parseSentTier(input.tier), priority: parseSentPriority(input.priority) };
  checkWritable(storage, container);
  const { value } = await storage.partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const { id, blob: found } = await readBlob(tx, storage, container, blob, snapshot);
    checkLease(tx, found.lease, leaseId, 'write', 'blob');
    checkWriteConditions(found, input.conditions);
    checkType(found, 'block');
    checkNoPendingCopy(found);
    const next = snapshot === undefined ? nextTier : nextSnapshotTier;
    const step = next(found.tier, request, tx.now, rehydrationSeconds);
    if ('refused' in step) throw fail(step.refused);
    if (step.next !== found.tier) {
      const record = { ...recordFrom(found), tier: step.next, etag: found.version };
      tx.put(recordKey(account, id, blob, snapshot), encodeBlobRecord(record));
    }
    return { isPending: step.isPending };
  });
  return value;
}
