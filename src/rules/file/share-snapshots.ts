/** Snapshots of shares are named by whole seconds. Instants are ticks. */
import { parseIso7, TICKS_PER_SECOND, ticksFromUnix } from '../../base/time.ts';

/** Of one share. */
export const SNAPSHOTS_MAX = 200;

const TICKS_AT_1970 = ticksFromUnix(0);

export const secondsSince1970 = (second: bigint): number => Number((second - TICKS_AT_1970) / TICKS_PER_SECOND);

/**
 * The second of a new snapshot: that of the request, or the one after the last snapshot if that is later.
 * @param last the second of the last snapshot, deleted or not, since 1970; 0: there was none
 */
export function nextSnapshotSecond(now: bigint, last: number): bigint {
  const second = now - (now % TICKS_PER_SECOND);
  const earliest = TICKS_AT_1970 + BigInt(last + 1) * TICKS_PER_SECOND;
  return last > 0 && earliest > second ? earliest : second;
}

/** The text of `formatIso7`. Undefined: it names no moment. */
export const parseSnapshotSecond = parseIso7;
