/** The line in which the messages of a queue wait: who is first, and who has waited too long. */
import { type Key, keyAfter, type Range } from '../../partition/keys.ts';
import { type Instant, type Row, type ScanOptions, stoppedEarly, type Transaction } from '../../partition/partition.ts';
import { isVisible } from '../../rules/queue/timing.ts';
import { countMessage } from './message-counts.ts';
import { decodeMessage, type FoundMessage, firstMessageKey, visibilityKey } from './message-rows.ts';
import type { Queue } from './rows.ts';

/** How far the clocks of processes that share a store may differ. */
const SKEW_TICKS = 1_000_000n;
/** What is looked at for one commit. Each that has expired changes three rows, and a commit at most a thousand. */
const ROWS_MAX = 300;
const BYTES_MAX = 4 << 20;

export interface VisibleMessages {
  /** Those that can be seen, in their order. */
  readonly live: readonly FoundMessage[];
  readonly expired: readonly Key[];
  /** Nobody else can be seen. */
  readonly isComplete: boolean;
}

export type ScanFn = (range: Range, options: ScanOptions) => Promise<Row[]>;

/** Looks for so many messages from the head of the line. What has expired there is in the way, and counts. */
export async function scanVisible(scan: ScanFn, queue: Queue, now: Instant, wanted: number): Promise<VisibleMessages> {
  const live: FoundMessage[] = [];
  const expired: Key[] = [];
  const to = visibilityKey(queue, now + SKEW_TICKS);
  let from = firstMessageKey(queue);
  let rowsLeft = ROWS_MAX;
  let bytesLeft = BYTES_MAX;
  while (live.length < wanted) {
    // Where one has expired, more have.
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

/** Those that are still there are let go of, each once. */
export async function deleteExpired(tx: Transaction, queue: Queue, keys: readonly Key[]): Promise<void> {
  const rows = await tx.getMany(keys);
  const found = rows.filter((row) => row !== undefined);
  for (const row of found) {
    tx.remove(row.key);
    countMessage(tx, queue, decodeMessage(row), -1);
  }
}
