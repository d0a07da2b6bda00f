/** Settings of a share: its quota and its access tier. */

export type ShareTier = 'TransactionOptimized' | 'Hot' | 'Cool' | 'Premium';

/** In GiB: that of an account without large file shares. */
export const DEFAULT_QUOTA = 5_120;
/** In GiB: that of an account with large file shares. */
const QUOTA_MAX = 102_400;
export const DEFAULT_TIER: ShareTier = 'TransactionOptimized';
/** Those of a general-purpose account: Premium needs an account of its own kind. */
const TIERS: readonly ShareTier[] = ['TransactionOptimized', 'Hot', 'Cool'];

const BYTES_PER_GIB = 2n ** 30n;

export function isQuota(gibibytes: number): boolean {
  return Number.isInteger(gibibytes) && gibibytes >= 1 && gibibytes <= QUOTA_MAX;
}

/** How many more bytes a share with this quota may have than these; negative: these are too many. */
export function bytesLeft(gibibytes: number, bytes: bigint): bigint {
  return BigInt(gibibytes) * BYTES_PER_GIB - bytes;
}

/** Undefined: there is no such tier. */
export function parseShareTier(text: string): ShareTier | undefined {
  return TIERS.find((tier) => tier.toLowerCase() === text.toLowerCase());
}
