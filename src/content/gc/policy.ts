/**
 * Which extents go, and which are copied together so that they can go. The folder is to stay below 1.3 times the live bytes
 * plus 256 MiB:
 * - Sealed extents are compacted, the sparsest first, until they take at most 1.2 times their live bytes and 48 MiB. While
 *   they take more, the sparsest of them is at least a sixth dead, so at most five bytes are copied for one that is won.
 * - An open extent wins nothing by being copied. One that is mostly dead is sealed once nobody is about to use it, so each
 *   of the few that are open hides at most 32 MiB.
 * - What an upload that still runs has written looks dead and is not: its extents are not judged until it is over.
 */
export interface ExtentUse {
  readonly name: string;
  readonly bytes: number;
  readonly open: boolean;
  /** Bytes in it may yet be named. */
  readonly pinned: boolean;
  /** Bytes that would be left of it if it were compacted; 0 only if no row names any. */
  readonly live: number;
}

export interface CollectionPlan {
  readonly remove: readonly string[];
  readonly seal: readonly string[];
  /** In the order in which it is worth most. */
  readonly compact: readonly string[];
  /** More becomes dead than is won. */
  readonly isUrgent: boolean;
}

/** Smaller in tests. */
export interface CollectionBounds {
  readonly slackBytes: number;
  /** An open extent that takes less is left alone, or a few small blobs that come and go would make a file each. */
  readonly sealBytesMin: number;
}

const RATIO_MAX = 1.2;
const BOUNDS: CollectionBounds = { slackBytes: 48 << 20, sealBytesMin: 8 << 20 };
/** Where uploads are refused for want of space, a byte that is won is worth twenty that are copied. */
const RATIO_MAX_LOW_SPACE = 1.05;

/** @param isLowOnSpace there is no space for uploads */
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
