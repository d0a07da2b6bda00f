import type { Key, Range } from './keys.ts';
import { type Check, COUNTER_BYTES, type Commit, type Instant, type RangeCheck, type Stamp } from './partition.ts';

/** The rows as they are at the commit. */
export interface Versions {
  versionOf(key: Key): Stamp | undefined;
  rowsIn(range: Range, limit: number): readonly { readonly key: Key; readonly version: Stamp }[];
  /** How long the row's value is. */
  bytesOf(key: Key): number | undefined;
}

/** How the rows differ from what the bodies saw. */
export interface Changes extends Pick<Versions, 'bytesOf'> {
  hasChanged(check: Check): boolean;
  hasChangedIn(range: RangeCheck): boolean;
  /** Of a row that may lie above a stamp that was proposed since. */
  versionOf(key: Key): Stamp | undefined;
}

/** By comparing all that they saw. */
export function changesIn(rows: Versions): Changes {
  const known = new Map<Key, Stamp | undefined>();
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
export function holds(
  commit: Omit<Commit, 'id' | 'anchors'>,
  changes: Changes,
  now: Instant,
): 'holds' | 'changed' | { readonly inTheWay: Stamp } | { readonly mistake: string } {
  if (commit.before !== undefined && now >= commit.before) return 'changed';
  for (const check of commit.checks) if (changes.hasChanged(check)) return 'changed';
  for (const range of commit.ranges) if (changes.hasChangedIn(range)) return 'changed';
  for (const { stamp, writes } of commit.bodies) {
    for (const { kind, key } of writes) {
      if (kind === 'add') {
        const bytes = changes.bytesOf(key) ?? COUNTER_BYTES;
        if (bytes !== COUNTER_BYTES) return { mistake: `a counter is added to a row of ${bytes} bytes` };
        continue;
      }
      const version = changes.versionOf(key);
      if (version !== undefined && version >= stamp) return { inTheWay: version };
    }
  }
  return 'holds';
}
