/**
 * Gives the bytes back that no row needs any more, beside everything else: whole extents, and sparse ones once their live
 * chunks were copied. It remembers nothing that a killed process would leave behind: the counters and the files say it all.
 */
import { startBackgroundTask } from '../../base/background-task.ts';
import { CorruptChunk, type ExtentInfo, epochOfExtent } from '../../extents/extents.ts';
import { decodeKey, encodeKey, keyAfter, prefixEnd, type Range } from '../../partition/keys.ts';
import { decodeCounter, type Snapshot } from '../../partition/partition.ts';
import { activeEpochs } from '../membership/epochs.ts';
import { liveBytesIn as liveRowsIn } from '../rows.ts';
import type { LowWatermark } from './active-reads.ts';
import { type CollectorStore, compactExtent, measureExtent } from './compaction.ts';
import { type CollectionBounds, type ExtentUse, planCollection } from './policy.ts';

export interface Collector {
  wake(): void;
  /** Resolves once all is done that can be done now; what a running read still needs waits for its end. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

export interface CollectorOptions extends CollectorStore {
  readonly lowWatermark: LowWatermark;
  /** Whether it looks after the extents of dead processes, besides its own; those of the living are theirs. */
  readonly isLeader?: () => boolean;
  /** Whether no other process writes to this store. */
  readonly isOwner?: boolean | undefined;
  /** Where bytes lie that this process has written, or is writing, and has not let go of: some commit may name them. */
  readonly pinnedExtents: () => ReadonlySet<string>;
  readonly bounds?: CollectionBounds | undefined;
  readonly onFailure?: (error: unknown) => void;
  /** Told once of each extent in which something is damaged. */
  readonly onCorruption?: (error: Error) => void;
}

const EVERY_MILLISECONDS = 2_000;
/** The pause between batches, in lengths of the batch before: the disk belongs to the requests, unless it would be full of dead bytes. */
const PAUSE_FACTOR = 1;
const PAUSE_FACTOR_URGENT = 0.1;
const SLICE = 1_000;

interface Measurement {
  /** The counter's value then. */
  readonly live: number;
  /** What the chunks take beside their bytes. */
  readonly overhead: number;
}

export function startCollector(options: CollectorOptions): Collector {
  const { partition, extents, epoch, lowWatermark, isLeader = () => true, isOwner = false, pinnedExtents } = options;
  const { onFailure = () => {}, onCorruption = () => {} } = options;
  /** Extents that no row named when they were looked at, and what has to pass before they go. */
  const vacated = new Map<string, number>();
  const measurements = new Map<string, Measurement>();
  /** Of extents that are not open any more: it is asked for once. */
  const extentBytes = new Map<string, number>();
  /** What cannot be read stays where it is, and so does all that lies beside it. */
  const corrupt = new Set<string>();
  let isWaiting = false;
  /** What the last look rested on, if there was nothing to do. */
  let idleInputs: string | undefined;
  const background = startBackgroundTask(run, EVERY_MILLISECONDS, () => {
    if (!isOwner || idleInputs !== inputs()) background.wake();
  });

  /** All that a look may find changed without being woken. Other files than its own do not change in a store that has an owner. */
  function inputs(): string {
    return [partition.settledCommits(), extents.chunksBegun(), extents.isLowOnSpace(), ...pinnedExtents()].join();
  }

  async function run(): Promise<void> {
    idleInputs = undefined;
    try {
      let before = inputs();
      while (!background.isStopping && (await step())) {
        await background.sleep(0);
        before = inputs();
      }
      idleInputs = before;
    } catch (error) {
      // It is tried again when the timer goes.
      if (!background.isStopping) onFailure(error);
    }
  }

  /** Whether something was done, so that it is worth to look again. */
  async function step(): Promise<boolean> {
    const uses = await surveyExtents();
    const { remove, seal, compact, isUrgent } = planCollection(uses, options.bounds, extents.isLowOnSpace());
    const removed = await removeVacated(remove);
    for (const extent of seal) await extents.seal(extent);
    const lowestLive = uses.find(({ name }) => name === compact[0]);
    if (lowestLive) await compactOne(lowestLive.name, isUrgent ? PAUSE_FACTOR_URGENT : PAUSE_FACTOR);
    return removed || seal.length > 0 || lowestLive !== undefined;
  }

  /**
   * The order matters. What is sealed in the list gets no more chunks; whoever wrote one of them still holds it, or has
   * committed before the snapshot is taken. Of a process that has made one but no longer has an epoch then, nothing comes.
   */
  async function surveyExtents(): Promise<ExtentUse[]> {
    const all = await extents.list();
    const pinnedNow = new Set(pinnedExtents());
    const { live, living } = await partition.read(async (at) => ({
      living: await activeEpochs(at),
      live: await sumLiveBytes(at),
    }));
    const isResponsibleFor = (name: string): boolean => {
      const creator = epochOfExtent(name);
      return creator === epoch || (isLeader() && !living.has(creator));
    };
    await reportMissing(all, new Map([...live].filter(([name]) => isResponsibleFor(name))));
    const list = all.filter(({ name }) => isResponsibleFor(name));
    dropStale(list);
    const uses: ExtentUse[] = [];
    for (const { name, open } of list) {
      const use = live.get(name) ?? 0;
      if (use > 0 && corrupt.has(name)) continue;
      const taken = extentBytes.get(name) ?? (await extents.bytesOf(name));
      if (!open) extentBytes.set(name, taken);
      const pinned = pinnedNow.has(name);
      uses.push({ name, bytes: taken, open, pinned, live: use === 0 ? 0 : use + estimateOverhead(name, use) });
    }
    return uses;
  }

  /** Nobody finds the way to a vacated extent any more, but reads that began before may be on it. */
  async function removeVacated(names: readonly string[]): Promise<boolean> {
    let removed = false;
    let wait = Infinity;
    for (const name of names) {
      const since = vacated.get(name) ?? lowWatermark.next();
      vacated.set(name, since);
      if (lowWatermark.oldest() < since) {
        wait = Math.min(wait, since);
        continue;
      }
      await extents.remove(name);
      removed = true;
    }
    if (wait < Infinity && !isWaiting) {
      isWaiting = true;
      void lowWatermark.whenReached(wait).then(() => {
        isWaiting = false;
        background.wake();
      });
    }
    return removed;
  }

  async function compactOne(extent: string, pauseFactor: number): Promise<void> {
    try {
      if (!measurements.has(extent)) {
        const { liveBytes, footprint } = await measureExtent(options, extent);
        measurements.set(extent, { live: liveBytes, overhead: Math.max(footprint - liveBytes, 0) });
        return;
      }
      let started = performance.now();
      await compactExtent(options, extent, async () => {
        await background.sleep(pauseFactor * (performance.now() - started));
        started = performance.now();
        return !background.isStopping;
      });
      const left = await liveBytesOf(extent);
      if (left > 0 && !background.isStopping)
        throw new CorruptChunk(`${left} bytes in extent ${extent} are needed and cannot be found in it`);
    } catch (error) {
      if (!(error instanceof CorruptChunk)) throw error;
      // Another one may have looked after this extent, and be done.
      if ((await liveBytesOf(extent)) > 0) reportCorruption(extent, error);
    }
  }

  async function liveBytesOf(extent: string): Promise<number> {
    return (await partition.read(sumLiveBytes)).get(extent) ?? 0;
  }

  /** Small chunks take much more than their bytes, which cannot be won back. A measurement ages as chunks go. */
  function estimateOverhead(extent: string, live: number): number {
    const measurement = measurements.get(extent);
    if (!measurement) return 0;
    if (live < 0.75 * measurement.live) measurements.delete(extent);
    return measurement.overhead * Math.min(live / measurement.live, 1);
  }

  async function reportMissing(list: readonly ExtentInfo[], live: ReadonlyMap<string, number>): Promise<void> {
    const unknown = (known: readonly ExtentInfo[]) => {
      const names = new Set(known.map(({ name }) => name));
      return [...live].filter(([name, bytes]) => bytes > 0 && !names.has(name) && !corrupt.has(name));
    };
    if (unknown(list).length === 0) return;
    // Some were made after the list.
    for (const [name, bytes] of unknown(await extents.list()))
      reportCorruption(name, new CorruptChunk(`extent ${name} is missing, and ${bytes} bytes in it are needed`));
  }

  function reportCorruption(extent: string, error: Error): void {
    corrupt.add(extent);
    onCorruption(error);
  }

  function dropStale(list: readonly ExtentInfo[]): void {
    const names = new Set(list.map(({ name }) => name));
    for (const notes of [vacated, measurements, extentBytes]) {
      for (const name of notes.keys()) if (!names.has(name)) notes.delete(name);
    }
  }

  return { wake: background.wake, idle: background.idle, stop: background.stop };
}

/**
 * Live bytes by extent. Of all accounts that have rows, not of those that the server was started with: an account that is
 * left out for a while shall find its bytes again.
 */
async function sumLiveBytes(at: Snapshot): Promise<Map<string, number>> {
  const live = new Map<string, number>();
  const everything: Range = { from: encodeKey([0n]), to: prefixEnd(encodeKey([0xffff_ffff_ffff_ffffn])) };
  for (let from = everything.from; ; ) {
    const [first] = await at.scan({ from, to: everything.to }, { limit: 1 });
    if (!first) return live;
    const account = decodeKey(first.key)[0] as bigint;
    for await (const row of scanRows(at, liveRowsIn(account))) {
      const extent = decodeKey(row.key)[2] as string;
      live.set(extent, (live.get(extent) ?? 0) + Number(decodeCounter(row)));
    }
    from = prefixEnd(encodeKey([account]));
  }
}

async function* scanRows(at: Snapshot, range: Range) {
  for (let { from } = range; ; ) {
    const rows = await at.scan({ from, to: range.to }, { limit: SLICE });
    yield* rows;
    const last = rows.at(-1);
    if (!last || rows.length < SLICE) return;
    from = keyAfter(last.key);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
