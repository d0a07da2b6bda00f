/**
 * Gives the bytes back that no row needs any more, beside everything else: whole extents, and sparse ones once their live
 * chunks were copied. It remembers nothing that a killed process would leave behind: the counters and the files say it all.
 */
import { startBackground } from '../../base/background-task.ts';
import { Damaged, type ExtentInfo, epochOfExtent } from '../../extents/extents.ts';
import { after, decodeKey, encodeKey, past, type Range } from '../../partition/keys.ts';
import { counterOf, type Snapshot } from '../../partition/partition.ts';
import { livingEpochs } from '../membership/epochs.ts';
import { liveIn as liveRowsIn } from '../rows.ts';
import type { Horizon } from './active-reads.ts';
import { measure, moveAll, type Store } from './compaction.ts';
import { type Bounds, choose, type ExtentUse } from './policy.ts';

export interface Collector {
  wake(): void;
  /** Resolves once all is done that can be done now; what a running read still needs waits for its end. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

export interface CollectorOptions extends Store {
  readonly horizon: Horizon;
  /** Whether it looks after the extents of dead processes, besides its own; those of the living are theirs. */
  readonly isElected?: () => boolean;
  /** Whether no other process writes to this store. */
  readonly isOwner?: boolean | undefined;
  /** Where bytes lie that this process has written, or is writing, and has not let go of: some commit may name them. */
  readonly heldExtents: () => ReadonlySet<string>;
  readonly bounds?: Bounds | undefined;
  readonly onFailure?: (error: unknown) => void;
  /** Told once of each extent in which something is damaged. */
  readonly onDamage?: (error: Error) => void;
}

const EVERY_MILLISECONDS = 2_000;
/** The pause between batches, in lengths of the batch before: the disk belongs to the requests, unless it would be full of dead bytes. */
const REST = 1;
const REST_IN_HASTE = 0.1;
const SLICE = 1_000;

interface Measured {
  /** The counter's value then. */
  readonly live: number;
  /** What the chunks take beside their bytes. */
  readonly overhead: number;
}

export function startCollector(options: CollectorOptions): Collector {
  const { partition, extents, epoch, horizon, isElected = () => true, isOwner = false, heldExtents } = options;
  const { onFailure = () => {}, onDamage = () => {} } = options;
  /** Extents that no row named when they were looked at, and what has to pass before they go. */
  const vacated = new Map<string, number>();
  const measured = new Map<string, Measured>();
  /** Of extents that are not open any more: it is asked for once. */
  const bytes = new Map<string, number>();
  /** What cannot be read stays where it is, and so does all that lies beside it. */
  const damaged = new Set<string>();
  let waiting = false;
  /** What the last look rested on, if there was nothing to do. */
  let foundIdle: string | undefined;
  const background = startBackground(run, EVERY_MILLISECONDS, () => {
    if (!isOwner || foundIdle !== inputs()) background.wake();
  });

  /** All that a look may find changed without being woken. Other files than its own do not change in a store that has an owner. */
  function inputs(): string {
    return [partition.settledCommits(), extents.chunksBegun(), extents.isShort(), ...heldExtents()].join();
  }

  async function run(): Promise<void> {
    foundIdle = undefined;
    try {
      let before = inputs();
      while (!background.isStopping && (await step())) {
        await background.rest(0);
        before = inputs();
      }
      foundIdle = before;
    } catch (error) {
      // It is tried again when the timer goes.
      if (!background.isStopping) onFailure(error);
    }
  }

  /** Whether something was done, so that it is worth to look again. */
  async function step(): Promise<boolean> {
    const uses = await look();
    const { remove, seal, compact, inHaste } = choose(uses, options.bounds, extents.isShort());
    const removed = await removeVacated(remove);
    for (const extent of seal) await extents.seal(extent);
    const sparsest = uses.find(({ name }) => name === compact[0]);
    if (sparsest) await compactOne(sparsest.name, inHaste ? REST_IN_HASTE : REST);
    return removed || seal.length > 0 || sparsest !== undefined;
  }

  /**
   * The order matters. What is sealed in the list gets no more chunks; whoever wrote one of them still holds it, or has
   * committed before the snapshot is taken. Of a process that has made one but no longer has an epoch then, nothing comes.
   */
  async function look(): Promise<ExtentUse[]> {
    const all = await extents.list();
    const heldNow = new Set(heldExtents());
    const { live, living } = await partition.read(async (at) => ({
      living: await livingEpochs(at),
      live: await countLive(at),
    }));
    const looksAfter = (name: string): boolean => {
      const maker = epochOfExtent(name);
      return maker === epoch || (isElected() && !living.has(maker));
    };
    await reportMissing(all, new Map([...live].filter(([name]) => looksAfter(name))));
    const list = all.filter(({ name }) => looksAfter(name));
    forgetOthers(list);
    const uses: ExtentUse[] = [];
    for (const { name, open } of list) {
      const use = live.get(name) ?? 0;
      if (use > 0 && damaged.has(name)) continue;
      const taken = bytes.get(name) ?? (await extents.bytesOf(name));
      if (!open) bytes.set(name, taken);
      const held = heldNow.has(name);
      uses.push({ name, bytes: taken, open, held, live: use === 0 ? 0 : use + overheadOf(name, use) });
    }
    return uses;
  }

  /** Nobody finds the way to a vacated extent any more, but reads that began before may be on it. */
  async function removeVacated(names: readonly string[]): Promise<boolean> {
    let removed = false;
    let wait = Infinity;
    for (const name of names) {
      const since = vacated.get(name) ?? horizon.next();
      vacated.set(name, since);
      if (horizon.oldest() < since) {
        wait = Math.min(wait, since);
        continue;
      }
      await extents.remove(name);
      removed = true;
    }
    if (wait < Infinity && !waiting) {
      waiting = true;
      void horizon.ended(wait).then(() => {
        waiting = false;
        background.wake();
      });
    }
    return removed;
  }

  async function compactOne(extent: string, pace: number): Promise<void> {
    try {
      if (!measured.has(extent)) {
        const { named, taken } = await measure(options, extent);
        measured.set(extent, { live: named, overhead: Math.max(taken - named, 0) });
        return;
      }
      let started = performance.now();
      await moveAll(options, extent, async () => {
        await background.rest(pace * (performance.now() - started));
        started = performance.now();
        return !background.isStopping;
      });
      const left = await liveIn(extent);
      if (left > 0 && !background.isStopping)
        throw new Damaged(`${left} bytes in extent ${extent} are needed and cannot be found in it`);
    } catch (error) {
      if (!(error instanceof Damaged)) throw error;
      // Another one may have looked after this extent, and be done.
      if ((await liveIn(extent)) > 0) report(extent, error);
    }
  }

  async function liveIn(extent: string): Promise<number> {
    return (await partition.read(countLive)).get(extent) ?? 0;
  }

  /** Small chunks take much more than their bytes, which cannot be won back. A measurement ages as chunks go. */
  function overheadOf(extent: string, live: number): number {
    const measurement = measured.get(extent);
    if (!measurement) return 0;
    if (live < 0.75 * measurement.live) measured.delete(extent);
    return measurement.overhead * Math.min(live / measurement.live, 1);
  }

  async function reportMissing(list: readonly ExtentInfo[], live: ReadonlyMap<string, number>): Promise<void> {
    const unknown = (known: readonly ExtentInfo[]) => {
      const names = new Set(known.map(({ name }) => name));
      return [...live].filter(([name, bytes]) => bytes > 0 && !names.has(name) && !damaged.has(name));
    };
    if (unknown(list).length === 0) return;
    // Some were made after the list.
    for (const [name, bytes] of unknown(await extents.list()))
      report(name, new Damaged(`extent ${name} is missing, and ${bytes} bytes in it are needed`));
  }

  function report(extent: string, error: Error): void {
    damaged.add(extent);
    onDamage(error);
  }

  function forgetOthers(list: readonly ExtentInfo[]): void {
    const names = new Set(list.map(({ name }) => name));
    for (const notes of [vacated, measured, bytes]) {
      for (const name of notes.keys()) if (!names.has(name)) notes.delete(name);
    }
  }

  return { wake: background.wake, idle: background.idle, stop: background.stop };
}

/**
 * Live bytes by extent. Of all accounts that have rows, not of those that the server was started with: an account that is
 * left out for a while shall find its bytes again.
 */
async function countLive(at: Snapshot): Promise<Map<string, number>> {
  const live = new Map<string, number>();
  const everything: Range = { from: encodeKey([0n]), to: past(encodeKey([0xffff_ffff_ffff_ffffn])) };
  for (let from = everything.from; ; ) {
    const [first] = await at.scan({ from, to: everything.to }, { limit: 1 });
    if (!first) return live;
    const account = decodeKey(first.key)[0] as bigint;
    for await (const row of rowsIn(at, liveRowsIn(account))) {
      const extent = decodeKey(row.key)[2] as string;
      live.set(extent, (live.get(extent) ?? 0) + Number(counterOf(row)));
    }
    from = past(encodeKey([account]));
  }
}

async function* rowsIn(at: Snapshot, range: Range) {
  for (let { from } = range; ; ) {
    const rows = await at.scan({ from, to: range.to }, { limit: SLICE });
    yield* rows;
    const last = rows.at(-1);
    if (!last || rows.length < SLICE) return;
    from = after(last.key);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
