import type { Instant, Row, Snapshot } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import { epochFromKey, heartbeatsIn } from '../rows.ts';
import { activeEpochs } from './epochs.ts';

export interface Heartbeat {
  /** Counts the heartbeats of the process. */
  readonly number: number;
  /** The last heartbeat that was acknowledged before the oldest running read began. */
  readonly oldestRead: number;
  readonly at: Instant;
}

/** The last heartbeats of all members in one snapshot, by epoch. */
export type MembershipView = ReadonlyMap<bigint, Heartbeat>;

const MEMBERS_MAX = 1_000;

/** Of all members, whether they have a heartbeat row or not. */
export async function scanHeartbeats(at: Snapshot): Promise<MembershipView> {
  const [members, heartbeats] = await Promise.all([activeEpochs(at), at.scan(heartbeatsIn(), { limit: MEMBERS_MAX })]);
  const known = new Map(heartbeats.map((row) => [epochFromKey(row.key), decodeHeartbeat(row)]));
  return new Map([...members].map((epoch) => [epoch, known.get(epoch) ?? { number: -1, oldestRead: -2, at: 0n }]));
}

/** Whether no read that began before the first view can still be running at the second. */
export function allReadsEnded(first: MembershipView, second: MembershipView): boolean {
  for (const [epoch, { oldestRead }] of second) {
    const earlier = first.get(epoch);
    if (earlier && oldestRead <= earlier.number) return false;
  }
  return true;
}

export function encodeHeartbeat({ number, oldestRead, at }: Heartbeat): Buffer {
  return encodeValue({ number, oldestRead, at: at.toString() });
}

export function decodeHeartbeat(row: Row): Heartbeat {
  const { number, oldestRead, at } = decodeValue<{ number: number; oldestRead: number; at: string }>(row);
  return { number, oldestRead, at: BigInt(at) };
}
