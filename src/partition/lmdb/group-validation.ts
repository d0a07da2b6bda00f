/**
 * Validation of a commit group (optimistic concurrency control): each commit is validated against the rows as the commits before it leave
 * them, and written into the active generation and the volatile rows, where no snapshot sees it yet.
 */
import type { ReservedClock } from '../clock.ts';
import { isVolatile, type Key, reachesVolatile } from '../keys.ts';
import {
  type Commit,
  type Instant,
  type Outcome,
  type RangeCheck,
  type ReadCheck,
  type Timestamp,
  Unavailable,
} from '../partition.ts';
import { type Changes, changesAgainst, hasChangedIn, validateCommit } from '../validate.ts';
import { applyCommutative, leavesUnchanged, versionAfterCommutative } from '../values.ts';
import type { Layers } from './layers.ts';
import type { Entry } from './overlay.ts';
import type { LayeredView } from './reads.ts';

/** An error: the commit was refused. */
export type Decision = Outcome | Error;

export interface GroupOptions {
  readonly number: number;
  /** The group of the oldest open snapshot. */
  readonly oldestSnapshot: number;
  /** Deadlines of commits are verified at this instant. */
  readonly now: Instant;
}

export class GroupValidation {
  private readonly layers: Layers;
  private readonly clock: ReservedClock;
  private readonly now: Instant;
  private readonly latest: LayeredView;

  constructor(layers: Layers, clock: ReservedClock, { number, oldestSnapshot, now }: GroupOptions) {
    this.layers = layers;
    this.clock = clock;
    this.now = now;
    layers.active.beginGroup(number, oldestSnapshot);
    layers.volatile.beginGroup(number, oldestSnapshot);
    this.latest = layers.uncommittedView(number);
  }

  decide(commit: Commit): Decision {
    const { layers, latest } = this;
    const group = commit.snapshotGroup;
    const isInOverlay = group !== undefined && layers.overlayHasAllSince(group);
    const changes = isInOverlay ? new ChangesSince(group, latest) : changesAgainst(latest);
    const verdict = validateCommit(commit, changes, this.now);
    if (verdict === 'conflict') return 'conflict';
    if (verdict === 'valid') {
      for (const writeSet of commit.writeSets) this.apply(writeSet);
      return 'committed';
    }
    if ('invalid' in verdict) return new Unavailable(verdict.invalid);
    this.clock.observe(verdict.conflictingVersion);
    return 'conflict';
  }

  end(): void {
    this.layers.active.endGroup();
    this.layers.volatile.endGroup();
  }

  private apply({ timestamp, writes }: Commit['writeSets'][number]): void {
    const { clock, latest } = this;
    const { active, emptyRanges, volatile } = this.layers;
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
}

/**
 * Considers only writes after the snapshot of this group, while all of them are in the overlay. A commit's timestamps were proposed after
 * its snapshot, when the clock had observed every version in it: so only a row written since can have a version above them. Volatile rows
 * are compared: they are in memory anyway, and nothing tells of one that was removed since.
 */
class ChangesSince implements Changes {
  private readonly group: number;
  private readonly latest: LayeredView;

  constructor(group: number, latest: LayeredView) {
    this.group = group;
    this.latest = latest;
  }

  hasChanged({ key, version }: ReadCheck): boolean {
    return isVolatile(key) ? this.latest.versionOf(key) !== version : this.change(key) !== undefined;
  }

  hasChangedIn(check: RangeCheck): boolean {
    if (reachesVolatile(check.range)) return hasChangedIn(this.latest, check);
    return this.latest.generations.some((generation) => generation.hasChangeSince(this.group, check.range));
  }

  versionOf(key: Key): Timestamp | undefined {
    return isVolatile(key) ? this.latest.versionOf(key) : this.change(key)?.version;
  }

  bytesOf(key: Key): number | undefined {
    return this.latest.bytesOf(key);
  }

  private change(key: Key): Entry | undefined {
    for (const generation of this.latest.generations) {
      const entry = generation.changeSince(this.group, key);
      if (entry) return entry;
    }
    return undefined;
  }
}
