/** Reads and changes of entities. Every change is an entity group transaction: a lone change is a group of one. */

import type { Row, Timestamp, Transaction } from '../../partition/partition.ts';
import { type EtagMatch, findGroupFault, type GroupMember } from '../../rules/table/entity-group.ts';
import { StorageError } from '../common/errors.ts';
import { nextSlice, type Storage } from '../common/storage.ts';
import {
  type EntityKeys,
  encodeEntity,
  entityFromRow,
  entityKey,
  mergeEntity,
  type Property,
  type SentEntity,
  type StoredEntity,
  sortByName,
} from './entity-rows.ts';
import { fail } from './errors.ts';
import {
  checkEntity,
  checkGranted,
  checkIfMatch,
  checkKeyLengths,
  checkReadableName,
  checkStored,
  checkTableName,
} from './request-checks.ts';
import { entityTxQueueKey, readTableId } from './rows.ts';
import type { TableInput } from './tables.ts';

export { CHANGES_MAX } from '../../rules/table/entity-group.ts';

/** After encoding or merging this many bytes the event loop gets its turn. */
const SLICE_BYTES = 1 << 20;

/** The change that failed. No change of its group was made. */
export class GroupFailure extends Error {
  override readonly name = 'GroupFailure';
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

interface Group {
  readonly table: string;
  readonly changes: readonly Change[];
  readonly fault: ReturnType<typeof findGroupFault>;
}

export async function getEntity(storage: Storage, input: TableInput & EntityKeys): Promise<StoredEntity> {
  const { table, partitionKey, rowKey } = input;
  checkReadableName(table);
  checkGranted(storage, input);
  checkKeyLengths(input);
  return await storage.partition.read(async (at) => {
    const id = await readTableId(at, storage, table);
    const row = await at.get(entityKey(storage.account, id, partitionKey, rowKey));
    if (!row) throw fail('ResourceNotFound');
    return entityFromRow(row);
  });
}

/** A group of one, which fails with the error of its change. */
export async function changeEntity(storage: Storage, table: string, change: Change): Promise<ChangeResult> {
  try {
    return (await changeEntities(storage, table, [change]))[0]!;
  } catch (error) {
    throw error instanceof GroupFailure ? error.error : error;
  }
}

/** All changes or none; a refusal is a `GroupFailure`. */
export async function changeEntities(
  storage: Storage,
  table: string,
  changes: readonly Change[],
): Promise<readonly ChangeResult[]> {
  // Not awaited: while suspended, this function would hold all that was sent.
  return commitGroup(storage, table, await prepareGroup(storage, table, changes));
}

async function prepareGroup(storage: Storage, table: string, changes: readonly Change[]): Promise<PreparedChange[]> {
  const group: Group = { table, changes, fault: findGroupFault(table, changes.map(groupMember)) };
  const prepared: PreparedChange[] = [];
  while (!prepareSlice(storage, group, prepared)) await nextSlice();
  return prepared;
}

async function commitGroup(
  storage: Storage,
  table: string,
  prepared: readonly PreparedChange[],
): Promise<readonly ChangeResult[]> {
  const first = prepared[0];
  if (!first) return [];
  const { value } = await storage.partition.transact(entityTxQueueKey(storage, table, first), async (tx) => {
    const results: ChangeResult[] = [];
    try {
      const id = await readTableId(tx, storage, table);
      const keys = prepared.map(({ partitionKey, rowKey }) => entityKey(storage.account, id, partitionKey, rowKey));
      const found = await tx.getMany(keys);
      let bytes = 0;
      for (const change of prepared) {
        const row = found[results.length];
        results.push(applyChange(tx, change, keys[results.length]!, row));
        bytes += row?.value.length ?? 0;
        if (bytes < SLICE_BYTES) continue;
        bytes = 0;
        await nextSlice();
      }
    } catch (error) {
      throw toGroupFailure(results.length, error);
    }
    return results;
  });
  return value;
}

/**
 * Prepares changes for the length of a slice; true: all of them. Faults of the request are found before any row is read, in the order
 * of the changes: of one change its own faults before that of the group.
 */
function prepareSlice(storage: Storage, { table, changes, fault }: Group, prepared: PreparedChange[]): boolean {
  try {
    for (let bytes = 0; prepared.length < changes.length; ) {
      if (bytes >= SLICE_BYTES) return false;
      const change = changes[prepared.length]!;
      const { table: named = table } = change;
      if (prepared.length === 0 || named !== table) checkTableName(named);
      const one = prepareChange(storage, change);
      if (fault?.index === prepared.length) throw fail(fault.fault);
      prepared.push(one);
      bytes += one.value?.length ?? 0;
    }
    return true;
  } catch (error) {
    throw toGroupFailure(prepared.length, error);
  }
}

function groupMember(change: Change): GroupMember {
  const { partitionKey, rowKey } = changeKeys(change);
  return { table: change.table, partitionKey, rowKey };
}

function toGroupFailure(index: number, error: unknown): unknown {
  return error instanceof StorageError ? new GroupFailure(index, error) : error;
}

interface Addressed {
  /** The table that the change's own address names. Undefined: the table of its group. */
  readonly table?: string | undefined;
}

export interface Insert extends Addressed {
  readonly kind: 'insert';
  readonly entity: SentEntity;
}

export interface Update extends EntityKeys, Addressed {
  readonly kind: 'update';
  readonly entity: SentEntity;
  /** `*` or an ETag; undefined: upsert. */
  readonly ifMatch: string | undefined;
  /** Properties that were not sent stay. */
  readonly merge: boolean;
}

export interface Delete extends EntityKeys, Addressed {
  readonly kind: 'delete';
  readonly ifMatch: string | undefined;
}

export type Change = Insert | Update | Delete;

export type ChangeResult =
  | { readonly kind: 'insert'; readonly entity: StoredEntity }
  | { readonly kind: 'update'; readonly version: Timestamp }
  | { readonly kind: 'delete' };

/** The keys that decide: those of the address, where it names an entity. */
function changeKeys(change: Change): SentEntity | EntityKeys {
  return change.kind === 'insert' ? change.entity : change;
}

/** A change without a fault of its own. Either `merged` or `value` is set, unless it is a delete. */
export interface PreparedChange extends EntityKeys {
  readonly kind: Change['kind'];
  readonly match: EtagMatch | undefined;
  /** The properties to merge into the stored entity. */
  readonly merged: readonly Property[] | undefined;
  /** The row's value, encoded before the transaction, so that the sent entity can be released. */
  readonly value: Buffer | undefined;
}

function prepareChange(storage: Pick<Storage, 'granted'>, change: Change): PreparedChange {
  const match = change.kind === 'insert' ? undefined : checkIfMatch(change.ifMatch);
  const keys = checkKeys(change);
  const { partitionKey, rowKey } = keys;
  checkGranted(storage, keys);
  if (change.kind === 'delete') {
    if (match === undefined) throw fail('MissingRequiredHeader');
    checkKeyLengths(keys);
  }
  const merged = change.kind === 'update' && change.merge ? change.entity.properties : undefined;
  const value = change.kind === 'delete' || merged ? undefined : encodeSent(change, keys);
  return { kind: change.kind, partitionKey, rowKey, match, merged, value };
}

function checkKeys(change: Change): EntityKeys {
  if (change.kind === 'delete') return change;
  if (change.kind === 'insert') return checkEntity(change.entity);
  const { partitionKey, rowKey, entity } = change;
  return checkEntity({ partitionKey, rowKey, properties: entity.properties });
}

/** An inserted entity keeps the order of its properties. */
function encodeSent({ kind, entity: { properties } }: Insert | Update, keys: EntityKeys): Buffer {
  return encodeEntity(keys, kind === 'insert' ? properties : sortByName(properties));
}

/** `found`: the row of the entity as the transaction reads it. */
function applyChange(tx: Transaction, prepared: PreparedChange, key: Row['key'], found: Row | undefined): ChangeResult {
  const { kind, partitionKey, rowKey, match } = prepared;
  switch (kind) {
    case 'insert': {
      if (found) throw fail('EntityAlreadyExists');
      const value = prepared.value!;
      checkStored(value);
      tx.put(key, value);
      return { kind, entity: { partitionKey, rowKey, version: tx.timestamp, value } };
    }
    case 'update': {
      if (match !== undefined) checkMatch(found, match);
      const value = prepared.value ?? mergeInto(prepared, found);
      checkStored(value);
      tx.put(key, value);
      return { kind, version: tx.timestamp };
    }
    case 'delete':
      checkMatch(found, match!);
      tx.remove(key);
      return { kind };
  }
}

/** The absence of an entity is reported before a condition that fails. */
function checkMatch(found: Row | undefined, match: EtagMatch): void {
  if (!found) throw fail('ResourceNotFound');
  if (match !== 'any' && match !== found.version) throw fail('UpdateConditionNotSatisfied');
}

function mergeInto(prepared: PreparedChange, found: Row | undefined): Buffer {
  const merged = prepared.merged!;
  return found ? mergeEntity(entityFromRow(found), merged) : encodeEntity(prepared, sortByName(merged));
}
