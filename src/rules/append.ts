/** Append blobs: whether bytes can be appended. */

export const APPENDS_MAX = 50_000;

export interface AppendTarget {
  readonly length: number;
  readonly blocks: number;
  readonly isSealed?: boolean | undefined;
}

export interface AppendConditions {
  /** The length that the blob must have before. */
  readonly position?: number | undefined;
  /** The greatest length that it may have afterwards. */
  readonly lengthMax?: number | undefined;
}

export type AppendRefusal =
  | 'BlobIsSealed'
  | 'AppendPositionConditionNotMet'
  | 'MaxBlobSizeConditionNotMet'
  | 'BlockCountExceedsLimit';

export function judgeAppend(
  { length, blocks, isSealed }: AppendTarget,
  appended: number,
  { position, lengthMax }: AppendConditions,
): 'proceed' | AppendRefusal {
  if (isSealed) return 'BlobIsSealed';
  if (position !== undefined && position !== length) return 'AppendPositionConditionNotMet';
  if (lengthMax !== undefined && length + appended > lengthMax) return 'MaxBlobSizeConditionNotMet';
  return blocks >= APPENDS_MAX ? 'BlockCountExceedsLimit' : 'proceed';
}

/** A blob that is sealed can be sealed again. */
export function judgeSeal(
  { length }: Pick<AppendTarget, 'length'>,
  { position }: Pick<AppendConditions, 'position'>,
): 'proceed' | 'AppendPositionConditionNotMet' {
  return position !== undefined && position !== length ? 'AppendPositionConditionNotMet' : 'proceed';
}
