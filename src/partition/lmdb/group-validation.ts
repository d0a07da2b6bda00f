/** One group of commits: each is validated against those before it, and written into the overlay, where nobody sees it yet. */

import type { ReservedClock } from '../clock.ts';
import type { Key } from '../keys.ts';
import { type Commit, type Instant, type Outcome, Unavailable } from '../partition.ts';
import { type Changes, changesAgainst, validateCommit } from '../validate.ts';
import { addToCounter, versionAfterAdd } from '../values.ts';
import type { Layers } from './layers.ts';
import type { Entry } from './overlay.ts';

/** An error: the commit was refused. */
export type Decision = Outcome | Error;

export interface GroupOptions {
  readonly number: number;
  /** The earliest group that an open snapshot shows. */
  readonly oldestSnapshot: number;
  /** What commits say about time is verified at this instant. */
  readonly now: Instant;
}

export function validateGroup(
  commits: readonly Commit[],
  layers: Layers,
  time: ReservedClock,
  { number, oldestSnapshot, now }: GroupOptions,
): Decision[] {
  const { active, generations, emptyRanges } = layers;
  active.beginGroup(number, oldestSnapshot);
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

  function apply({ timestamp, writes }: Commit['writeSets'][number]): void {
    time.observe(timestamp);
    for (const write of writes) {
      const { key } = write;
      if (write.kind === 'remove') {
        active.write(key, timestamp, undefined);
        continue;
      }
      emptyRanges.excludeKey(key);
      if (write.kind === 'put') {
        active.write(key, timestamp, write.value);
        continue;
      }
      const found = latest.get(key);
      const version = versionAfterAdd(timestamp, found?.version);
      time.observe(version);
      active.write(key, version, addToCounter(found?.value, write.n));
    }
  }

  const decisions = commits.map((commit): Decision => {
    const seen = commit.snapshotGroup;
    const isInOverlay = seen !== undefined && layers.overlayHasAllSince(seen);
    const verdict = validateCommit(commit, isInOverlay ? changesSince(seen) : changesAgainst(latest), now);
    if (verdict === 'conflict') return 'conflict';
    if (verdict === 'valid') {
      for (const writeSet of commit.writeSets) apply(writeSet);
      return 'committed';
    }
    if ('invalid' in verdict) return new Unavailable(verdict.invalid);
    time.observe(verdict.conflictingVersion);
    return 'conflict';
  });
  active.endGroup();
  return decisions;
}
