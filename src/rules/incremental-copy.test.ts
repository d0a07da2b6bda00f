import { describe, expect, it } from 'vitest';
import { beginIncremental, completeIncremental, judgeIncrementalCopy } from './incremental-copy.ts';

const from = (snapshot: bigint | undefined, source = 'a', isPageBlob = true) => ({ source, snapshot, isPageBlob });
const onto = (incremental?: Parameters<typeof completeIncremental>[0], isPageBlob = true) => ({
  incremental,
  isPageBlob,
});

describe('An incremental copy', () => {
  it('begins with any snapshot of a page blob, onto a blob that does not exist', () => {
    expect(judgeIncrementalCopy(undefined, from(5n))).toEqual({ snapshot: 5n, since: undefined });
    expect(judgeIncrementalCopy(undefined, from(undefined))).toEqual({
      refused: 'IncrementalCopySourceMustBeSnapshot',
    });
    expect(judgeIncrementalCopy(undefined, from(5n, 'a', false))).toEqual({ refused: 'InvalidSourceBlobType' });
  });

  it('goes on with the same or a later snapshot of the same source, and compares with the last', () => {
    const state = completeIncremental({ source: 'a' }, { copied: 5n, taken: 9n });
    expect(judgeIncrementalCopy(onto(state), from(6n))).toEqual({ snapshot: 6n, since: 5n });
    expect(judgeIncrementalCopy(onto(state), from(5n))).toEqual({ snapshot: 5n, since: 5n });
    const earlier = 'IncrementalCopyOfEarlierVersionSnapshotNotAllowed';
    expect(judgeIncrementalCopy(onto(state), from(4n))).toEqual({ refused: earlier });
    expect(judgeIncrementalCopy(onto(state), from(6n, 'b'))).toEqual({ refused: 'IncrementalCopyBlobMismatch' });
  });

  it('copies everything if the one before has not ended well, and still nothing earlier', () => {
    const state = completeIncremental({ source: 'a' }, { copied: 5n, taken: 9n });
    const partial = beginIncremental(state, 'a');
    expect(partial).toEqual({ source: 'a', copied: 5n, taken: 9n, isPartial: true });
    expect(judgeIncrementalCopy(onto(partial), from(6n))).toEqual({ snapshot: 6n, since: undefined });
    expect('refused' in judgeIncrementalCopy(onto(partial), from(4n))).toBe(true);
    expect(completeIncremental(partial, { copied: 6n, taken: 10n })).toEqual({ source: 'a', copied: 6n, taken: 10n });
    const first = beginIncremental(undefined, 'a');
    expect(judgeIncrementalCopy(onto(first), from(1n))).toEqual({ snapshot: 1n, since: undefined });
  });

  it('is refused onto a blob that is none', () => {
    expect(judgeIncrementalCopy(onto(undefined), from(5n))).toEqual({ refused: 'IncrementalCopyBlobMismatch' });
    expect(judgeIncrementalCopy(onto(undefined, false), from(5n))).toEqual({ refused: 'InvalidBlobType' });
  });
});
