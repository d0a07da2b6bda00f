/** The state of a copy onto a blob, from the request that starts it to its end. Time is an argument. */
import { formatRfc1123, TICKS_PER_SECOND } from '../base/time.ts';

export type CopyStatus = 'pending' | 'success' | 'failed' | 'aborted';

/** As stored with the blob; the next write of content or properties removes it. Instants are ticks. */
export interface CopyState {
  readonly id: string;
  /** The URL as it was sent, without its signature. */
  readonly source: string;
  /** The length of the source. */
  readonly bytes: number;
  /** Undefined: success. */
  readonly status?: Exclude<CopyStatus, 'success'> | undefined;
  /** Undefined: all bytes. */
  readonly copied?: number | undefined;
  /** Of the failure; of a pending copy, of a failure after which it is tried again. */
  readonly description?: string | undefined;
  /** Undefined while it is pending. */
  readonly completed?: bigint | undefined;
}

/** Azure gives up a copy after two weeks. */
const TIME_LIMIT_TICKS = 14n * 24n * 3600n * TICKS_PER_SECOND;

export const copyStatus = ({ status }: CopyState): CopyStatus => status ?? 'success';
export const copiedBytes = ({ copied, bytes }: CopyState): number => copied ?? bytes;
export const isPending = (copy: CopyState | undefined): boolean => copy?.status === 'pending';
export const isOverdue = (started: bigint, now: bigint): boolean => now >= started + TIME_LIMIT_TICKS;

export function startCopy({ id, source, bytes }: Pick<CopyState, 'id' | 'source' | 'bytes'>): CopyState {
  return { id, source, bytes, status: 'pending', copied: 0 };
}

/** A failure that was passed is not shown any more. */
export function advanceCopy({ id, source, bytes }: CopyState, copied: number): CopyState {
  return { id, source, bytes, status: 'pending', copied };
}

export function completeCopy({ id, source, bytes }: CopyState, now: bigint): CopyState {
  return { id, source, bytes, completed: now };
}

export function failCopy({ id, source, bytes, copied }: CopyState, description: string, now: bigint): CopyState {
  return { id, source, bytes, status: 'failed', copied, description, completed: now };
}

export function abortCopy({ id, source, bytes, copied }: CopyState, now: bigint): CopyState {
  return { id, source, bytes, status: 'aborted', copied, completed: now };
}

/** Abort Copy Blob: the id must be that of the copy that is pending. */
export function judgeAbort(
  copy: CopyState | undefined,
  copyId: string,
): 'proceed' | 'NoPendingCopyOperation' | 'CopyIdMismatch' {
  if (!copy || !isPending(copy)) return 'NoPendingCopyOperation';
  return copy.id === copyId ? 'proceed' : 'CopyIdMismatch';
}

/** What went wrong with a copy: status, code, and a sentence, as in x-ms-copy-status-description. */
export const unreadableSource = (status: number, code: string): string =>
  `${status} ${code} "Copy failed when reading the source."`;
export const retriedSource = (now: bigint): string =>
  `502 BadGateway "Encountered a retryable error when reading the source. Will retry. Time of failure: ${formatRfc1123(now)}"`;
export const retriedTarget = (now: bigint): string =>
  `500 InternalServerError "Encountered a retryable error. Will retry. Time of failure: ${formatRfc1123(now)}"`;
export const OVERDUE = '500 OperationCancelled "The copy exceeded the maximum allowed time."';
export const TOO_MANY_FAILURES = '500 OperationCancelled "The copy failed when reading the source."';
export const TOO_MANY_WRITE_FAILURES = '500 OperationCancelled "The copy failed when writing to the destination."';
