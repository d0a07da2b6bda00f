/** Delete Blob: a blob, its snapshots, or one of them; kept for a while if the policy says so. */
import type { Transaction } from '../../partition/partition.ts';
import type { Conditions } from '../../rules/conditions.ts';
import { type DeletePlan, type DeleteSnapshots, judgeDelete } from '../../rules/snapshots.ts';
import { deletionNow, isRetained } from '../../rules/soft-delete.ts';
import { tierValidators } from '../../rules/tiers.ts';
import type { Storage } from '../common/storage.ts';
import { parseBlobRecord, readBlob } from './blob-record.ts';
import { fail } from './errors.ts';
import { decodeDeletedBlob, deletedStateKey, readMark, snapshotKey } from './old-rows.ts';
import {
  checkLease,
  checkNoPendingCopy,
  checkSingleCondition,
  checkWriteConditions,
  checkWriteInput,
  type SnapshotInput,
} from './request-checks.ts';
import { type Blob, blobKey, readContainerId, txQueueKey } from './rows.ts';
import {
  deleteSnapshots,
  keepSnapshot,
  readLastSnapshot,
  removeSnapshot,
  settleMark,
  UnsettledMark,
} from './snapshots.ts';
import { keepRecord, readPolicy, removeDeletedState } from './soft-delete.ts';
import { updateTagIndex } from './tag-index.ts';
import { currentLease, readTarget, releaseReplaced, releaseUncommitted } from './write-target.ts';

export interface DeleteBlobInput extends SnapshotInput {
  readonly snapshots?: DeleteSnapshots;
  /** On the last change of the tier. */
  readonly tierConditions?: Conditions | undefined;
  /** A deleted snapshot is removed before its retention ends. */
  readonly permanent?: boolean | undefined;
}

export interface DeleteAnswer {
  readonly isPermanent: boolean;
}

interface Deleted extends DeleteAnswer {
  readonly needsSweep: boolean;
}

export async function deleteBlob(storage: Storage, input: DeleteBlobInput): Promise<DeleteAnswer> {
  const { container, blob, snapshot } = input;
  const { account, partition, sweeper } = storage;
  const leaseId = checkWriteInput(input);
  if (snapshot !== undefined && input.snapshots !== undefined) {
    const Reason = 'x-ms-delete-snapshots is for base blobs.';
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'snapshot', Reason });
  }
  if (input.tierConditions) checkSingleCondition(input.tierConditions);
  if (input.permanent && snapshot === undefined) throw fail('BlobOperationNotSupported');
  const remove = snapshot === undefined ? deleteBase : input.permanent ? deletePermanently : deleteSnapshot;
  for (;;) {
    try {
      const queueKey = txQueueKey(account, container, blob);
      const { value } = await partition.transact(queueKey, (tx) => remove(tx, storage, input, leaseId));
      if (snapshot === undefined && input.snapshots !== 'only') storage.heldLeases?.end(account, { container, blob });
      if (value.needsSweep) sweeper.wake();
      return { isPermanent: value.isPermanent };
    } catch (error) {
      if (!(error instanceof UnsettledMark)) throw error;
      await settleMark(storage, error, blob);
    }
  }
}

/** A blob that consists of uncommitted blocks only can be deleted, though it cannot be read. */
async function deleteBase(
  tx: Transaction,
  storage: Storage,
  input: DeleteBlobInput,
  leaseId: string | undefined,
): Promise<Deleted> {
  const { account } = storage;
  const target = await readTarget(tx, storage, input);
  const { containerId: id, name, blob, retention } = target;
  if (!blob && !target.uncommitted) throw fail('BlobNotFound');
  checkLease(tx, currentLease(target), leaseId, 'write', 'blob');
  checkWriteConditions(blob, input.conditions, leaseId);
  checkNoPendingCopy(blob);
  checkTierConditions(tx, blob, input);
  if (!blob) {
    checkPlan(judgeDelete(input.snapshots, false));
    return { isPermanent: true, needsSweep: releaseUncommitted(tx, storage, target) };
  }
  const { last, mark } = await readLastSnapshot(tx, account, id, name);
  const plan = checkPlan(judgeDelete(input.snapshots, last !== undefined));
  if (last !== undefined) deleteSnapshots(tx, account, id, name, { last, mark, kept: retention });
  const isPermanent = retention === undefined;
  if (!plan.base) return { isPermanent, needsSweep: plan.snapshots };
  tx.remove(blobKey(account, id, name));
  await updateTagIndex(tx, account, target, blob.tags);
  if (retention) await keepRecord(tx, account, { ...target, blob }, retention, 'deleted blob');
  const release = retention ? releaseUncommitted : releaseReplaced;
  return { isPermanent, needsSweep: (await release(tx, storage, target)) || plan.snapshots };
}

async function deleteSnapshot(
  tx: Transaction,
  storage: Storage,
  input: DeleteBlobInput,
  leaseId: string | undefined,
): Promise<Deleted> {
  const { container, blob: name, snapshot } = input;
  const { account, content } = storage;
  const { id, blob } = await readBlob(tx, storage, container, name, snapshot);
  checkDeletion(tx, blob, input, leaseId);
  const row = (await tx.get(snapshotKey(account, id, name, snapshot!)))!;
  const retention = deletionNow(await readPolicy(tx, account), tx.now);
  if (retention) keepSnapshot(tx, account, id, name, row, retention);
  else await removeSnapshot(tx, content, account, id, name, row);
  return { isPermanent: !retention, needsSweep: !retention && blob.contentId !== undefined };
}

/** Only of a snapshot that is deleted already, and only if the policy allows it. */
async function deletePermanently(
  tx: Transaction,
  storage: Storage,
  input: DeleteBlobInput,
  leaseId: string | undefined,
): Promise<Deleted> {
  const { container, blob: name, snapshot } = input;
  const { account, content } = storage;
  const id = await readContainerId(tx, storage, container);
  const { kept } = await readMark(tx, account, id, name);
  if (kept && snapshot! <= kept.upTo) throw new UnsettledMark(id);
  const row = await tx.get(deletedStateKey(account, id, name, snapshot!));
  const deleted = row && decodeDeletedBlob(row);
  if (!deleted || !isRetained(deleted, tx.now)) {
    await readBlob(tx, storage, container, name, snapshot);
    throw fail('BlobOperationNotSupported');
  }
  checkDeletion(tx, parseBlobRecord(deleted.record, row), input, leaseId);
  if (!(await readPolicy(tx, account))?.allowsPermanentDelete) throw fail('BlobOperationNotSupported');
  await removeDeletedState(tx, content, account, id, name, row);
  return { isPermanent: true, needsSweep: true };
}

function checkPlan(plan: ReturnType<typeof judgeDelete>): DeletePlan {
  if (typeof plan === 'string') throw fail(plan);
  return plan;
}

/** Of a snapshot, which has no lease. */
function checkDeletion(tx: Transaction, snapshot: Blob, input: DeleteBlobInput, leaseId: string | undefined): void {
  checkLease(tx, undefined, leaseId, 'write', 'blob');
  checkWriteConditions(snapshot, input.conditions, leaseId);
  checkTierConditions(tx, snapshot, input);
}

function checkTierConditions({ now }: Transaction, blob: Blob | undefined, { tierConditions }: DeleteBlobInput): void {
  if (tierConditions) checkWriteConditions(tierValidators(blob?.tier, now), tierConditions);
}
