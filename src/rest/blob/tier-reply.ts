/** Tier properties in headers and XML. */
import { formatRfc1123 } from '../../base/time.ts';
import type { TierState } from '../../rules/tiers.ts';
import { type Blob, blobTypeOf } from '../../services/blob/rows.ts';

/** Append blobs have no tiers, and page blobs only one that was set. */
export function tierHeaders(blob: Blob, state: TierState): Record<string, string | undefined> {
  if (blobTypeOf(blob) !== 'block') return { 'x-ms-access-tier': blob.page?.tier };
  const { tier, changed, rehydration } = state;
  return {
    'x-ms-access-tier': tier,
    'x-ms-access-tier-inferred': changed === undefined ? 'true' : undefined,
    'x-ms-archive-status': rehydration && archiveStatus(rehydration.to),
    'x-ms-rehydrate-priority': rehydration?.priority,
    'x-ms-access-tier-change-time': changed === undefined ? undefined : formatRfc1123(changed),
  };
}

export function pageTierElement({ page }: Blob): string {
  return page?.tier === undefined ? '' : `<AccessTier>${page.tier}</AccessTier>`;
}

export function tierElements({ tier, changed, rehydration }: TierState): string {
  if (changed === undefined) return `<AccessTier>${tier}</AccessTier><AccessTierInferred>true</AccessTierInferred>`;
  const { to, priority } = rehydration ?? {};
  return (
    `<AccessTier>${tier}</AccessTier>` +
    (to === undefined ? '' : `<ArchiveStatus>${archiveStatus(to)}</ArchiveStatus>`) +
    (priority === undefined ? '' : `<RehydratePriority>${priority}</RehydratePriority>`) +
    `<AccessTierChangeTime>${formatRfc1123(changed)}</AccessTierChangeTime>`
  );
}

function archiveStatus(to: string): string {
  return `rehydrate-pending-to-${to.toLowerCase()}`;
}
