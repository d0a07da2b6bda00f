/**
 * What a commit locks in the store before it looks at anything. A row is locked by its key, exclusive to write and shared to
 * check, and beneath that the groups it belongs to are locked shared. Who checks a range takes a group exclusive that holds all of
 * it, so that nothing can appear in it; so does who has more rows than locks may be taken.
 */
import { hash } from 'node:crypto';
import type { Key, Range } from '../keys.ts';
import type { Commit } from '../partition.ts';

/** By so many first parts rows are grouped: the store, an account, a kind of row in it, its container, content, stage ... */
const DEPTHS = [0, 1, 2, 4] as const;
/** The server's table of locks is small: 64 for each of its connections. */
export const LOCKS_MAX = 64;

export interface AdvisoryLock {
  readonly number: bigint;
  readonly exclusive: boolean;
}

export const queueLock = (store: string, queueKey: Key): bigint => lockNumber(`${store} anchor ${queueKey}`);

/** In the order in which everybody takes them, so that nobody waits in a circle. */
export function locksFor(store: string, { checks, ranges, writeSets }: Commit): AdvisoryLock[] {
  const rows = new Map<Key, boolean>();
  for (const { key } of checks) rows.set(key, false);
  for (const { writes } of writeSets) for (const { key } of writes) rows.set(key, true);
  // Only the parts that a row's groups need are looked for: names are long.
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

/** The groups that hold every key of the range: those of what all its keys begin with. */
export function groupsCovering({ from, to }: Range): LockGroup[] {
  let same = 0;
  while (same < from.length && same < to.length && from[same] === to[same]) same++;
  const beginning = from.slice(0, same);
  // A key may go on with 0xFF there, and then the zero that ends the beginning does not end a part.
  const open = beginning.endsWith('\x00') && to[same] === '\xff' && to.length > same + 1;
  return groupsContaining(open ? beginning.slice(0, -1) : beginning);
}

/** Where the first parts of a key end, from none of them to four; what is not a whole part is left out. */
function partEnds(key: string): number[] {
  const ends = [0];
  for (let at = 0; at < key.length && ends.length <= DEPTHS.at(-1)!; ) {
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
