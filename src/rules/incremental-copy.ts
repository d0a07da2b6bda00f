/** Incremental Copy Blob: which snapshot may be copied onto which blob, and since when it is compared. */

/** What a page blob knows of the blob whose snapshots it has. */
export interface IncrementalState {
  /** Names the blob whose snapshots are copied. */
  readonly source: string;
  /** The snapshot of the source that was copied last. Ticks, as the next one. */
  readonly copied?: bigint | undefined;
  /** The snapshot of this blob that has its bytes. */
  readonly taken?: bigint | undefined;
  /** A copy was begun and has not ended, or has failed: the blob has some of its bytes. */
  readonly isPartial?: true | undefined;
}

export interface IncrementalSource {
  readonly source: string;
  /** Undefined: not a snapshot. */
  readonly snapshot: bigint | undefined;
  readonly isPageBlob: boolean;
}

export type IncrementalRefusal =
  | 'IncrementalCopySourceMustBeSnapshot'
  | 'InvalidSourceBlobType'
  | 'InvalidBlobType'
  | 'IncrementalCopyBlobMismatch'
  | 'IncrementalCopyOfEarlierVersionSnapshotNotAllowed';

/** Once a blob is an incremental copy, it is one of the same source, from older to newer snapshots. */
export function judgeIncrementalCopy(
  target: { readonly isPageBlob: boolean; readonly incremental: IncrementalState | undefined } | undefined,
  { source, snapshot, isPageBlob }: IncrementalSource,
): { readonly snapshot: bigint; readonly since: bigint | undefined } | { readonly refused: IncrementalRefusal } {
  if (!isPageBlob) return { refused: 'InvalidSourceBlobType' };
  if (snapshot === undefined) return { refused: 'IncrementalCopySourceMustBeSnapshot' };
  if (!target) return { snapshot, since: undefined };
  if (!target.isPageBlob) return { refused: 'InvalidBlobType' };
  const { incremental } = target;
  if (incremental?.source !== source) return { refused: 'IncrementalCopyBlobMismatch' };
  const { copied, isPartial } = incremental;
  if (copied !== undefined && snapshot < copied)
    return { refused: 'IncrementalCopyOfEarlierVersionSnapshotNotAllowed' };
  return { snapshot, since: isPartial ? undefined : copied };
}

export const beginIncremental = (state: IncrementalState | undefined, source: string): IncrementalState => ({
  ...(state ?? { source }),
  isPartial: true,
});

export const completeIncremental = (
  { source }: IncrementalState,
  snapshots: { readonly copied: bigint; readonly taken: bigint },
): IncrementalState => ({ source, ...snapshots });
