/** One group of commits: each is validated against those before it, and written into the overlay, where nobody sees it yet. */
import { plus, versionOfAdd } from '../counters.ts';
import type { Key } from '../keys.ts';
import { type Commit, type Instant, type Outcome, type Stamp, Unavailable, type Write } from '../partition.ts';
import { holds } from '../verify.ts';
import type { Layers } from './layers.ts';
import type { Entry } from './overlay.ts';
import type { View } from './reads.ts';
import type { ReservedClock } from './reserved-clock.ts';
import { holdsSince } from './validate.ts';

/** An error: the commit was refused. */
export type Decision = Outcome | Error;

export class CommitGroup {
  readonly number: number;
  /** When it is decided: what a commit says about time is held against this instant. */
  readonly now: Instant;
  readonly written = new Set<Entry>();
  private readonly layers: Layers;
  private readonly time: ReservedClock;
  private readonly oldestSnapshot: number;
  /** As the commits before have left it. */
  private readonly latest: View;

  constructor(number: number, layers: Layers, time: ReservedClock, oldestSnapshot: number) {
    this.number = number;
    this.now = time.current();
    this.layers = layers;
    this.time = time;
    this.oldestSnapshot = oldestSnapshot;
    this.latest = layers.viewOfUnshown(number);
  }

  decide(commit: Commit): Decision {
    const seen = commit.snapshotGroup;
    const { generations } = this.layers;
    const verdict =
      seen !== undefined && this.layers.holdsAllSince(seen)
        ? holdsSince(seen, commit, generations, this.latest, this.now)
        : holds(commit, this.latest, this.now);
    if (verdict === 'changed') return 'conflict';
    if (verdict !== 'holds') {
      if ('mistake' in verdict) return new Unavailable(verdict.mistake);
      this.time.observe(verdict.inTheWay);
      return 'conflict';
    }
    for (const { stamp, writes } of commit.bodies) {
      this.time.observe(stamp);
      for (const write of writes) this.apply(write, stamp);
    }
    return 'committed';
  }

  /** Nothing came of it. */
  undo(): void {
    this.layers.active.undo(this.written);
  }

  private apply(write: Write, stamp: Stamp): void {
    const { key } = write;
    if (write.kind === 'add') {
      const found = this.latest.get(key);
      const version = versionOfAdd(stamp, found?.version);
      this.time.observe(version);
      this.set(key, version, plus(found?.value, write.n));
    } else this.set(key, stamp, write.kind === 'put' ? write.value : undefined);
  }

  private set(key: Key, version: Stamp, value: Uint8Array | undefined): void {
    const entry = this.layers.active.write(key, this.number, this.oldestSnapshot);
    entry.set(version, value);
    this.written.add(entry);
    if (value) this.layers.emptyRanges.fill(key);
  }
}
