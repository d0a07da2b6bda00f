/** Access tiers of block blobs: which there are, what an archived blob permits, and how it comes back. Time is an argument. */
import { TICKS_PER_SECOND } from '../base/time.ts';
import type { Validators } from './conditions.ts';
import { parsePageTier } from './page-tiers.ts';

export type Tier = 'Hot' | 'Cool' | 'Cold' | 'Archive';
export type OnlineTier = Exclude<Tier, 'Archive'>;
export type RehydratePriority = 'Standard' | 'High';

/** The way out of the archive. It needs no job: every reader of the blob compares `due` with the time. */
export interface Rehydration {
  readonly to: OnlineTier;
  /** Ticks: from this instant on the blob is online. */
  readonly due: bigint;
  readonly priority: RehydratePriority;
}

/** As stored. Undefined stands for a tier that was never set: the account's default. Instants are ticks. */
export interface StoredTier {
  readonly tier: Tier;
  readonly changed: bigint;
  /** Of an archived blob only; still stored after it is over, until the next change of the tier. */
  readonly rehydration?: Rehydration | undefined;
}

/** The tier as clients see it at one instant. */
export interface TierState {
  readonly tier: Tier;
  /** Undefined: the tier is inferred from the account's default. */
  readonly changed: bigint | undefined;
  /** Only while it is pending. */
  readonly rehydration: Rehydration | undefined;
}

export interface TierRequest {
  readonly tier: Tier;
  /** Undefined: the priority stays, or is Standard. */
  readonly priority: RehydratePriority | undefined;
}

export type TierRefusal = { readonly refused: 'BlobArchived' | 'BlobBeingRehydrated' };

export interface TierStep {
  readonly next: StoredTier;
  /** The tier has not changed yet: the blob is on its way out of the archive. */
  readonly isPending: boolean;
}

export const REHYDRATION_SECONDS = 5;
/** Azure needs up to 15 hours, and with high priority about one. */
const HIGH_PRIORITY_FACTOR = 5n;

const TIERS: readonly Tier[] = ['Hot', 'Cool', 'Cold', 'Archive'];
const PRIORITIES: readonly RehydratePriority[] = ['Standard', 'High'];
const INFERRED: TierState = Object.freeze({ tier: 'Hot', changed: undefined, rehydration: undefined });

/** Undefined: no block blob has such a tier. */
export function parseTier(text: string): Tier | undefined {
  return TIERS.find((tier) => tier === text);
}

/** The tiers of page blobs, and of accounts for block blobs only. */
export function isPremiumTier(text: string): boolean {
  return parsePageTier(text) !== undefined || text === 'Premium';
}

export function parseRehydratePriority(text: string): RehydratePriority | undefined {
  return PRIORITIES.find((priority) => priority === text);
}

export function tierState(stored: StoredTier | undefined, now: bigint): TierState {
  if (stored === undefined) return INFERRED;
  const { tier, changed, rehydration } = stored;
  if (rehydration === undefined || now < rehydration.due) return { tier, changed, rehydration };
  return { tier: rehydration.to, changed: rehydration.due, rehydration: undefined };
}

/** What the conditions on the time of the tier's change are judged by: a tier that was never set has never changed. */
export function tierValidators(stored: StoredTier | undefined, now: bigint): Validators {
  return { etag: '', modified: tierState(stored, now).changed ?? 0n };
}

/** An archived blob can be neither read nor changed, until its rehydration is over. */
export function isArchived(stored: StoredTier | undefined, now: bigint): boolean {
  return stored?.tier === 'Archive' && tierState(stored, now).tier === 'Archive';
}

/** Set Blob Tier. A rehydration cannot be cancelled or redirected, only hastened. */
export function nextTier(
  stored: StoredTier | undefined,
  { tier, priority }: TierRequest,
  now: bigint,
  seconds: number,
): TierStep | TierRefusal {
  const { tier: current, changed, rehydration: pending } = tierState(stored, now);
  if (pending) {
    if (pending.to !== tier) return { refused: 'BlobBeingRehydrated' };
    if (pending.priority === 'High' || priority !== 'High') return { next: stored!, isPending: true };
    const hastened = startRehydration(pending.to, 'High', now, seconds);
    const rehydration: Rehydration = hastened.due < pending.due ? hastened : { ...pending, priority: 'High' };
    return { next: { ...stored!, rehydration }, isPending: true };
  }
  if (current === 'Archive' && tier !== 'Archive') {
    const rehydration = startRehydration(tier, priority, now, seconds);
    return { next: { tier: 'Archive', changed: now, rehydration }, isPending: true };
  }
  const isSame = changed !== undefined && current === tier;
  return { next: isSame ? stored! : { tier, changed: now }, isPending: false };
}

/** Set Blob Tier of a snapshot: out of the archive there is only a copy. */
export function nextSnapshotTier(...given: Parameters<typeof nextTier>): TierStep | TierRefusal {
  const step = nextTier(...given);
  return 'isPending' in step && step.isPending ? { refused: 'BlobArchived' } : step;
}

/** The tier of a blob that is written anew: the requested one, or that of the online blob that it replaces. */
export function tierAfterWrite(
  replaced: StoredTier | undefined,
  requested: Tier | undefined,
  now: bigint,
): StoredTier | undefined {
  if (requested !== undefined) return { tier: requested, changed: now };
  const { tier, changed } = tierState(replaced, now);
  return changed === undefined ? undefined : { tier, changed };
}

/**
 * The tier of a copy. A copy out of the archive is itself archived until it is rehydrated, and must be sent to an online tier; the source
 * stays in the archive.
 */
export function tierOfCopy(
  source: StoredTier | undefined,
  replaced: StoredTier | undefined,
  requested: Omit<TierRequest, 'tier'> & { readonly tier: Tier | undefined },
  now: bigint,
  seconds: number,
): { readonly next: StoredTier | undefined } | TierRefusal {
  const { tier } = requested;
  if (!isArchived(source, now)) return { next: tierAfterWrite(replaced, tier, now) };
  if (tierState(source, now).rehydration) return { refused: 'BlobBeingRehydrated' };
  if (tier === undefined || tier === 'Archive') return { refused: 'BlobArchived' };
  const rehydration = startRehydration(tier, requested.priority, now, seconds);
  return { next: { tier: 'Archive', changed: now, rehydration } };
}

function startRehydration(
  to: OnlineTier,
  priority: RehydratePriority = 'Standard',
  now: bigint,
  seconds: number,
): Rehydration {
  const ticks = BigInt(seconds) * TICKS_PER_SECOND;
  return { to, due: now + (priority === 'High' ? ticks / HIGH_PRIORITY_FACTOR : ticks), priority };
}
