/** The tier of a copy: requested before the type of the source is known, and judged by it. */
import type { Instant } from '../../partition/partition.ts';
import { judgeTierLength, type PageTier, parsePageTier } from '../../rules/page-tiers.ts';
import { REHYDRATION_SECONDS, type RehydratePriority, type Tier, tierOfCopy } from '../../rules/tiers.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { parseOptionalTier, parseSentPriority } from './request-checks.ts';
import type { Blob, BlobRecord } from './rows.ts';

export interface RequestedTier {
  readonly tier: Tier | undefined;
  readonly pageTier: PageTier | undefined;
  readonly priority: RehydratePriority | undefined;
}

export function parseRequestedTier(tier: string | undefined, priority: string | undefined): RequestedTier {
  const pageTier = tier === undefined ? undefined : parsePageTier(tier);
  return {
    tier: parseOptionalTier(pageTier === undefined ? tier : undefined),
    pageTier,
    priority: parseSentPriority(priority),
  };
}

/** What the record of the copy has. A page blob does not take over the tier of its source. */
export function tiersOfCopy(
  { rehydrationSeconds = REHYDRATION_SECONDS }: Storage,
  requested: RequestedTier,
  source: Pick<BlobRecord, 'append' | 'page' | 'tier'> & { readonly bytes: number },
  replaced: Blob | undefined,
  now: Instant,
): Pick<BlobRecord, 'tier' | 'page'> {
  const { tier, pageTier } = requested;
  const isBlock = !source.append && !source.page;
  if ((tier !== undefined && !isBlock) || (pageTier !== undefined && !source.page)) throw fail('InvalidBlobTier');
  if (source.page) {
    const verdict = judgeTierLength(pageTier, source.bytes);
    if (verdict !== 'proceed') throw fail(verdict);
    return { page: { sequenceNumber: source.page.sequenceNumber, tier: pageTier } };
  }
  if (!isBlock) return {};
  const decided = tierOfCopy(source.tier, replaced?.tier, requested, now, rehydrationSeconds);
  if ('refused' in decided) throw fail(decided.refused);
  return { tier: decided.next };
}
