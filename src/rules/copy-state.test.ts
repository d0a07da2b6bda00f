import { describe, expect, it } from 'vitest';
import {
  abortCopy,
  advanceCopy,
  type CopyState,
  completeCopy,
  copiedBytes,
  copyStatus,
  failCopy,
  isOverdue,
  isPending,
  judgeAbort,
  retriedSource,
  startCopy,
  unreadableSource,
} from './copy-state.ts';

const SOURCE = { id: 'one', source: 'http://a/b', bytes: 10 };
const pending = startCopy(SOURCE);
const half = advanceCopy(pending, 5);
const WEEK = 7n * 24n * 3600n * 10_000_000n;

describe('A copy', () => {
  it.each<[string, CopyState, status: string, copied: number, completed: bigint | undefined]>([
    ['that starts', pending, 'pending', 0, undefined],
    ['that goes on', half, 'pending', 5, undefined],
    ['that is complete', completeCopy(half, 9n), 'success', 10, 9n],
    ['that failed', failCopy(half, 'why', 9n), 'failed', 5, 9n],
    ['that was aborted', abortCopy(half, 9n), 'aborted', 5, 9n],
    ['of an earlier version', { ...SOURCE, completed: 9n }, 'success', 10, 9n],
  ])(
    '%s has one status, its progress, and a completion time once it has ended',
    (_, copy, status, copied, completed) => {
      expect([copyStatus(copy), copiedBytes(copy), copy.completed]).toEqual([status, copied, completed]);
      expect(isPending(copy)).toBe(status === 'pending');
      expect(copy).toMatchObject(SOURCE);
    },
  );

  it('shows a failure that is retried only until it goes on', () => {
    const failing = { ...half, description: retriedSource(0n) };
    expect(advanceCopy(failing, 6).description).toBeUndefined();
    expect(completeCopy(failing, 9n).description).toBeUndefined();
    expect(abortCopy(failing, 9n).description).toBeUndefined();
  });

  it('is aborted by its own id, while it is pending', () => {
    expect(judgeAbort(pending, 'one')).toBe('proceed');
    expect(judgeAbort(pending, 'two')).toBe('CopyIdMismatch');
    for (const ended of [undefined, completeCopy(half, 9n), failCopy(half, 'why', 9n), abortCopy(half, 9n)])
      expect(judgeAbort(ended, 'one')).toBe('NoPendingCopyOperation');
  });

  it('is given up after two weeks', () => {
    expect(isOverdue(100n, 100n + 2n * WEEK - 1n)).toBe(false);
    expect(isOverdue(100n, 100n + 2n * WEEK)).toBe(true);
  });

  it('describes a failure by status, code and a sentence', () => {
    expect(unreadableSource(404, 'BlobNotFound')).toBe('404 BlobNotFound "Copy failed when reading the source."');
  });
});

describe('No copy', () => {
  it('is pending', () => expect(isPending(undefined)).toBe(false));
});
