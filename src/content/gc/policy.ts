/**
 * Garbage collection policy: which extents to remove, seal and compact, by their share of live bytes. The folder shall stay below
 * 1.3 times the live bytes plus 256 MiB:
 * - Sealed extents are compacted, the one with the lowest share first, until all of them take at most 1.13 times their live
 *   bytes plus 48 MiB. While they take more, at least a ninth of the lowest one is dead, so at most eight bytes are copied for each
 *   byte that is reclaimed. A live chunk of a content that changes in place may have an eighth that is visible nowhere
 *   (isMostlyVisible): 1.13 times 8/7 is less than 1.3.
 * - A compaction of an open extent reclaims nothing. An open extent that is mostly dead is sealed once no upload pins it, so each
 *   of the few open extents hides at most 32 MiB.
 * - The bytes of a running upload look dead and are not: its extents are left out until the upload is released.
 */
export interface ExtentUse {
  readonly name: string;
  readonly bytes: number;
  readonly open: boolean;
  /** A commit may still name bytes in this extent. */
  readonly pinned: boolean;
  /** Bytes that the chunks would take after a compaction; 0 only if no row names a chunk in this extent. */
  readonly live: number;
}

export interface CollectionPlan {
  readonly remove: readonly string[];
  readonly seal: readonly string[];
  /** The most worthwhile first. */
  readonly compact: readonly string[];
  /** Bytes die faster than they are reclaimed. */
  readonly isUrgent: boolean;
}

/** Smaller in tests. */
export interface CollectionBounds {
  readonly slackBytes: number;
  /** A smaller open extent is not sealed. Otherwise a few small blobs that come and go would make a file each. */
  readonly sealBytesMin: number;
}

const RATIO_MAX = 1.13;
const BOUNDS: CollectionBounds = { slackBytes: 48 << 20, sealBytesMin: 8 << 20 };
/** Where uploads are refused for lack of space, one reclaimed byte is worth twenty copied ones. */
const RATIO_MAX_LOW_SPACE = 1.05;

/** @param isLowOnSpace uploads are refused for lack of space */
export function planCollection(
  extents: readonly ExtentUse[],
  { slackBytes: slackMax, sealBytesMin }: CollectionBounds = BOUNDS,
  isLowOnSpace = false,
): CollectionPlan {
  const slackBytes = isLowOnSpace ? Math.min(sealBytesMin, slackMax) : slackMax;
  const ratio = isLowOnSpace ? RATIO_MAX_LOW_SPACE : RATIO_MAX;
  const idle = extents.filter(({ pinned }) => !pinned);
  const sealed = idle.filter(({ open }) => !open);
  const used = sealed.filter(({ live }) => live > 0).sort((a, b) => a.live / a.bytes - b.live / b.bytes);
  let excess = -slackBytes;
  for (const { bytes, live } of used) excess += bytes - ratio * live;
  const isUrgent = excess > slackBytes / 2;
  const compact: string[] = [];
  for (const { name, bytes, live } of used) {
    if (excess <= 0) break;
    compact.push(name);
    excess -= bytes - live;
  }
  return {
    remove: sealed.filter(({ live }) => live === 0).map(({ name }) => name),
    seal: idle
      .filter(
        ({ open, bytes, live }) =>
          open && bytes >= sealBytesMin && bytes - live > (isLowOnSpace ? sealBytesMin : bytes / 2),
      )
      .map(({ name }) => name),
    compact,
    isUrgent,
  };
}
