/**
 * Ranges of keys in which scans have found removed rows only. Whoever takes the first of a queue again and again would otherwise walk
 * over all that were taken since the last checkpoint.
 */
import { type Key, keyAfter, type Range } from '../keys.ts';

interface EmptyRange extends Range {
  /** Empty for snapshots of this group and of later ones. */
  readonly since: number;
}

const RANGES_MAX = 32;
/** Fewer removed rows are walked over faster than they are remembered. */
export const REMOVED_MIN = 32;

export class EmptyRanges {
  /** In no order, and they may overlap. */
  private ranges: EmptyRange[] = [];

  add(from: Key, to: Key, since: number): void {
    // One that ends where this one begins goes on with it.
    const before = this.ranges.find((range) => range.from <= from && from <= range.to);
    const added = { from: before?.from ?? from, to, since: Math.max(since, before?.since ?? 0) };
    this.ranges = this.ranges.filter((range) => range.from < added.from || range.to > added.to).slice(1 - RANGES_MAX);
    this.ranges.push(added);
  }

  /** A row is put. */
  excludeKey(key: Key): void {
    if (!this.ranges.some(({ from, to }) => from <= key && key < to)) return;
    this.ranges = this.ranges.flatMap((range) => {
      if (key < range.from || key >= range.to) return [range];
      const parts = [
        { ...range, to: key },
        { ...range, from: keyAfter(key) },
      ];
      return parts.filter(({ from, to }) => from < to);
    });
  }

  clear(): void {
    this.ranges = [];
  }

  overlaps({ from, to }: Range): boolean {
    return this.ranges.length > 0 && this.ranges.some((range) => range.to > from && range.from < to);
  }

  /** What is left of the range for a snapshot of this group, in order. */
  *outside({ from, to }: Range, group: number): Iterable<Range> {
    let next = from;
    for (const range of this.ranges.toSorted((a, b) => (a.from < b.from ? -1 : 1))) {
      if (range.since > group || range.to <= next || range.from >= to) continue;
      if (range.from > next) yield { from: next, to: range.from };
      next = range.to;
    }
    if (next < to) yield { from: next, to };
  }
}
