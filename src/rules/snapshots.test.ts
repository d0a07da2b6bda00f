import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatIso7 } from '../base/time.ts';
import { type DeleteSnapshots, judgeDelete, parseSnapshotTime } from './snapshots.ts';

describe('The name of a snapshot', () => {
  it('is its moment, to a tenth of a microsecond', () => {
    const ticks = fc.bigInt({ min: 0n, max: 3_155_378_975_999_999_999n });
    fc.assert(fc.property(ticks, (moment) => parseSnapshotTime(formatIso7(moment)) === moment));
    expect(parseSnapshotTime('2022-05-23T20:10:08.4782043Z')).toBe(637889334084782043n);
    expect(parseSnapshotTime('2022-05-23T20:10:08Z')).toBe(637889334080000000n);
  });

  it('is nothing else', () => {
    for (const text of [
      '',
      '1',
      '2022-05-23',
      '2022-02-30T00:00:00Z',
      '2022-05-23T20:10:08.47820433Z',
      '2022-05-23T25:00:00Z',
    ])
      expect(parseSnapshotTime(text)).toBeUndefined();
    fc.assert(fc.property(fc.string(), (text) => parseSnapshotTime(text) === undefined));
  });
});

describe('Delete Blob', () => {
  it.each<[DeleteSnapshots, boolean, ReturnType<typeof judgeDelete>]>([
    [undefined, false, { base: true, snapshots: false }],
    [undefined, true, 'SnapshotsPresent'],
    ['include', false, { base: true, snapshots: false }],
    ['include', true, { base: true, snapshots: true }],
    ['only', false, 'BlobNotFound'],
    ['only', true, { base: false, snapshots: true }],
  ])('%s, with snapshots: %s', (asked, has, verdict) => {
    expect(judgeDelete(asked, has)).toEqual(verdict);
  });
});
