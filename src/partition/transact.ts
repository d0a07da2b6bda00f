/**
 * Transactions, once for all engines. Bodies that wait for one anchor run one after another over one view, the snapshot plus
 * the writes of those before, and go as one commit. Turns are an optimisation; the checks in the commit are the truth.
 */
import { randomUUID } from 'node:crypto';
import { addedOnce } from './counters.ts';
import type { Key } from './keys.ts';
import {
  type Check,
  type Commit,
  type Engine,
  type Instant,
  OutcomeUnknown,
  type Partition,
  type RangeCheck,
  type Reading,
  type Snapshot,
  type Stamp,
  type Transaction,
  Unavailable,
} from './partition.ts';
import { BodyView, type Held, heldAfter } from './transaction-view.ts';

export interface TransactOptions {
  /** How often a body runs before its caller is told to come back later. */
  attemptsMax?: number;
  /** How often it runs before commits of other processes for its anchor wait for it. */
  attemptsShared?: number;
  /** How often it runs beside others of this process before it runs alone. */
  attemptsBeside?: number;
  /** How many bodies share a commit: their run must not hold the event loop. */
  bodiesMax?: number;
  /** Bodies that share a commit leave at most about this many rows and bytes. */
  writesMax?: number;
  bytesMax?: number;
}

interface Job {
  readonly body: (tx: Transaction) => Promise<unknown>;
  readonly resolve: (result: { value: unknown; stamp: Stamp }) => void;
  readonly reject: (error: unknown) => void;
  attempts: number;
}

interface Read {
  readonly body: (at: Reading) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Taken = ReturnType<Engine['snapshot']>;

/** A body that ran: what it leaves, or what it threw. */
interface Run {
  readonly job: Job;
  readonly view: BodyView;
  readonly value?: unknown;
  readonly stamp?: Stamp;
  readonly refusal?: { readonly error: unknown };
}

export function openPartition(engine: Engine, options: TransactOptions = {}): Partition {
  const { attemptsMax = 100, attemptsShared = 2, attemptsBeside = 5 } = options;
  const { bodiesMax = 128, writesMax = 1_000, bytesMax = 8 << 20 } = options;
  const reads: Read[] = [];
  const lines = new Map<Key, Job[]>();
  /** Whose lines go on in the next turn. */
  const due: Key[] = [];
  /** Whose lines have lost too many races: each runs with no other beside it. */
  const tired: Key[] = [];
  /** Lines that run or commit; whether it is one that is to be alone. */
  let busy = 0;
  let alone = false;
  /** Reads that run. */
  let reading = 0;
  const lineage = randomUUID();
  let commits = 0;
  let settledCommits = 0;
  let scheduled = false;
  const propose = (): Stamp => engine.clock.stamp();

  function read<T>(body: (at: Reading) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      reads.push({ body, resolve: resolve as Read['resolve'], reject });
      schedule();
    });
  }

  function transact<T>(anchor: Key, body: (tx: Transaction) => Promise<T>): Promise<{ value: T; stamp: Stamp }> {
    return new Promise((resolve, reject) => {
      const job: Job = { body, resolve: resolve as Job['resolve'], reject, attempts: 0 };
      const line = lines.get(anchor);
      if (line) {
        line.push(job);
        return;
      }
      lines.set(anchor, [job]);
      due.push(anchor);
      schedule();
    });
  }

  /** Behind everything that is already about to ask, too. */
  function schedule(when: (serve: () => void) => void = queueMicrotask): void {
    if (scheduled) return;
    scheduled = true;
    when(() => {
      scheduled = false;
      serveTurn();
    });
  }

  /**
   * What was asked for in one turn of the event loop shares a snapshot, taken after the last of it was asked for. Side by side
   * they also cost less: a Get Blob at 64 clients about a third of the CPU; see docs/adr/0003-partition-interface.md.
   */
  function serveTurn(): void {
    let room = bodiesMax;
    // Where both wait, each has its half.
    const waiting = nextLine() === undefined ? 0 : tired.length + due.length;
    const asked = reads.splice(0, Math.max(room >> 1, room - waiting));
    room -= asked.length;
    const taken: { anchor: Key; jobs: Job[] }[] = [];
    for (let anchor = nextLine(); anchor !== undefined && room > 0; anchor = nextLine()) {
      alone = tired.length > 0;
      (alone ? tired : due).shift();
      busy++;
      const line = lines.get(anchor)!;
      if (engine.exclusive && line[0]!.attempts >= attemptsShared) {
        room--;
        void serveExclusively(anchor, engine.exclusive.bind(engine));
        continue;
      }
      // Who joins the line later may know of a commit that this snapshot does not show.
      const jobs = line.splice(0, room);
      room -= jobs.length;
      taken.push({ anchor, jobs });
    }
    if (reads.length > 0 || nextLine() !== undefined) schedule(setImmediate);
    if (asked.length > 0 || taken.length > 0) serve(asked, taken);
  }

  /** Its snapshot is taken once the others wait, so that nobody overtakes it any more. */
  async function serveExclusively(anchor: Key, exclusive: NonNullable<Engine['exclusive']>): Promise<void> {
    const take = (): Job[] => lines.get(anchor)!.splice(0, bodiesMax);
    let isServed = false;
    try {
      await exclusive(anchor, async () => {
        isServed = true;
        await Promise.all(serve([], [{ anchor, jobs: take() }]));
      });
    } catch (error) {
      if (!isServed) refuse(anchor, take(), error);
    }
  }

  function serve(asked: readonly Read[], taken: readonly { anchor: Key; jobs: Job[] }[]): Promise<void>[] {
    let snapshot: Taken;
    try {
      snapshot = engine.snapshot();
    } catch (error) {
      for (const { reject } of asked) reject(error);
      for (const { anchor, jobs } of taken) refuse(anchor, jobs, error);
      return [];
    }
    let looking = asked.length + taken.length;
    const looked = (): void => {
      if (--looking === 0) snapshot.end();
    };
    for (const read of asked) void answer(read, snapshot, looked);
    return taken.map(({ anchor, jobs }) => serveLine(anchor, jobs, snapshot, looked));
  }

  async function answer({ body, resolve, reject }: Read, snapshot: Reading, looked: () => void): Promise<void> {
    reading++;
    try {
      resolve(await body(snapshot));
    } catch (error) {
      reject(error);
    }
    reading--;
    looked();
  }

  async function serveLine(anchor: Key, jobs: Job[], snapshot: Taken, looked: () => void): Promise<void> {
    const runs = await runTogether(anchor, jobs, snapshot);
    looked();
    await settle(anchor, runs, snapshot.group);
  }

  /** While somebody is tired, the others wait until he is through. */
  function nextLine(): Key | undefined {
    if (alone) return undefined;
    if (tired.length === 0) return due[0];
    return busy === 0 ? tired[0] : undefined;
  }

  /** Those for whom there is no room in the commit wait for the next. */
  async function runTogether(anchor: Key, jobs: Job[], snapshot: Snapshot): Promise<Run[]> {
    const runs: Run[] = [];
    const held = new Map<Key, Held>();
    let bytes = 0;
    while (jobs.length > 0 && held.size < writesMax && bytes < bytesMax) {
      const job = jobs.shift()!;
      const view = new BodyView(snapshot, held, propose);
      try {
        const value = await job.body(view);
        // Bodies behind this one propose later stamps.
        runs.push({ job, view, value, stamp: view.stamp });
      } catch (error) {
        if (view.readHeld) runs.push({ job, view, refusal: { error } });
        else job.reject(error);
        continue;
      }
      if (jobs.length === 0) return runs;
      for (const [key, write] of view.writes) {
        held.set(key, heldAfter(held.get(key), write));
        if (write.kind === 'put') bytes += write.value.length;
      }
    }
    lines.get(anchor)!.unshift(...jobs);
    return runs;
  }

  /** Commits what the bodies left, and answers. Those that must run again go back to the head of their line. */
  async function settle(anchor: Key, runs: readonly Run[], snapshotGroup: number | undefined): Promise<void> {
    const data = commitOf(anchor, runs, snapshotGroup);
    const outcome = data ? await commit(data) : 'committed';
    leave();
    if (outcome === 'conflict') {
      for (const { job } of runs) job.attempts++;
      const givenUp = runs.filter(({ job }) => job.attempts >= attemptsMax);
      for (const { job } of givenUp) job.reject(new Unavailable('Too many others write here at the same time.'));
      lines.get(anchor)!.unshift(...runs.filter((run) => !givenUp.includes(run)).map((run) => run.job));
      await pause(Math.max(...runs.map(({ job }) => job.attempts)));
    } else {
      for (const { job, view, value, stamp, refusal } of runs) {
        if (outcome !== 'committed' && (view.writes.size > 0 || view.readHeld)) job.reject(outcome);
        else if (refusal) job.reject(refusal.error);
        else job.resolve({ value, stamp: stamp! });
      }
    }
    goOn(anchor);
  }

  function refuse(anchor: Key, jobs: readonly Job[], error: unknown): void {
    for (const { reject } of jobs) reject(error);
    leave();
    goOn(anchor);
  }

  function leave(): void {
    busy--;
    alone = false;
  }

  function goOn(anchor: Key): void {
    const line = lines.get(anchor)!;
    if (line.length === 0) lines.delete(anchor);
    else if (line[0]!.attempts >= attemptsBeside) tired.push(anchor);
    else due.push(anchor);
    if (nextLine() !== undefined) schedule();
  }

  /** What the bodies ask of the store; undefined: nothing. */
  function commitOf(anchor: Key, runs: readonly Run[], snapshotGroup: number | undefined): Commit | undefined {
    const bodies: Commit['bodies'][number][] = [];
    const checks = new Map<Key, Check>();
    const ranges: RangeCheck[] = [];
    let before: Instant | undefined;
    for (const { view, refusal } of runs) {
      const writes = !refusal && view.writes.size > 0;
      if (writes) bodies.push({ stamp: view.stamp, writes: [...view.writes.values()] });
      // An answer that rests on a write of this commit and on other rows is true only if those still stand beside it.
      else if (!view.readHeld) continue;
      for (const check of view.checks) checks.set(check.key, check);
      ranges.push(...view.ranges);
      if (view.deadline !== undefined && (before === undefined || view.deadline < before)) before = view.deadline;
    }
    if (bodies.length === 0) return undefined;
    const id = `${lineage}/${commits++}`;
    return {
      id,
      anchors: [anchor],
      checks: [...checks.values()],
      ranges,
      bodies: addedOnce(bodies),
      ...(before !== undefined && { before }),
      ...(snapshotGroup !== undefined && { snapshotGroup }),
    };
  }

  async function commit(data: Commit): Promise<'committed' | 'conflict' | Error> {
    try {
      const outcome = await engine.commit(data);
      return outcome === 'unknown' ? new OutcomeUnknown('The store did not say whether the write happened.') : outcome;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    } finally {
      settledCommits++;
    }
  }

  return {
    read,
    transact,
    clock: engine.clock,
    settledCommits: () => settledCommits,
    isBroken: () => engine.isBroken?.() ?? false,
    async close() {
      while (reading > 0 || scheduled || lines.size > 0) await new Promise((resolve) => setTimeout(resolve, 1));
      await engine.close();
    },
  };
}

/** Who lost a race several times waits at random, or the winner would be first again and again. */
function pause(attempts: number): Promise<void> {
  return new Promise((resolve) => {
    if (attempts < 3) setImmediate(resolve);
    else setTimeout(resolve, Math.random() * Math.min(2 ** attempts, 50));
  });
}
