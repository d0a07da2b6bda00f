/** Premium tiers of page blobs: each has a limit of length, and a tier that was set can only be raised. */

const GIB = 2 ** 30;

/** The greatest length of each tier, in ascending order. */
const LIMITS = {
  P4: 32 * GIB,
  P6: 64 * GIB,
  P10: 128 * GIB,
  P15: 256 * GIB,
  P20: 512 * GIB,
  P30: 1024 * GIB,
  P40: 2048 * GIB,
  P50: 4096 * GIB,
  P60: 8192 * GIB,
  P70: 16384 * GIB,
  P80: 32768 * GIB,
} as const;

export type PageTier = keyof typeof LIMITS;

/** Undefined: no page blob has such a tier. */
export function parsePageTier(text: string): PageTier | undefined {
  return Object.hasOwn(LIMITS, text) ? (text as PageTier) : undefined;
}

/** Set Blob Tier. */
export function judgePageTier(
  current: PageTier | undefined,
  length: number,
  requested: PageTier,
): 'proceed' | 'CannotChangeToLowerTier' | 'BlobTierInadequateForContentLength' {
  if (current !== undefined && LIMITS[requested] < LIMITS[current]) return 'CannotChangeToLowerTier';
  return length > LIMITS[requested] ? 'BlobTierInadequateForContentLength' : 'proceed';
}

/** A blob of this tier that is created or resized. */
export function judgeTierLength(
  tier: PageTier | undefined,
  length: number,
): 'proceed' | 'ContentLengthLargerThanTierLimit' {
  return tier !== undefined && length > LIMITS[tier] ? 'ContentLengthLargerThanTierLimit' : 'proceed';
}
