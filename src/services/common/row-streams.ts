/** Streams of rows in the order of names, of which the pages of lists are made. */
import { nextSlice } from '../../base/time-slices.ts';
import type { Key, KeyGrouping } from '../../partition/keys.ts';
import type { Timestamp } from '../../partition/partition.ts';

export interface RowStream<Found> {
  /** The next rows, at least one and about as many as this; undefined: nothing follows. */
  next(limit: number): Promise<readonly Found[] | undefined>;
  /** It is known that nothing follows. */
  hasEnded(): boolean;
}

/** Where a page begins, and what it may contain. */
export interface StreamRange {
  /** Among the keys of blob records. */
  readonly from: Key;
  readonly to: Key;
  /** The snapshots of this blob up to this one are before the page; the blob itself is at `from`. */
  readonly after?: { readonly name: string; readonly snapshot: Timestamp } | undefined;
  readonly grouping: KeyGrouping | undefined;
}

export function pageStream<Found>(
  readPage: (from: Key, limit: number) => Promise<{ readonly rows: readonly Found[]; readonly next: Key | undefined }>,
  first: Key,
): RowStream<Found> {
  let from: Key | undefined = first;
  return {
    async next(limit) {
      while (from !== undefined) {
        const { rows, next }: { rows: readonly Found[]; next: Key | undefined } = await readPage(from, limit);
        from = next;
        if (rows.length > 0) return rows;
        await nextSlice();
      }
      return undefined;
    },
    hasEnded: () => from === undefined,
  };
}
