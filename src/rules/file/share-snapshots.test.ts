import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatIso7, ticksFromUnix } from '../../base/time.ts';
import { nextSnapshotSecond, parseSnapshotSecond, secondsSince1970 } from './share-snapshots.ts';

it('A snapshot is named by the whole second of the request', () => {
  const now = ticksFromUnix(Date.parse('2026-05-04T03:02:01.987Z'));
  expect(formatIso7(nextSnapshotSecond(now, 0))).toBe('2026-05-04T03:02:01.0000000Z');
});

it('Each snapshot is later than the last one, and not later than it has to be', () => {
  const aMoment = fc.integer({ min: 1, max: 4_000_000_000 });
  fc.assert(
    fc.property(aMoment, aMoment, (now, last) => {
      const second = secondsSince1970(nextSnapshotSecond(ticksFromUnix(now * 1_000) + 123n, last));
      expect(second).toBe(Math.max(now, last + 1));
      expect(parseSnapshotSecond(formatIso7(ticksFromUnix(second * 1_000)))).toBe(ticksFromUnix(second * 1_000));
    }),
  );
});
