/** One group of commits: each is validated against those before it, and written into the overlay, where nobody sees it yet. */
import { addToCounter, versionAfterAdd } from '../counters.ts';
import type { Key } from '../keys.ts';
import { type Commit, type Instant, type Outcome, type Timestamp, Unavailable, type Write } from '../partition.ts';
import { type Changes, changesAgainst, validateCommit } from '../validate.ts';
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
export function validateGroup(
  commits: readonly Commit[],
  number: number,
  { layers, time, oldestSnapshot }: { layers: Layers; time: ReservedClock; oldestSnapshot: number },
): CommitGroup {
  const now = time.current();
  const written = new Set<Entry>();
  const { active, generations, emptyRanges } = layers;
  /** As the commits before have left it. */
  const latest = layers.uncommittedView(number);

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

  function apply(write: Write, stamp: Timestamp): void {
    const { key } = write;
    const found = write.kind === 'add' ? latest.get(key) : undefined;
    const version = write.kind === 'add' ? versionAfterAdd(stamp, found?.version) : stamp;
    const value =
      write.kind === 'add' ? addToCounter(found?.value, write.n) : write.kind === 'put' ? write.value : undefined;
    time.observe(version);
    const entry = active.write(key, number, oldestSnapshot);
    entry.set(version, value);
    written.add(entry);
    if (value) emptyRanges.excludeKey(key);
  }

  const decisions = commits.map((commit): Decision => {
    const seen = commit.snapshotGroup;
    const isInOverlay = seen !== undefined && layers.overlayHasAllSince(seen);
    const verdict = validateCommit(commit, isInOverlay ? changesSince(seen) : changesAgainst(latest), now);
    if (verdict === 'conflict') return 'conflict';
    if (verdict === 'valid') {
      for (const { timestamp, writes } of commit.writeSets) for (const write of writes) apply(write, timestamp);
      return 'committed';
    }
    if ('invalid' in verdict) return new Unavailable(verdict.invalid);
    time.observe(verdict.conflictingVersion);
    return 'conflict';
  });
  active.addToEstimate(written);
  return { number, now, written, decisions };
}
