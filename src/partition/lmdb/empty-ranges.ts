/**
 * Ranges of keys in which scans have found removed rows only. Whoever takes the first of a queue again and again would otherwise walk
 * over all that were taken since the last checkpoint.
 */
import { after, type Key, type Range } from '../keys.ts';

interface EmptyRange extends Range {
  /** Empty for snapshots of this group and of later ones. */
  readonly since: number;
}

const RANGES_MAX = 32;
/** Fewer removed rows are walked over faster than they are remembered. */
export const REMOVED_MIN = 32;

export class EmptyRanges {
  /** In no order, and they may overlap. */
  private known: EmptyRange[] = [];

  add(from: Key, to: Key, since: number): void {
    // What it begins in or touches goes on with it.
    const [first] = this.known.filter((range) => range.from <= from && from <= range.to);
    const merged = first ? { from: first.from, to, since: Math.max(since, first.since) } : { from, to, since };
    this.known = this.known.filter((range) => range.from < merged.from || range.to > merged.to);
    this.known.push(merged);
    if (this.known.length > RANGES_MAX) this.known.shift();
  }

  /** A row is put: nothing that was known around its key holds any more. */
  fill(key: Key): void {
    if (this.known.length === 0 || !this.known.some(({ from, to }) => from <= key && key < to)) return;
    this.known = this.known.flatMap((range) => {
      const { from, to, since } = range;
      if (key < from || key >= to) return [range];
      return [...(from < key ? [{ from, to: key, since }] : []), { from: after(key), to, since }];
    });
  }

  clear(): void {
    this.known = [];
  }

  touches({ from, to }: Range): boolean {
    return this.known.length > 0 && this.known.some((range) => range.to > from && range.from < to);
  }

  /** What is left of the range for a snapshot of this group, in order. */
  *outside({ from, to }: Range, group: number): Iterable<Range> {
    let next = from;
    const known = this.known.filter((range) => range.since <= group && range.to > from && range.from < to);
    for (const range of known.sort((a, b) => (a.from < b.from ? -1 : 1))) {
      if (range.from > next) yield { from: next, to: range.from };
      if (range.to > next) next = range.to;
    }
    if (next < to) yield { from: next, to };
  }
}
