/** Retention of deleted blobs: when it ends, and how much of it is left. Instants are ticks. */
import { TICKS_PER_SECOND } from '../base/time.ts';

/** DeleteRetentionPolicy of the service. */
export interface DeleteRetention {
  /** Undefined: what is deleted is gone at once. */
  readonly days?: number | undefined;
  /** Whether deleted snapshots can be removed before their retention ends. */
  readonly allowsPermanentDelete: boolean;
}

/** A state that is deleted, and can be restored until its retention ends. */
export interface Deletion {
  readonly deleted: bigint;
  readonly until: bigint;
}

const TICKS_PER_DAY = 24n * 3600n * TICKS_PER_SECOND;

/** Of what is deleted now. Undefined: it is not kept. */
export function deletionNow(policy: DeleteRetention | undefined, now: bigint): Deletion | undefined {
  if (policy?.days === undefined) return undefined;
  return { deleted: now, until: now + BigInt(policy.days) * TICKS_PER_DAY };
}

export function isRetained({ until }: Pick<Deletion, 'until'>, now: bigint): boolean {
  return now < until;
}

/** Whole days, as recorded: of two days, one is left at once. */
export function remainingDays({ until }: Pick<Deletion, 'until'>, now: bigint): number {
  return Number((until - now) / TICKS_PER_DAY);
}
