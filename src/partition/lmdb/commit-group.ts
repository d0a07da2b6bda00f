/** One group of commits: each is validated against those before it, and written into the overlay, where nobody sees it yet. */
import { plus, versionOfAdd } from '../counters.ts';
import type { Key } from '../keys.ts';
import { type Commit, type Instant, type Outcome, type Stamp, Unavailable, type Write } from '../partition.ts';
import { type Changes, changesIn, holds } from '../validate.ts';
import type { Layers } from './layers.ts';
import type { Entry } from './overlay.ts';
import type { ReservedClock } from './reserved-clock.ts';

/** An error: the commit was refused. */
export type Decision = Outcome | Error;

export interface CommitGroup {
  readonly number: number;
  /** What commits say about time was held against this instant. */
  readonly now: Instant;
  readonly written: ReadonlySet<Entry>;
  readonly decisions: readonly Decision[];
}

/** @param oldest the earliest group that an open snapshot shows */
export function decideGroup(
  commits: readonly Commit[],
  number: number,
  { layers, time, oldest }: { layers: Layers; time: ReservedClock; oldest: number },
): CommitGroup {
  const now = time.current();
  const written = new Set<Entry>();
  const { active, generations, emptyRanges } = layers;
  /** As the commits before have left it. */
  const latest = layers.viewOfUnshown(number);

  /**
   * Only what was written after the snapshot is looked at, while all of that is in the overlay. Stamps were proposed after it, and the clock
   * has observed every version that it shows: so only a row that was written since can lie above a stamp.
   */
  const changesSince = (group: number): Changes => {
    const changed = (key: Key): Entry | undefined => {
      for (const generation of generations) {
        const entry = generation.changeSince(group, key);
        if (entry) return entry;
      }
      return undefined;
    };
    return {
      hasChanged: ({ key }) => changed(key) !== undefined,
      hasChangedIn: ({ range }) => generations.some((generation) => generation.hasChangeSince(group, range)),
      versionOf: (key) => changed(key)?.version,
      bytesOf: (key) => latest.bytesOf(key),
    };
  };

  function apply(write: Write, stamp: Stamp): void {
    const { key } = write;
    const found = write.kind === 'add' ? latest.get(key) : undefined;
    const version = write.kind === 'add' ? versionOfAdd(stamp, found?.version) : stamp;
    const value = write.kind === 'add' ? plus(found?.value, write.n) : write.kind === 'put' ? write.value : undefined;
    time.observe(version);
    const entry = active.write(key, number, oldest);
    entry.set(version, value);
    written.add(entry);
    if (value) emptyRanges.fill(key);
  }

  const decisions = commits.map((commit): Decision => {
    const seen = commit.snapshotGroup;
    const isInOverlay = seen !== undefined && layers.holdsAllSince(seen);
    const verdict = holds(commit, isInOverlay ? changesSince(seen) : changesIn(latest), now);
    if (verdict === 'changed') return 'conflict';
    if (verdict === 'holds') {
      for (const { stamp, writes } of commit.bodies) for (const write of writes) apply(write, stamp);
      return 'committed';
    }
    if ('mistake' in verdict) return new Unavailable(verdict.mistake);
    time.observe(verdict.inTheWay);
    return 'conflict';
  });
  active.count(written);
  return { number, now, written, decisions };
}
