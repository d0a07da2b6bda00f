/**
 * Multi-granularity locking with advisory locks. A commit locks before it validates: a row by its key, exclusive for a write and
 * shared for a check, and the groups that contain the row shared. A range check locks a group that contains the range exclusive, so
 * that no row can appear in it; so does a commit with more rows than locks may be taken (lock escalation).
 */
import { hash } from 'node:crypto';
import { isVolatile, type Key, type Range } from '../keys.ts';
import type { Commit } from '../partition.ts';

/** Groups are rows with this many first parts in common: all logged or all volatile rows, an account, a kind of row in it, its container or content ... */
const DEPTHS = [0, 1, 2, 4] as const;
/** The server's table of locks is small: 64 for each of its connections. */
export const LOCKS_MAX = 64;

export interface AdvisoryLock {
  readonly number: bigint;
  readonly exclusive: boolean;
}

export const queueLock = (store: string, queueKey: Key): bigint => lockNumber(`${store} anchor ${queueKey}`);

/**
 * Sorted: all commits take locks in one order, so that there are no deadlocks.
 * @param commit no range of which has both logged and volatile rows
 */
export function locksFor(store: string, { checks, ranges, writeSets }: Commit): AdvisoryLock[] {
  const rows = new Map<Key, boolean>();
  for (const { key } of checks) rows.set(key, false);
  for (const { writes } of writeSets) for (const { key } of writes) rows.set(key, true);
  // Only the parts that the groups need are parsed: names are long.
  const known = [...rows].map(([key, exclusive]) => ({ key, exclusive, groups: groupsContaining(key) }));

  for (const depth of [Infinity, 4, 2, 1, 0]) {
    const locks = new Map<string, boolean>();
    const take = (name: string, exclusive: boolean) => locks.set(name, exclusive || (locks.get(name) ?? false));
    for (const { range } of ranges) {
      const groups = groupsCovering(range).filter((group) => group.depth <= depth);
      for (const [i, { name }] of groups.entries()) take(name, i === groups.length - 1);
    }
    for (const { key, exclusive, groups } of known) {
      const wide = groups.filter((group) => group.depth <= depth);
      for (const [i, { name }] of wide.entries()) take(name, depth < Infinity && i === wide.length - 1);
      if (depth === Infinity) take(`row ${key}`, exclusive);
    }
    if (locks.size > LOCKS_MAX && depth > 0) continue;
    return [...locks]
      .map(([name, exclusive]) => ({ number: lockNumber(`${store} ${name}`), exclusive }))
      .sort((a, b) => (a.number < b.number ? -1 : 1));
  }
  return [];
}

interface LockGroup {
  readonly depth: number;
  readonly name: string;
}

function groupsContaining(key: string): LockGroup[] {
  const ends = partEnds(key);
  return DEPTHS.filter((depth) => depth < ends.length).map((depth) => ({
    depth,
    name: `group ${key.slice(0, ends[depth])}`,
  }));
}

/** The groups that contain every key of the range: those of the keys' common prefix. */
function groupsCovering({ from, to }: Range): LockGroup[] {
  // No key follows the volatile ones.
  let common = isVolatile(from) ? 1 : 0;
  while (common < from.length && common < to.length && from[common] === to[common]) common++;
  const prefix = from.slice(0, common);
  // A key may continue with 0xFF there, and then the zero at the end of the prefix does not end a part.
  const isOpen = prefix.endsWith('\x00') && to[common] === '\xff' && to.length > common + 1;
  return groupsContaining(isOpen ? prefix.slice(0, -1) : prefix);
}

/** Where the first parts of a key end, starting with the end of no part, at most four; an incomplete part is left out. */
function partEnds(key: string): number[] {
  const start = isVolatile(key as Key) ? 1 : 0;
  const ends = [start];
  for (let at = start; at < key.length && ends.length <= DEPTHS.at(-1)!; ) {
    if (key[at] === '\x03') at += 9;
    else {
      let end = key.indexOf('\x00', at + 1);
      while (end >= 0 && key[end + 1] === '\xff') end = key.indexOf('\x00', end + 2);
      if (end < 0) break;
      at = end + 1;
    }
    if (at <= key.length) ends.push(at);
  }
  return ends;
}

function lockNumber(name: string): bigint {
  return hash('sha1', name, 'buffer').readBigInt64BE();
}
