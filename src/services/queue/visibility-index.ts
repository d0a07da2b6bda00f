/** Visibility index: messages in the order in which they become visible, scanned from the head; expired ones are removed on the way. */
import { type Key, keyAfter, type Range } from '../../partition/keys.ts';
import {
  type Instant,
  type Row,
  type ScanOptions,
  type Snapshot,
  stoppedEarly,
  type Transaction,
} from '../../partition/partition.ts';
import { isVisible } from '../../rules/queue/timing.ts';
import { countMessage } from './message-counts.ts';
import { decodeMessage, type FoundMessage, firstMessageKey, visibilityKey } from './message-rows.ts';
import type { Queue } from './rows.ts';

/** How far the clocks of processes that share a store may differ. */
const SKEW_TICKS = 1_000_000n;
/** Rows and bytes that are scanned for one commit at most. Each expired message changes three rows, and a commit at most a thousand. */
const ROWS_MAX = 300;
const BYTES_MAX = 4 << 20;

export interface VisibleMessages {
  /** Visible and not expired, in their order. */
  readonly live: readonly FoundMessage[];
  readonly expired: readonly Key[];
  /** No other message is visible. */
  readonly isComplete: boolean;
}

type ScanFn = (range: Range, options: ScanOptions) => Promise<Row[]>;

/** Of a snapshot. */
export function readVisible(at: Snapshot, queue: Queue, wanted: number): Promise<VisibleMessages> {
  return scanVisible((range, options) => at.scan(range, options), queue, at.now, wanted);
}

/** For a transaction that is to check only the messages it changes: the commit validates nothing of the scan. */
export function findVisible(tx: Transaction, queue: Queue, wanted: number): Promise<VisibleMessages> {
  return scanVisible((range, options) => tx.scanUnchecked(range, options), queue, tx.now, wanted);
}

/** Scans from the head until `wanted` messages are found. Expired messages are in between, and count for the limits. */
async function scanVisible(scan: ScanFn, queue: Queue, now: Instant, wanted: number): Promise<VisibleMessages> {
  const live: FoundMessage[] = [];
  const expired: Key[] = [];
  const to = visibilityKey(queue, now + SKEW_TICKS);
  let from = firstMessageKey(queue);
  let rowsLeft = ROWS_MAX;
  let bytesLeft = BYTES_MAX;
  while (live.length < wanted) {
    // After an expired message more are likely.
    const limit = Math.min(rowsLeft, expired.length > 0 ? ROWS_MAX : wanted - live.length);
    const bounds = { limit, bytesMax: bytesLeft };
    const rows = await scan({ from, to }, bounds);
    let isPastNow = false;
    for (const row of rows) {
      const message = decodeMessage(row);
      isPastNow = message.visibleAt > now;
      rowsLeft--;
      bytesLeft -= row.value.length;
      if (!isVisible(message.visibleAt, row.version, now)) continue;
      if (message.expires <= now) expired.push(row.key);
      else if (live.length < wanted) live.push(message);
    }
    if (isPastNow || !stoppedEarly(rows, bounds)) return { live, expired, isComplete: true };
    if (rowsLeft <= 0 || bytesLeft <= 0) break;
    from = keyAfter(rows.at(-1)!.key);
  }
  return { live, expired, isComplete: false };
}

/** Deletes those that still exist, and counts each once. */
export async function deleteExpired(tx: Transaction, queue: Queue, keys: readonly Key[]): Promise<void> {
  const rows = await tx.getMany(keys);
  const found = rows.filter((row) => row !== undefined);
  for (const row of found) {
    tx.remove(row.key);
    countMessage(tx, queue, decodeMessage(row), -1);
  }
}
