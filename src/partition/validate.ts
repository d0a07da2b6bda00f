import type { Key, Range } from './keys.ts';
import {
  COUNTER_BYTES,
  type Commit,
  type Instant,
  type RangeCheck,
  type ReadCheck,
  type Timestamp,
} from './partition.ts';

/** The rows as they are at the commit. */
export interface CurrentRows {
  versionOf(key: Key): Timestamp | undefined;
  rowsIn(range: Range, limit: number): readonly { readonly key: Key; readonly version: Timestamp }[];
  /** How long the row's value is. */
  bytesOf(key: Key): number | undefined;
}

/** How the rows differ from what the bodies saw. */
export interface Changes extends Pick<CurrentRows, 'bytesOf'> {
  hasChanged(check: ReadCheck): boolean;
  hasChangedIn(range: RangeCheck): boolean;
  /** Of a row that may lie above a stamp that was proposed since. */
  versionOf(key: Key): Timestamp | undefined;
}

/** By comparing all that they saw. */
export function changesAgainst(rows: CurrentRows): Changes {
  const known = new Map<Key, Timestamp | undefined>();
  return {
    hasChanged({ key, version }) {
      known.set(key, version);
      return rows.versionOf(key) !== version;
    },
    hasChangedIn({ range, rows: seen }) {
      const found = rows.rowsIn(range, seen.length + 1);
      if (found.length !== seen.length) return true;
      return !found.every(({ key, version }, i) => key === seen[i]!.key && version === seen[i]!.version);
    },
    versionOf: (key) => (known.has(key) ? known.get(key) : rows.versionOf(key)),
    bytesOf: (key) => rows.bytesOf(key),
  };
}

/**
 * Whether everything that the bodies saw still stands, for engines that decide in this process.
 * A stamp that does not lie above what it replaces is answered with the version in its way. Adds replace nothing that
 * anybody relied on, so that only a row that is no counter stops them.
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
    for (const { kind, key } of writes) {
      if (kind === 'add') {
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
