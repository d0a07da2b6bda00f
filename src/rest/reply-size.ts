/** Estimated sizes of replies that are produced whole: this many bytes of the budget are reserved before the operation runs. */
const KIB = 1 << 10;
const RESULTS_MAX = 5_000;
/** Metadata of one container, queue or blob. */
const METADATA_BYTES_MAX = 8 * KIB;
const MESSAGE_BYTES_MAX = 64 * KIB;

/** Few pages are larger. */
export const PAGE_BYTES = 2_048 * KIB;
const METADATA_PAGE_BYTES = 16_384 * KIB;

interface Listing {
  readonly resultsMax: number | undefined;
  readonly include: readonly string[];
}

export function estimateListBytes({ resultsMax = RESULTS_MAX, include }: Listing): number {
  const most = include.includes('metadata') ? METADATA_PAGE_BYTES : PAGE_BYTES;
  return Math.min(most, resultsMax * METADATA_BYTES_MAX);
}

export function estimateMessagesBytes({ messageCount = 1 }: { readonly messageCount: number | undefined }): number {
  return messageCount * MESSAGE_BYTES_MAX;
}
