/** Query Entities and Query Tables: a page is read on one snapshot, in slices between which the event loop gets its turn. */
import { performance } from 'node:perf_hooks';
import { type Key, keyAfter, type Range } from '../../partition/keys.ts';
import type { Row, ScanOptions, Snapshot } from '../../partition/partition.ts';
import { stoppedEarly } from '../../partition/values.ts';
import { isMetricsTable } from '../../rules/names.ts';
import { compileFilter, countComparisons, type Filter, keyRangesFrom } from '../../rules/table/filter.ts';
import { type EntityBound, nextSlice, type Storage } from '../common/storage.ts';
import { type EntityKeys, entityFromRow, propertyValue, type StoredEntity } from './entity-rows.ts';
import { keyRangesFor, nameRangesFor } from './query-ranges.ts';
import { checkReadableName } from './request-checks.ts';
import { decodeTableName, readTableId } from './rows.ts';
import type { TableInput } from './tables.ts';

const PAGE_ITEMS = 1_000;
const PAGE_BYTES = 4 << 20;
const PAGE_MILLISECONDS = 5_000;
const SLICE_ROWS = 200;
/** The first slice of a page runs at once, however many queries begin in the same turn: it is short, and enough for most pages. */
const FIRST_SLICE_ROWS = 32;
const SLICE_BYTES = 512 << 10;
/** A seek costs about as much as reading this many rows. */
const SEEK_ROWS = 4;
/** To search or write this many bytes costs about as much as reading a row. */
const ROW_BYTES = 2 << 10;

const now = (): number => performance.now();

export interface QueryInput extends TableInput {
  readonly filter?: Filter | undefined;
  readonly top?: number | undefined;
  readonly from?: EntityBound | undefined;
}

/** Receives the entities of a page as they are found. */
export interface EntitySink {
  /** Returns the bytes that were added to the page; undefined: they would be more than `bytesMax`, and nothing was added. */
  add(entity: StoredEntity, bytesMax: number): number | undefined;
}

/**
 * Resolves with the first entity of the next page; undefined: there is none.
 * @param milliseconds a monotonic clock
 */
export async function queryEntities(
  storage: Storage,
  { table, filter, top, from }: QueryInput,
  page: EntitySink,
  milliseconds: () => number = now,
): Promise<EntityKeys | undefined> {
  checkReadableName(table);
  const { account, granted } = storage;
  const keyRanges = keyRangesFrom(filter);
  const test = filter && compileFilter(filter);
  return storage.partition.read(async (at) => {
    const id = await readTableId(at, storage, table);
    const ranges = keyRangesFor(account, id, { keyRanges, granted: granted?.entities, from });
    const next = await readPage(at, ranges, {
      itemsMax: top,
      takesAll: !test,
      comparisons: filter ? countComparisons(filter) : 0,
      milliseconds,
      take(row, bytesMax) {
        const entity = entityFromRow(row);
        const isWanted = !test || test((name, lengthMax) => propertyValue(entity, name, lengthMax));
        return isWanted ? (page.add(entity, bytesMax) ?? 'page full') : 'filtered out';
      },
    });
    const first = next && entityFromRow(next);
    return first && { partitionKey: first.partitionKey, rowKey: first.rowKey };
  });
}

export interface TablePage {
  readonly tables: string[];
  readonly next: string | undefined;
}

/** `from`: the first table of the page. */
export async function queryTables(
  { partition, account }: Storage,
  { filter, top, from }: { filter?: Filter | undefined; top?: number | undefined; from?: string | undefined },
  milliseconds: () => number = now,
): Promise<TablePage> {
  const test = filter && compileFilter(filter);
  const ranges = nameRangesFor(account, filter, from);
  return partition.read(async (at) => {
    const tables: string[] = [];
    const next = await readPage(at, ranges, {
      itemsMax: top,
      takesAll: !test,
      comparisons: filter ? countComparisons(filter) : 0,
      milliseconds,
      take(row) {
        const value = decodeTableName(row);
        if (isMetricsTable(value)) return 'filtered out';
        const isWanted = !test || test((name) => (name === 'TableName' ? { type: 'Edm.String', value } : undefined));
        return isWanted ? tables.push(value) && value.length : 'filtered out';
      },
    });
    return { tables, next: next && decodeTableName(next) };
  });
}

interface PageQuery {
  readonly itemsMax: number | undefined;
  /** There is no filter. */
  readonly takesAll: boolean;
  /** How many properties of a row the filter looks up. */
  readonly comparisons: number;
  readonly milliseconds: () => number;
  /** Returns the bytes that were added to the page. 'page full': they would be more than `bytesMax`, so the row begins the next page. */
  take(row: Row, bytesMax: number): number | 'page full' | 'filtered out';
}

/** Resolves with the first row of the next page. */
async function readPage(at: Snapshot, ranges: readonly Range[], page: PageQuery): Promise<Row | undefined> {
  const { itemsMax = PAGE_ITEMS, takesAll, comparisons, milliseconds, take } = page;
  // With a continuation a client that follows it would never come to an end.
  if (itemsMax === 0) return undefined;
  const until = milliseconds() + PAGE_MILLISECONDS;
  let left = Math.min(itemsMax, PAGE_ITEMS);
  let bytes = 0;
  let work = 0;
  let workMax = FIRST_SLICE_ROWS;
  let isLate = false;
  const pause = async () => {
    work = 0;
    workMax = SLICE_ROWS;
    await nextSlice();
    isLate ||= milliseconds() >= until;
  };
  const isFull = (row?: Row) =>
    left === 0 || isLate || (row !== undefined && bytes > 0 && bytes + row.value.length > PAGE_BYTES);
  for (const { from, to } of ranges) {
    for (let next: Key | undefined = from; next !== undefined; ) {
      // One row after the last item shows whether there is more.
      const rowsMax = takesAll ? Math.min(workMax, left + 1) : workMax;
      const slice: ScanOptions = { limit: isFull() ? 1 : rowsMax, bytesMax: SLICE_BYTES };
      const rows = await at.scan({ from: next, to }, slice);
      work += SEEK_ROWS;
      for (const row of rows) {
        if (isFull(row)) return row;
        const grown = take(row, bytes > 0 ? PAGE_BYTES - bytes : Number.POSITIVE_INFINITY);
        if (grown === 'page full') return row;
        if (grown !== 'filtered out') {
          left--;
          bytes += Math.max(grown, row.value.length);
          work += grown / ROW_BYTES;
        }
        work += 1 + ((1 + comparisons) * row.value.length) / ROW_BYTES;
        if (work >= workMax) await pause();
      }
      next = stoppedEarly(rows, slice) ? keyAfter(rows.at(-1)!.key) : undefined;
      if (work >= workMax) await pause();
    }
  }
  return undefined;
}
