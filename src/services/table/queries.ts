/** Query Entities and Query Tables: a page is one committed state, read in slices that leave the event loop to others. */
import { performance } from 'node:perf_hooks';
import { after, type Key, type Range } from '../../partition/keys.ts';
import { type Row, type ScanOptions, type Snapshot, stoppedEarly } from '../../partition/partition.ts';
import { compileFilter, type Filter, keyBoxesOf } from '../../rules/table/filter.ts';
import { isMetricsTable } from '../../rules/table/table-names.ts';
import { type EntityBound, othersFirst, type Storage } from '../storage.ts';
import { type EntityKeys, type StoredEntity, storedEntity, valueOf as valueIn } from './entity-rows.ts';
import { checkReadableName } from './requests.ts';
import { tableIdAt, tableName } from './rows.ts';
import { nameSpansOf, spansOf } from './spans.ts';
import type { TableInput } from './tables.ts';

const PAGE_ITEMS = 1_000;
const PAGE_BYTES = 4 << 20;
const PAGE_MILLISECONDS = 5_000;
const SLICE_ROWS = 200;
const SLICE_BYTES = 512 << 10;
/** A seek costs about as much as reading this many rows. */
const SEEK_ROWS = 4;

const now = (): number => performance.now();

export interface QueryInput extends TableInput {
  readonly filter?: Filter | undefined;
  readonly top?: number | undefined;
  readonly from?: EntityBound | undefined;
}

export interface EntityPage {
  readonly entities: StoredEntity[];
  /** The first entity that was not looked at; undefined: there is none. */
  readonly next: EntityKeys | undefined;
}

/** @param milliseconds tells how long it has taken */
export async function queryEntities(
  storage: Storage,
  { table, filter, top, from }: QueryInput,
  milliseconds: () => number = now,
): Promise<EntityPage> {
  checkReadableName(table);
  const { account, granted } = storage;
  const boxes = keyBoxesOf(filter);
  const test = filter && compileFilter(filter);
  return storage.partition.read(async (at) => {
    const id = await tableIdAt(at, storage, table);
    const spans = spansOf(account, id, { boxes, granted: granted?.entities, from });
    const entities: StoredEntity[] = [];
    const next = await readPage(at, spans, {
      itemsMax: top,
      takesAll: !test,
      milliseconds,
      take(row) {
        const entity = storedEntity(row);
        const isWanted = !test || test((name, lengthMax) => valueIn(entity, name, lengthMax));
        if (isWanted) entities.push(entity);
        return isWanted;
      },
    });
    const first = next && storedEntity(next);
    return { entities, next: first && { partitionKey: first.partitionKey, rowKey: first.rowKey } };
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
  const spans = nameSpansOf(account, filter, from);
  return partition.read(async (at) => {
    const tables: string[] = [];
    const next = await readPage(at, spans, {
      itemsMax: top,
      takesAll: !test,
      milliseconds,
      take(row) {
        const value = tableName(row);
        if (isMetricsTable(value)) return false;
        const isWanted = !test || test((name) => (name === 'TableName' ? { type: 'Edm.String', value } : undefined));
        if (isWanted) tables.push(value);
        return isWanted;
      },
    });
    return { tables, next: next && tableName(next) };
  });
}

interface Page {
  readonly itemsMax: number | undefined;
  /** No row is left out. */
  readonly takesAll: boolean;
  readonly milliseconds: () => number;
  /** False: it is no item of the page. */
  take(row: Row): boolean;
}

/** Resolves with the first row that was not looked at. */
async function readPage(at: Snapshot, spans: readonly Range[], page: Page): Promise<Row | undefined> {
  const { itemsMax = PAGE_ITEMS, takesAll, milliseconds, take } = page;
  // A continuation would lead a client that follows it round in a circle.
  if (itemsMax === 0) return undefined;
  const until = milliseconds() + PAGE_MILLISECONDS;
  let left = Math.min(itemsMax, PAGE_ITEMS);
  let bytes = 0;
  let work = 0;
  let isLate = false;
  const isFull = (row?: Row) =>
    left === 0 || isLate || (row !== undefined && bytes > 0 && bytes + row.value.length > PAGE_BYTES);
  for (const { from, to } of spans) {
    for (let next: Key | undefined = from; next !== undefined; ) {
      // One behind the last item tells whether there is more.
      const rowsMax = takesAll ? Math.min(SLICE_ROWS, left + 1) : SLICE_ROWS;
      const slice: ScanOptions = { limit: isFull() ? 1 : rowsMax, bytesMax: SLICE_BYTES };
      const rows = await at.scan({ from: next, to }, slice);
      for (const row of rows) {
        if (isFull(row)) return row;
        if (!take(row)) continue;
        left--;
        bytes += row.value.length;
      }
      next = stoppedEarly(rows, slice) ? after(rows.at(-1)!.key) : undefined;
      work += rows.length + SEEK_ROWS;
      if (next === undefined && work < SLICE_ROWS) continue;
      work = 0;
      await othersFirst();
      isLate ||= milliseconds() >= until;
    }
  }
  return undefined;
}
