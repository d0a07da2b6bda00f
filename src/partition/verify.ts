import type { Key, Range } from './keys.ts';
import { COUNTER_BYTES, type Commit, type Instant, type Stamp } from './partition.ts';

/** The rows as they are at the commit. */
export interface Versions {
  versionOf(key: Key): Stamp | undefined;
  rowsIn(range: Range, limit: number): readonly { readonly key: Key; readonly version: Stamp }[];
  /** How long the row's value is. */
  bytesOf(key: Key): number | undefined;
}

/**
 * Whether everything that the bodies saw still stands, for engines that decide in this process.
 * A stamp that does not lie above what it replaces is answered with the version in its way. Adds replace nothing that
 * anybody relied on, so that only a row that is no counter stops them.
 */
export function holds(
  commit: Omit<Commit, 'id' | 'anchors'>,
  rows: Versions,
  now: Instant,
): 'holds' | 'changed' | { readonly inTheWay: Stamp } | { readonly mistake: string } {
  if (commit.before !== undefined && now >= commit.before) return 'changed';
  const known = new Map<Key, Stamp | undefined>();
  for (const { key, version } of commit.checks) {
    if (rows.versionOf(key) !== version) return 'changed';
    known.set(key, version);
  }
  for (const { range, rows: seen } of commit.ranges) {
    const found = rows.rowsIn(range, seen.length + 1);
    if (found.length !== seen.length) return 'changed';
    if (!found.every(({ key, version }, i) => key === seen[i]!.key && version === seen[i]!.version)) return 'changed';
  }
  for (const { stamp, writes } of commit.bodies) {
    for (const { kind, key } of writes) {
      if (kind === 'add') {
        const bytes = rows.bytesOf(key) ?? COUNTER_BYTES;
        if (bytes !== COUNTER_BYTES) return { mistake: `a counter is added to a row of ${bytes} bytes` };
        continue;
      }
      const version = known.has(key) ? known.get(key) : rows.versionOf(key);
      if (version !== undefined && version >= stamp) return { inTheWay: version };
    }
  }
  return 'holds';
}
