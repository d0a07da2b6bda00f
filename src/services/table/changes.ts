/** The changes of one entity: insert, update (replace or merge, with or without upsert), delete. */
import type { Row, Timestamp, Transaction } from '../../partition/partition.ts';
import type { EtagMatch } from '../../rules/table/etag.ts';
import type { Storage } from '../common/storage.ts';
import { checkEntity, checkStored } from './entity-limits.ts';
import {
  type EntityKeys,
  encodeEntity,
  entityFromRow,
  mergeEntity,
  type Property,
  type SentEntity,
  type StoredEntity,
  sortByName,
} from './entity-rows.ts';
import { fail } from './errors.ts';
import { checkGranted, checkIfMatch, checkKeyLengths } from './request-checks.ts';

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
export function changeKeys(change: Change): SentEntity | EntityKeys {
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

export function prepareChange(storage: Pick<Storage, 'granted'>, change: Change): PreparedChange {
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
export function applyChange(
  tx: Transaction,
  prepared: PreparedChange,
  key: Row['key'],
  found: Row | undefined,
): ChangeResult {
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
