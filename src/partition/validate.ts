/**
 * OCC validation: whether all that the transactions read is unchanged, and every timestamp is above the version it replaces.
 * postgres/functions.ts does the same in SQL.
 */
import type { Key, Range } from './keys.ts';
import type { Commit, Instant, RangeCheck, ReadCheck, Timestamp } from './partition.ts';
import { COUNTER_BYTES, isCommutative } from './values.ts';

/** The rows at the time of the commit. */
export interface CurrentRows {
  versionOf(key: Key): Timestamp | undefined;
  rowsIn(range: Range, limit: number): readonly { readonly key: Key; readonly version: Timestamp }[];
  /** The length of the row's value. */
  bytesOf(key: Key): number | undefined;
}

/** How the rows differ from those that the transactions read. */
export interface Changes extends Pick<CurrentRows, 'bytesOf'> {
  hasChanged(check: ReadCheck): boolean;
  hasChangedIn(range: RangeCheck): boolean;
  /** Needed only where the version may be above a timestamp that was proposed since the snapshot. */
  versionOf(key: Key): Timestamp | undefined;
}

/** Compares every row that was read. */
export function changesAgainst(rows: CurrentRows): Changes {
  const known = new Map<Key, Timestamp | undefined>();
  return {
    hasChanged({ key, version }) {
      known.set(key, version);
      return rows.versionOf(key) !== version;
    },
    hasChangedIn: (check) => hasChangedIn(rows, check),
    versionOf: (key) => (known.has(key) ? known.get(key) : rows.versionOf(key)),
    bytesOf: (key) => rows.bytesOf(key),
  };
}

export function hasChangedIn(rows: Pick<CurrentRows, 'rowsIn'>, { range, rows: seen }: RangeCheck): boolean {
  const found = rows.rowsIn(range, seen.length + 1);
  if (found.length !== seen.length) return true;
  return !found.every(({ key, version }, i) => key === seen[i]!.key && version === seen[i]!.version);
}

/**
 * For engines that decide in this process. A timestamp that is not above the version it replaces is answered with that version.
 * No transaction depends on what a commutative write replaces, so only a row that is no number makes it invalid.
 */
export function validateCommit(
  commit: Omit<Commit, 'id' | 'queueKeys'>,
  changes: Changes,
  now: Instant,
): 'valid' | 'conflict' | { readonly conflictingVersion: Timestamp } | { readonly invalid: string } {
  if (commit.deadline !== undefined && now >= commit.deadline) return 'conflict';
  for (const check of commit.checks) if (changes.hasChanged(check)) return 'conflict';
  for (const range of commit.ranges) if (changes.hasChangedIn(range)) return 'conflict';
  for (const { timestamp, writes } of commit.writeSets) {
    for (const write of writes) {
      const { key } = write;
      if (isCommutative(write)) {
        const bytes = changes.bytesOf(key) ?? COUNTER_BYTES;
        if (bytes !== COUNTER_BYTES) return { invalid: `a counter is added to a row of ${bytes} bytes` };
        continue;
      }
      const version = changes.versionOf(key);
      if (version !== undefined && version >= timestamp) return { conflictingVersion: version };
    }
  }
  return 'valid';
}
