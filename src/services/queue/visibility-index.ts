/** The line in which the messages of a queue wait: who is first, and who has waited too long. */
import { randomFillSync } from 'node:crypto';
import { after, type Key, type Range } from '../../partition/keys.ts';
import { type Instant, type Row, type ScanOptions, stoppedEarly, type Transaction } from '../../partition/partition.ts';
import { isVisible } from '../../rules/queue/timing.ts';
import { countMessage } from './message-counts.ts';
import { decodeMessage, headOf, placeAt, type Waiting } from './message-rows.ts';
import type { Queue } from './rows.ts';

/** How far the clocks of processes that share a store may differ. */
const SKEW_TICKS = 1_000_000n;
/** What is looked at for one commit. Each that has expired changes three rows, and a commit at most a thousand. */
const ROWS_MAX = 300;
const BYTES_MAX = 4 << 20;

export interface Ahead {
  /** Those that can be seen, in their order. */
  readonly live: readonly Waiting[];
  readonly expired: readonly Key[];
  /** Nobody else can be seen. */
  readonly isAll: boolean;
}

export type Look = (range: Range, options: ScanOptions) => Promise<Row[]>;

/** Looks for so many messages from the head of the line. What has expired there is in the way, and counts. */
export async function lookAhead(look: Look, queue: Queue, now: Instant, wanted: number): Promise<Ahead> {
  const live: Waiting[] = [];
  const expired: Key[] = [];
  const to = placeAt(queue, now + SKEW_TICKS);
  let from = headOf(queue);
  let rowsLeft = ROWS_MAX;
  let bytesLeft = BYTES_MAX;
  while (live.length < wanted) {
    // Where one has expired, more have.
    const limit = Math.min(rowsLeft, expired.length > 0 ? ROWS_MAX : wanted - live.length);
    const bounds = { limit, bytesMax: bytesLeft };
    const rows = await look({ from, to }, bounds);
    let isBehind = false;
    for (const row of rows) {
      const message = decodeMessage(row);
      isBehind = message.visibleAt > now;
      rowsLeft--;
      bytesLeft -= row.value.length;
      if (!isVisible(message.visibleAt, row.version, now)) continue;
      if (message.expires <= now) expired.push(row.key);
      else if (live.length < wanted) live.push(message);
    }
    if (isBehind || !stoppedEarly(rows, bounds)) return { live, expired, isAll: true };
    if (rowsLeft <= 0 || bytesLeft <= 0) break;
    from = after(rows.at(-1)!.key);
  }
  return { live, expired, isAll: false };
}

/** Those that are still there are let go of, each once. */
export async function dropExpired(tx: Transaction, queue: Queue, keys: readonly Key[]): Promise<void> {
  const rows = await tx.getMany(keys);
  const found = rows.filter((row) => row !== undefined);
  for (const row of found) {
    tx.remove(row.key);
    countMessage(tx, queue, decodeMessage(row), -1);
  }
}

const CHANCE_BYTES = 4_096;
const chance = Buffer.alloc(CHANCE_BYTES);
let used = CHANCE_BYTES;

/** 64 random bits; the generator is asked for many at once. */
export function random64(): bigint {
  if (used === CHANCE_BYTES) {
    randomFillSync(chance);
    used = 0;
  }
  const bits = chance.readBigUInt64BE(used);
  used += 8;
  return bits;
}
