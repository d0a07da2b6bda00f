/**
 * Garbage collector, step 2 of freeing content: removes extents without live bytes, and compacts extents with few of them. Step 1, which
 * removes rows and lowers live bytes, is services/maintenance/sweeper.ts. The collector stores no state of its own, so a killed process
 * leaves nothing to repair: the counters of live bytes and the files say everything.
 */
import { type BackgroundTask, startBackgroundTask } from '../../base/background-task.ts';
import { CorruptChunk, type ExtentInfo, epochOfExtent } from '../../extents/extents.ts';
import { activeEpochs } from '../membership/epochs.ts';
import type { LowWatermark } from './active-reads.ts';
import { type CollectorStore, compactExtent, measureExtent } from './compaction.ts';
import { sumLiveBytes } from './live-bytes.ts';
import { type CollectionBounds, type ExtentUse, planCollection } from './policy.ts';

export interface Collector {
  wake(): void;
  /** Resolves once all is done that can be done now. Extents that a running read may need wait for the end of that read. */
  idle(): Promise<void>;
  /** As of the last survey; undefined: there was none yet. */
  usage(): ExtentsUsage | undefined;
  stop(): Promise<void>;
}

/** Of the extents that this process collects. */
export interface ExtentsUsage {
  readonly extents: number;
  /** On the disk. */
  readonly bytes: number;
  /** Bytes that rows name, with what their chunks take beside them; the others are dead. */
  readonly liveBytes: number;
}

export interface CollectorOptions extends CollectorStore {
  readonly lowWatermark: LowWatermark;
  /** Whether this process also collects the extents of evicted processes. Each other member collects its own. */
  readonly isLeader?: () => boolean;
  /** Whether no other process writes to this store. */
  readonly isOwner?: boolean | undefined;
  /** Extents with bytes of uploads that are not released yet: a commit may still name these bytes. */
  readonly pinnedExtents: () => ReadonlySet<string>;
  readonly bounds?: CollectionBounds | undefined;
  readonly onFailure?: (error: unknown) => void;
  /** Called once for each corrupt extent. */
  readonly onCorruption?: (error: Error) => void;
}

const EVERY_MILLISECONDS = 2_000;
/** The pause between two batches of a compaction, as a multiple of the time that the first of them took: requests go first. */
const PAUSE_FACTOR = 1;
const PAUSE_FACTOR_URGENT = 0.1;

interface Measurement {
  /** Value of the counter of live bytes at that time. */
  readonly live: number;
  /** Bytes that the live chunks take beside their contents. */
  readonly overhead: number;
}

export function startCollector(options: CollectorOptions): Collector {
  return new BackgroundCollector(options);
}

class BackgroundCollector implements Collector {
  readonly #options: CollectorOptions;
  readonly #background: BackgroundTask;
  readonly wake: Collector['wake'];
  readonly idle: Collector['idle'];
  readonly stop: Collector['stop'];
  /**
   * Sealed extents without live bytes. The value is `lowWatermark.next()`, taken after the snapshot that found no live byte:
   * once `lowWatermark.oldest()` has reached it, no running read can need the extent.
   */
  readonly #vacated = new Map<string, number>();
  readonly #measurements = new Map<string, Measurement>();
  /** Sizes of sealed extents, which do not change. */
  readonly #extentBytes = new Map<string, number>();
  /** Extents with a chunk that cannot be read. They stay where they are while a row needs them. */
  readonly #corrupt = new Set<string>();
  #isWaitingForReads = false;
  #usage: ExtentsUsage | undefined;
  /** What the last survey was based on, if it found nothing to do. */
  #idleInputs: string | undefined;

  constructor(options: CollectorOptions) {
    this.#options = options;
    this.#background = startBackgroundTask(
      () => this.#run(),
      EVERY_MILLISECONDS,
      () => {
        if (!options.isOwner || this.#idleInputs !== this.#inputs()) this.#background.wake();
      },
    );
    this.wake = this.#background.wake;
    this.idle = this.#background.idle;
    this.stop = this.#background.stop;
  }

  /** Everything that can change what a survey finds, in a store that no other process writes to. */
  #inputs(): string {
    const { partition, extents, pinnedExtents } = this.#options;
    return [partition.settledCommits(), extents.chunksBegun(), extents.isLowOnSpace(), ...pinnedExtents()].join();
  }

  usage(): ExtentsUsage | undefined {
    return this.#usage;
  }

  async #run(): Promise<void> {
    this.#idleInputs = undefined;
    try {
      let before = this.#inputs();
      while (!this.#background.isStopping && (await this.#step())) {
        await this.#background.sleep(0);
        before = this.#inputs();
      }
      this.#idleInputs = before;
    } catch (error) {
      // The timer starts the next attempt.
      if (!this.#background.isStopping) this.#options.onFailure?.(error);
    }
  }

  /** @returns whether something was done, so that another survey may find more to do */
  async #step(): Promise<boolean> {
    const { extents, bounds } = this.#options;
    const uses = await this.#surveyExtents();
    const { remove, seal, compact, isUrgent } = planCollection(uses, bounds, extents.isLowOnSpace());
    const removed = await this.#removeVacated(remove);
    for (const extent of seal) await extents.seal(extent);
    const [lowestLive] = compact;
    if (lowestLive !== undefined) await this.#compact(lowestLive, isUrgent ? PAUSE_FACTOR_URGENT : PAUSE_FACTOR);
    return removed || seal.length > 0 || lowestLive !== undefined;
  }

  /**
   * The order of list, pins and snapshot must not change. An extent that is sealed in the list gets no more chunks; the upload that
   * wrote one of its chunks either still pins the extent, or has committed before the snapshot. If the process that created the
   * extent has no epoch in the snapshot, it cannot commit any more.
   */
  async #surveyExtents(): Promise<ExtentUse[]> {
    const { partition, extents, epoch, pinnedExtents, isLeader = () => true } = this.#options;
    const all = await extents.list();
    const pinnedNow = new Set(pinnedExtents());
    const { live, members } = await partition.read(async (at) => ({
      members: await activeEpochs(at),
      live: await sumLiveBytes(at),
    }));
    const isResponsibleFor = (name: string): boolean => {
      const creator = epochOfExtent(name);
      return creator === epoch || (isLeader() && !members.has(creator));
    };
    await this.#reportMissing(all, new Map([...live].filter(([name]) => isResponsibleFor(name))));
    const list = all.filter(({ name }) => isResponsibleFor(name));
    this.#dropStale(list);
    const uses: ExtentUse[] = [];
    for (const { name, open } of list) {
      const liveBytes = live.get(name) ?? 0;
      if (liveBytes > 0 && this.#corrupt.has(name)) continue;
      const bytes = this.#extentBytes.get(name) ?? (await extents.bytesOf(name));
      if (!open) this.#extentBytes.set(name, bytes);
      const pinned = pinnedNow.has(name);
      uses.push({
        ...{ name, bytes, open, pinned },
        live: liveBytes === 0 ? 0 : liveBytes + this.#estimateOverhead(name, liveBytes),
      });
    }
    this.#usage = sumUsage(uses);
    return uses;
  }

  /** No row leads to a vacated extent, but a read that began earlier may already know the way. */
  async #removeVacated(names: readonly string[]): Promise<boolean> {
    const { extents, lowWatermark } = this.#options;
    let removed = false;
    let wait = Infinity;
    for (const name of names) {
      const since = this.#vacated.get(name) ?? lowWatermark.next();
      this.#vacated.set(name, since);
      if (lowWatermark.oldest() < since) {
        wait = Math.min(wait, since);
        continue;
      }
      await extents.remove(name);
      removed = true;
    }
    if (wait < Infinity && !this.#isWaitingForReads) {
      this.#isWaitingForReads = true;
      void lowWatermark.whenReached(wait).then(() => {
        this.#isWaitingForReads = false;
        this.#background.wake();
      });
    }
    return removed;
  }

  /** The first call for an extent only measures it, as the overhead may show that a compaction is not worth its cost. */
  async #compact(extent: string, pauseFactor: number): Promise<void> {
    const background = this.#background;
    try {
      if (!this.#measurements.has(extent)) {
        const { liveBytes, footprint } = await measureExtent(this.#options, extent);
        this.#measurements.set(extent, { live: liveBytes, overhead: Math.max(footprint - liveBytes, 0) });
        return;
      }
      let started = performance.now();
      await compactExtent(this.#options, extent, async () => {
        await background.sleep(pauseFactor * (performance.now() - started));
        started = performance.now();
        return !background.isStopping;
      });
      const left = await this.#liveBytesOf(extent);
      if (left > 0 && !background.isStopping)
        throw new CorruptChunk(`${left} bytes in extent ${extent} are needed and cannot be found in it`);
    } catch (error) {
      if (!(error instanceof CorruptChunk)) throw error;
      // Another process may have compacted this extent meanwhile.
      if ((await this.#liveBytesOf(extent)) > 0) this.#reportCorruption(extent, error);
    }
  }

  async #liveBytesOf(extent: string): Promise<number> {
    return (await this.#options.partition.read(sumLiveBytes)).get(extent) ?? 0;
  }

  /** Small chunks take much more than their bytes, and a compaction cannot reclaim that. A measurement ages as chunks are removed. */
  #estimateOverhead(extent: string, live: number): number {
    const measurement = this.#measurements.get(extent);
    if (!measurement) return 0;
    if (live < 0.75 * measurement.live) this.#measurements.delete(extent);
    return measurement.overhead * Math.min(live / measurement.live, 1);
  }

  async #reportMissing(list: readonly ExtentInfo[], live: ReadonlyMap<string, number>): Promise<void> {
    const missingFrom = (listed: readonly ExtentInfo[]) => {
      const names = new Set(listed.map(({ name }) => name));
      return [...live].filter(([name, bytes]) => bytes > 0 && !names.has(name) && !this.#corrupt.has(name));
    };
    if (missingFrom(list).length === 0) return;
    // An extent may have been created after the list was made.
    for (const [name, bytes] of missingFrom(await this.#options.extents.list()))
      this.#reportCorruption(name, new CorruptChunk(`extent ${name} is missing, and ${bytes} bytes in it are needed`));
  }

  #reportCorruption(extent: string, error: Error): void {
    this.#corrupt.add(extent);
    this.#options.onCorruption?.(error);
  }

  #dropStale(list: readonly ExtentInfo[]): void {
    const names = new Set(list.map(({ name }) => name));
    for (const known of [this.#vacated, this.#measurements, this.#extentBytes]) {
      for (const name of known.keys()) if (!names.has(name)) known.delete(name);
    }
  }
}

function sumUsage(uses: readonly ExtentUse[]): ExtentsUsage {
  const bytes = uses.reduce((sum, use) => sum + use.bytes, 0);
  // A chunk that is being written counts as live before its bytes are on the disk.
  const liveBytes = uses.reduce((sum, use) => sum + Math.min(use.live, use.bytes), 0);
  return { extents: uses.length, bytes, liveBytes };
}
