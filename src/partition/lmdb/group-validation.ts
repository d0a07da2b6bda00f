/**
 * Validation of a commit group (optimistic concurrency control): each commit is validated against the rows as the commits before it leave
 * them, and written into the active generation and the volatile rows, where no snapshot sees it yet.
 */
import type { ReservedClock } from '../clock.ts';
import { isVolatile, type Key, reachesVolatile } from '../keys.ts';
import { type Commit, type Instant, type Outcome, Unavailable } from '../partition.ts';
import { type Changes, changesAgainst, validateCommit } from '../validate.ts';
import { applyCommutative, leavesUnchanged, versionAfterCommutative } from '../values.ts';
import type { Layers } from './layers.ts';
import type { Entry } from './overlay.ts';

/** An error: the commit was refused. */
export type Decision = Outcome | Error;

export interface GroupOptions {
  readonly number: number;
  /** The group of the oldest open snapshot. */
  readonly oldestSnapshot: number;
  /** Deadlines of commits are verified at this instant. */
  readonly now: Instant;
}

export function validateGroup(
  commits: readonly Commit[],
  layers: Layers,
  clock: ReservedClock,
  { number, oldestSnapshot, now }: GroupOptions,
): Decision[] {
  const { active, generations, emptyRanges, volatile } = layers;
  active.beginGroup(number, oldestSnapshot);
  volatile.beginGroup(number, oldestSnapshot);
  const latest = layers.uncommittedView(number);

  /**
   * Considers only writes after the snapshot, while all of them are in the overlay. A commit's timestamps were proposed after its snapshot,
   * when the clock had observed every version in it: so only a row written since can have a version above them. Volatile rows are compared:
   * they are in memory anyway, and nothing tells of one that was removed since.
   */
  const changesSince = (group: number): Changes => {
    const change = (key: Key): Entry | undefined => {
      for (const generation of generations) {
        const entry = generation.changeSince(group, key);
        if (entry) return entry;
      }
      return undefined;
    };
    const compared = changesAgainst(latest);
    return {
      hasChanged: (check) => (isVolatile(check.key) ? compared.hasChanged(check) : change(check.key) !== undefined),
      hasChangedIn: (check) =>
        reachesVolatile(check.range)
          ? compared.hasChangedIn(check)
          : generations.some((generation) => generation.hasChangeSince(group, check.range)),
      versionOf: (key) => (isVolatile(key) ? compared.versionOf(key) : change(key)?.version),
      bytesOf: (key) => latest.bytesOf(key),
    };
  };

  function apply({ timestamp, writes }: Commit['writeSets'][number]): void {
    clock.observe(timestamp);
    for (const write of writes) {
      const { key } = write;
      const rows = isVolatile(key) ? volatile : active;
      if (write.kind === 'remove') {
        rows.write(key, timestamp, undefined);
        continue;
      }
      if (rows === active) emptyRanges.excludeKey(key);
      if (write.kind === 'put') {
        rows.write(key, timestamp, write.value);
        continue;
      }
      const found = latest.get(key);
      if (leavesUnchanged(found?.value, write)) continue;
      const version = versionAfterCommutative(timestamp, found?.version);
      clock.observe(version);
      rows.write(key, version, applyCommutative(found?.value, write));
    }
  }

  const decisions = commits.map((commit): Decision => {
    const group = commit.snapshotGroup;
    const isInOverlay = group !== undefined && layers.overlayHasAllSince(group);
    const verdict = validateCommit(commit, isInOverlay ? changesSince(group) : changesAgainst(latest), now);
    if (verdict === 'conflict') return 'conflict';
    if (verdict === 'valid') {
      for (const writeSet of commit.writeSets) apply(writeSet);
      return 'committed';
    }
    if ('invalid' in verdict) return new Unavailable(verdict.invalid);
    clock.observe(verdict.conflictingVersion);
    return 'conflict';
  });
  active.endGroup();
  volatile.endGroup();
  return decisions;
}
