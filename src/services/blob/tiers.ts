/** Set Blob Tier. */
import type { Transaction } from '../../partition/partition.ts';
import { judgePageTier, type PageTier } from '../../rules/page-tiers.ts';
import { nextSnapshotTier, nextTier, REHYDRATION_SECONDS, type TierRequest } from '../../rules/tiers.ts';
import type { Storage } from '../common/storage.ts';
import { encodeBlobRecord, readBlob } from './blob-record.ts';
import { parseRequestedTier } from './copy-tiers.ts';
import { fail } from './errors.ts';
import { recordKey } from './old-rows.ts';
import {
  checkChangeable,
  checkLease,
  checkWritable,
  checkWriteConditions,
  checkWriteInput,
  type SnapshotInput,
} from './request-checks.ts';
import { type Blob, type PageState, recordFrom, txQueueKey } from './rows.ts';
import { checkType } from './write-target.ts';

export interface SetTierInput extends SnapshotInput {
  readonly tier: string;
  readonly priority: string | undefined;
}

/** A tier changes neither ETag nor Last-Modified, and leaves an expired lease as it is. */
export async function setBlobTier(storage: Storage, input: SetTierInput): Promise<{ readonly isPending: boolean }> {
  const { container, blob, snapshot } = input;
  const { account } = storage;
  const leaseId = checkWriteInput(input);
  const requested = parseRequestedTier(input.tier, input.priority);
  checkWritable(storage, container);
  const { value } = await storage.partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const { id, blob: found } = await readBlob(tx, storage, container, blob, snapshot);
    checkLease(tx, found.lease, leaseId, 'write', 'blob');
    checkWriteConditions(found, input.conditions);
    checkChangeable(found);
    const { next, isPending } = requested.tier
      ? changeTier(tx, storage, found, { ...requested, tier: requested.tier })
      : { next: { page: raiseTier(found, requested.pageTier!) }, isPending: false };
    if (next) {
      const record = { ...recordFrom(found), ...next, etag: found.version };
      tx.put(recordKey(account, id, blob, snapshot), encodeBlobRecord(record));
    }
    return { isPending };
  });
  return value;
}

/** @returns `next` undefined: it has the tier */
function changeTier(
  { now }: Transaction,
  { rehydrationSeconds = REHYDRATION_SECONDS }: Storage,
  found: Blob,
  request: TierRequest,
) {
  checkType(found, 'block');
  const decide = found.snapshot === undefined ? nextTier : nextSnapshotTier;
  const step = decide(found.tier, request, now, rehydrationSeconds);
  if ('refused' in step) throw fail(step.refused);
  const { next: tier, isPending } = step;
  return { next: tier === found.tier ? undefined : { tier }, isPending };
}

function raiseTier({ page, length }: Blob, tier: PageTier): PageState {
  if (!page) throw fail('InvalidBlobTier');
  const verdict = judgePageTier(page.tier, length, tier);
  if (verdict !== 'proceed') throw fail(verdict);
  return { ...page, tier };
}
