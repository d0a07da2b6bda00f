/** Page blobs: ranges of whole pages, sequence numbers and their conditions. */
import type { RequestedRange } from './byte-ranges.ts';

export const PAGE_BYTES = 512;
export const PAGE_BLOB_BYTES_MAX = 8 * 2 ** 40;
export const PUT_PAGE_BYTES_MAX = 4 << 20;
export const SEQUENCE_NUMBER_MAX = 2n ** 63n - 1n;

export interface SequenceConditions {
  /** Less than or equal, less than, equal. */
  readonly le?: bigint | undefined;
  readonly lt?: bigint | undefined;
  readonly eq?: bigint | undefined;
}

export function judgeSequence(
  number: bigint,
  { le, lt, eq }: SequenceConditions,
): 'proceed' | 'SequenceNumberConditionNotMet' {
  const isMet = (le === undefined || number <= le) && (lt === undefined || number < lt);
  return isMet && (eq === undefined || number === eq) ? 'proceed' : 'SequenceNumberConditionNotMet';
}

export type SequenceAction =
  | { readonly action: 'max' | 'update'; readonly number: bigint }
  | { readonly action: 'increment' };

export function nextSequence(number: bigint, change: SequenceAction): bigint | 'SequenceNumberIncrementTooLarge' {
  if (change.action === 'update') return change.number;
  if (change.action === 'max') return number > change.number ? number : change.number;
  return number >= SEQUENCE_NUMBER_MAX ? 'SequenceNumberIncrementTooLarge' : number + 1n;
}

export const isPageBlobLength = (length: number): boolean => length % PAGE_BYTES === 0 && length <= PAGE_BLOB_BYTES_MAX;

/** From `from` to before `to`, in whole pages. Undefined: no range of pages. */
export function pageRange(
  range: RequestedRange | undefined,
): { readonly from: number; readonly to: number } | undefined {
  if (range?.to === undefined) return undefined;
  const { from } = range;
  const to = range.to + 1;
  return from % PAGE_BYTES === 0 && to % PAGE_BYTES === 0 ? { from, to } : undefined;
}

/** The whole pages that have bytes of the range. */
export function pagesAround(from: number, to: number): { readonly from: number; readonly to: number } {
  return { from: from - (from % PAGE_BYTES), to: Math.ceil(to / PAGE_BYTES) * PAGE_BYTES };
}
