/** Pages for engines whose rows are in this process: bounded work per call, so that a long listing leaves the event loop to others. */
import { bytePrefixEnd, groupPrefix, type Key, type Range } from './keys.ts';
import type { Page, PageOptions, Row } from './partition.ts';

/** The work of one page at most. */
const WORK_ROWS_MAX = 250;
const WORK_BYTES_MAX = 256 << 10;
/** A seek costs about as much as reading this many rows. */
const SEEK_ROWS = 4;

export function readPage(
  rowsIn: (range: Range) => Iterable<Row>,
  { from, to }: Range,
  { limit, grouping }: PageOptions,
): Page {
  const rows: Row[] = [];
  let work = 0;
  let bytes = 0;
  let start: Key | undefined = from;
  while (start !== undefined && start < to) {
    const rest = rowsIn({ from: start, to });
    start = undefined;
    let group: Key | undefined;
    let skipped = 0;
    for (const row of rest) {
      work++;
      if (group !== undefined && row.key.startsWith(group)) {
        if (++skipped < SEEK_ROWS) continue;
        work += SEEK_ROWS;
        start = bytePrefixEnd(group);
        break;
      }
      if (rows.length >= limit || work > WORK_ROWS_MAX || bytes >= WORK_BYTES_MAX) return { rows, next: row.key };
      rows.push(row);
      bytes += row.value.length;
      group = grouping && groupPrefix(row.key, grouping);
      skipped = 0;
    }
  }
  return { rows, next: undefined };
}
