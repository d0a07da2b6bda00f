/** Entity group transactions: changes to entities of one partition, all or none. */
import { foldTableName } from '../../rules/table/table-names.ts';
import { StorageError } from '../common/errors.ts';
import { nextSlice, type Storage } from '../common/storage.ts';
import {
  applyChange,
  type Change,
  type ChangeResult,
  entityKeyFor,
  type PreparedChange,
  prepareChange,
} from './changes.ts';
import { fail } from './errors.ts';
import { checkTableName } from './request-checks.ts';
import { entityTxQueueKey, readTableId } from './rows.ts';
import type { TableInput } from './tables.ts';

export const CHANGES_MAX = 100;
/** To encode or to merge into so many bytes holds the event loop long enough. */
const SLICE_BYTES = 1 << 20;

/** Which of the changes is refused, and why; none of them happened. */
export class BatchFailure extends Error {
  override readonly name = 'BatchFailure';
  readonly index: number;
  readonly error: StorageError;

  constructor(index: number, error: StorageError) {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(error.message);
    Error.stackTraceLimit = limit;
    this.index = index;
    this.error = error;
  }
}

/** `table` of a change: where its address names one. */
export type BatchChange = Change & { readonly table?: string | undefined };

export async function runBatch(
  storage: Storage,
  { table, changes }: TableInput & { changes: readonly BatchChange[] },
): Promise<ChangeResult[]> {
  const prepared = await prepareAll(storage, table, changes);
  const [first] = prepared;
  if (!first) return [];
  const { value } = await storage.partition.transact(entityTxQueueKey(storage, table, first), async (tx) => {
    const id = await readTableId(tx, storage, table).catch((error) => {
      throw asBatchFailure(0, error);
    });
    const keys = prepared.map((one) => entityKeyFor(storage, id, one));
    const found = await tx.getMany(keys);
    const done: ChangeResult[] = [];
    let bytes = 0;
    try {
      for (const one of prepared) {
        const row = found[done.length];
        done.push(applyChange(tx, one, keys[done.length]!, row));
        bytes += row?.value.length ?? 0;
        if (bytes < SLICE_BYTES) continue;
        bytes = 0;
        await nextSlice();
      }
    } catch (error) {
      throw asBatchFailure(done.length, error);
    }
    return done;
  });
  return value;
}

/** What is wrong with a change in itself is found before any of them is tried. */
async function prepareAll(storage: Storage, table: string, changes: readonly BatchChange[]): Promise<PreparedChange[]> {
  const rowKeys = new Set<string>();
  const all: PreparedChange[] = [];
  let bytes = 0;
  try {
    for (const change of changes) {
      if (all.length === CHANGES_MAX) throw new BatchFailure(CHANGES_MAX - 1, fail('TooManyChanges'));
      const { table: name = table } = change;
      if (all.length === 0 || name !== table) checkTableName(name);
      const prepared = prepareChange(storage, change);
      const isOfTable = name === table || foldTableName(name) === foldTableName(table);
      if (!isOfTable || prepared.partitionKey !== (all[0] ?? prepared).partitionKey) {
        throw fail('CommandsInBatchActOnDifferentPartitions');
      }
      if (rowKeys.has(prepared.rowKey)) throw fail('InvalidDuplicateRow');
      rowKeys.add(prepared.rowKey);
      all.push(prepared);
      bytes += prepared.value?.length ?? 0;
      if (bytes < SLICE_BYTES) continue;
      bytes = 0;
      await nextSlice();
    }
  } catch (error) {
    throw asBatchFailure(all.length, error);
  }
  return all;
}

function asBatchFailure(index: number, error: unknown): unknown {
  return error instanceof StorageError ? new BatchFailure(index, error) : error;
}
