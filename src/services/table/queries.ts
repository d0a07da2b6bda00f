/** Query Entities and Query Tables: a page is one committed state, read in slices that leave the event loop to others. */
import { performance } from 'node:perf_hooks';
import { type Key, keyAfter, type Range } from '../../partition/keys.ts';
import { type Row, type ScanOptions, type Snapshot, stoppedEarly } from '../../partition/partition.ts';
import { compileFilter, countComparisons, type Filter, keyRangesFrom } from '../../rules/table/filter.ts';
import { isMetricsTable } from '../../rules/table/table-names.ts';
import { type EntityBound, nextSlice, type Storage } from '../common/storage.ts';
import { type EntityKeys, entityFromRow, type StoredEntity, propertyValue as valueIn } from './entity-rows.ts';
import { keyRangesFor, nameRangesFor } from './query-ranges.ts';
import { checkReadableName } from './request-checks.ts';
import { decodeTableName, readTableId } from './rows.ts';
import type { TableInput } from './tables.ts';

const PAGE_ITEMS = 1_000;
const PAGE_BYTES = 4 << 20;
const PAGE_MILLISECONDS = 5_000;
const SLICE_ROWS = 200;
const SLICE_BYTES = 512 << 10;
/** A seek costs about as much as reading this many rows. */
const SEEK_ROWS = 4;
/** A row costs more by each so many bytes that are looked through or written. */
const ROW_BYTES = 2 << 10;

const now = (): number => performance.now();

export interface QueryInput extends TableInput {
  readonly filter?: Filter | undefined;
  readonly top?: number | undefined;
  readonly from?: EntityBound | undefined;
}

/** Takes the entities of a page as they are found. */
export interface EntitySink {
  /** Returns by how many bytes the page has grown; undefined: it would grow by more than `bytesMax`, and has not. */
  add(entity: StoredEntity, bytesMax: number): number | undefined;
}

/**
 * Resolves with the first entity that was not looked at; undefined: there is none.
 * @param milliseconds tells how long it has taken
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
        const isWanted = !test || test((name, lengthMax) => valueIn(entity, name, lengthMax));
        return isWanted ? (page.add(entity, bytesMax) ?? 'too much') : 'not wanted';
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
        if (isMetricsTable(value)) return 'not wanted';
        const isWanted = !test || test((name) => (name === 'TableName' ? { type: 'Edm.String', value } : undefined));
        return isWanted ? tables.push(value) && value.length : 'not wanted';
      },
    });
    return { tables, next: next && decodeTableName(next) };
  });
}

interface PageQuery {
  readonly itemsMax: number | undefined;
  /** No row is left out. */
  readonly takesAll: boolean;
  /** How often a row's properties are looked for. */
  readonly comparisons: number;
  readonly milliseconds: () => number;
  /** By how many bytes the page has grown. 'too much': by more than `bytesMax`, so that it begins the next one. */
  take(row: Row, bytesMax: number): number | 'too much' | 'not wanted';
}

/** Resolves with the first row that was not looked at. */
async function readPage(at: Snapshot, ranges: readonly Range[], page: PageQuery): Promise<Row | undefined> {
  const { itemsMax = PAGE_ITEMS, takesAll, comparisons, milliseconds, take } = page;
  // A continuation would lead a client that follows it round in a circle.
  if (itemsMax === 0) return undefined;
  const until = milliseconds() + PAGE_MILLISECONDS;
  let left = Math.min(itemsMax, PAGE_ITEMS);
  let bytes = 0;
  let work = 0;
  let isLate = false;
  const pause = async () => {
    work = 0;
    await nextSlice();
    isLate ||= milliseconds() >= until;
  };
  const isFull = (row?: Row) =>
    left === 0 || isLate || (row !== undefined && bytes > 0 && bytes + row.value.length > PAGE_BYTES);
  for (const { from, to } of ranges) {
    for (let next: Key | undefined = from; next !== undefined; ) {
      // One behind the last item tells whether there is more.
      const rowsMax = takesAll ? Math.min(SLICE_ROWS, left + 1) : SLICE_ROWS;
      const slice: ScanOptions = { limit: isFull() ? 1 : rowsMax, bytesMax: SLICE_BYTES };
      const rows = await at.scan({ from: next, to }, slice);
      work += SEEK_ROWS;
      for (const row of rows) {
        if (isFull(row)) return row;
        const grown = take(row, bytes > 0 ? PAGE_BYTES - bytes : Number.POSITIVE_INFINITY);
        if (grown === 'too much') return row;
        if (grown !== 'not wanted') {
          left--;
          bytes += Math.max(grown, row.value.length);
          work += grown / ROW_BYTES;
        }
        work += 1 + ((1 + comparisons) * row.value.length) / ROW_BYTES;
        if (work >= SLICE_ROWS) await pause();
      }
      next = stoppedEarly(rows, slice) ? keyAfter(rows.at(-1)!.key) : undefined;
      if (work >= SLICE_ROWS) await pause();
    }
  }
  return undefined;
}
