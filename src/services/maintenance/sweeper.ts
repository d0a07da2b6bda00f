/** Gives back the rows of what was deleted in O(1) or has expired, in slices, beside everything else. The trash remembers what is left. */
import { startBackground } from '../../base/background-task.ts';
import type { Horizon } from '../../content/gc/active-reads.ts';
import { livingEpochs } from '../../content/membership/epochs.ts';
import { decodeTrash, idOf, trashIn } from '../../content/rows.ts';
import { after, type Key } from '../../partition/keys.ts';
import type { Row } from '../../partition/partition.ts';
import { dueIn } from '../blob/rows.ts';
import type { AccountId } from '../common/storage.ts';
import { createExpiryWalk } from '../queue/ttl-scan.ts';
import { emptyAccount, hasContents } from './reset.ts';
import { lookAtDue, type Sweeping, sweepSlice } from './sweep-slice.ts';

export interface Sweeper {
  wake(): void;
  /** Resolves once all is swept that can be swept now; what a running read still needs waits for its end. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

export interface SweeperOptions extends Sweeping {
  /** All whose rows there may be: they come and go. */
  readonly accounts: () => Iterable<AccountId>;
  /** Those among them that are gone, and with them all that they held. */
  readonly removed?: () => readonly AccountId[];
  readonly horizon: Horizon;
  /** Of several processes one sweeps. */
  readonly isElected?: () => boolean;
  readonly onFailure?: (error: unknown) => void;
}

/** Trash rows that are swept side by side; their commits share a sync. */
const ABREAST = 32;
/** After so long the rows behind have their turn, too. */
const TURN_MILLISECONDS = 1_000;
/** The pause between slices, in lengths of the slice before: the disk belongs to the requests. */
const REST = 2;
const RETRY_MILLISECONDS = 5_000;
const EVERY_MILLISECONDS = 60_000;
/** Contents of which it is known since when nobody can find them. More of them wait until these are gone. */
const NOTED_MAX = 100_000;

export function startSweeper(options: SweeperOptions): Sweeper {
  const { partition, horizon, isElected = () => true, onFailure = () => {} } = options;
  /** By trash row: what has to pass until no read can have found its content. */
  const noted = new Map<Key, number>();
  /** Up to where the trash of an account is known to wait for this read. Most new trash lies behind. */
  const seen = new Map<AccountId, { readonly oldest: number; readonly upTo: Key }>();
  const failed = new Set<Key>();
  let waiting = false;
  const background = startBackground(run, EVERY_MILLISECONDS, startOver);

  const mayWork = (): boolean => !background.isStopping && isElected();
  const walk = createExpiryWalk({ partition, mayWork, rest: (worked) => background.rest(REST * worked) });
  /** A long queue does not keep the trash waiting. */
  const walking = startBackground(walkAll, EVERY_MILLISECONDS);

  async function run(): Promise<void> {
    if (!mayWork()) return;
    await emptyRemoved();
    for (const account of options.accounts()) {
      try {
        await sweepDue(account);
        while (mayWork() && (await sweepAccount(account)));
      } catch (error) {
        if (!background.isStopping) retry(error);
      }
    }
  }

  async function walkAll(): Promise<void> {
    for (const account of options.accounts()) {
      try {
        if (mayWork()) await walk.run(account);
      } catch (error) {
        if (!background.isStopping) onFailure(error);
      }
    }
  }

  async function emptyRemoved(): Promise<void> {
    for (const account of options.removed?.() ?? []) {
      try {
        if (mayWork() && (await hasContents(partition, account)))
          await emptyAccount({ partition, account, sweeper: { wake: background.wake } });
      } catch (error) {
        if (!background.isStopping) retry(error);
      }
    }
  }

  async function sweepDue(account: AccountId): Promise<void> {
    for (let from: Key | undefined; mayWork(); ) {
      const rows = await partition.read((at) => {
        const range = dueIn(account, at.now);
        return at.scan({ from: from ?? range.from, to: range.to }, { limit: ABREAST });
      });
      const last = rows.at(-1);
      if (!last) return;
      from = after(last.key);
      const started = performance.now();
      await allOf(rows, (row) => lookAtDue(options, account, row));
      await background.rest(REST * (performance.now() - started));
    }
  }

  /** Once through the trash; true: there is more to do now. */
  async function sweepAccount(account: AccountId): Promise<boolean> {
    const range = trashIn(account);
    const oldest = horizon.oldest();
    const known = seen.get(account);
    let from = known && oldest < Infinity && known.oldest === oldest ? after(known.upTo) : range.from;
    let isUnfinished = false;
    let upTo: Key | undefined;
    while (mayWork()) {
      // In one snapshot: a process that joins later has made none of these.
      const [rows, living] = await partition.read((at) =>
        Promise.all([at.scan({ from, to: range.to }, { limit: ABREAST }), livingEpochs(at)]),
      );
      upTo = rows.at(-1)?.key;
      if (!upTo) break;
      from = after(upTo);
      if (
        !(await sweepAbreast(
          account,
          rows.filter((row) => isReady(row, living)),
        ))
      )
        isUnfinished = true;
      if (!isUnfinished) seen.set(account, { oldest, upTo });
    }
    return isUnfinished;
  }

  /** Slice after slice of each, until nothing is left or others should have their turn. */
  async function sweepAbreast(account: AccountId, rows: readonly Row[]): Promise<boolean> {
    const end = performance.now() + TURN_MILLISECONDS;
    for (let left = rows; left.length > 0; ) {
      const started = performance.now();
      if (started > end || !mayWork()) return false;
      const done = new Set<Row>();
      await allOf(left, async (row) => {
        if (!(await sweepSlice(options, account, row.key))) return;
        done.add(row);
        noted.delete(row.key);
      });
      left = left.filter((row) => !done.has(row) && !failed.has(row.key));
      await background.rest(REST * (performance.now() - started));
    }
    return true;
  }

  function isReady(row: Row, living: ReadonlySet<bigint>): boolean {
    if (failed.has(row.key)) return false;
    try {
      return mayGo(row, living);
    } catch (error) {
      failed.add(row.key);
      retry(error);
      return false;
    }
  }

  /** Contents wait for the reads that may have found them before nobody could any more; pending ones for those who work on them. */
  function mayGo(row: Row, living: ReadonlySet<bigint>): boolean {
    const trash = decodeTrash(row);
    if (trash.kind !== 'content') return true;
    if (trash.pending) return !living.has(idOf(trash.content).epoch);
    let since = noted.get(row.key);
    if (since === undefined) {
      since = horizon.next();
      if (horizon.oldest() >= since) return true;
      if (noted.size >= NOTED_MAX) return false;
      noted.set(row.key, since);
    }
    if (horizon.oldest() >= since) return true;
    wakeAfter(since);
    return false;
  }

  function wakeAfter(read: number): void {
    if (waiting) return;
    waiting = true;
    void horizon.ended(read).then(() => {
      waiting = false;
      background.wake();
    });
  }

  /** What fails does not keep the others waiting. */
  async function allOf(rows: readonly Row[], work: (row: Row) => Promise<void>): Promise<void> {
    const results = await Promise.allSettled(rows.map(work));
    for (const [i, { status }] of results.entries()) if (status === 'rejected') failed.add(rows[i]!.key);
    const failure = results.find((result) => result.status === 'rejected');
    if (failure && !background.isStopping) retry(failure.reason);
  }

  function retry(error: unknown): void {
    onFailure(error);
    void background.rest(RETRY_MILLISECONDS).then(startOver);
  }

  function startOver(): void {
    failed.clear();
    seen.clear();
    background.wake();
  }

  const both = [background, walking];
  return {
    wake() {
      for (const each of both) each.wake();
    },
    async idle() {
      await Promise.all(both.map((each) => each.idle()));
    },
    async stop() {
      await Promise.all(both.map((each) => each.stop()));
    },
  };
}
