/** What can be done to one entity, alone or in a batch. */
import type { Row, Timestamp, Transaction } from '../../partition/partition.ts';
import type { EtagMatch } from '../../rules/table/etag.ts';
import type { Storage } from '../common/storage.ts';
import { checkEntity, checkStored } from './entity-limits.ts';
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
  type TableId,
} from './entity-rows.ts';
import { fail } from './errors.ts';
import { checkGranted, checkIfMatch, checkKeyLengths } from './request-checks.ts';

export interface Insert {
  readonly kind: 'insert';
  readonly entity: SentEntity;
}

export interface Update extends EntityKeys {
  readonly kind: 'update';
  readonly entity: SentEntity;
  /** `*` or an ETag; undefined: whether it is there or not. */
  readonly ifMatch: string | undefined;
  /** What is not sent stays. */
  readonly merge: boolean;
}

export interface Delete extends EntityKeys {
  readonly kind: 'delete';
  readonly ifMatch: string | undefined;
}

export type Change = Insert | Update | Delete;

/** What a change came to. */
export type ChangeResult =
  | { readonly kind: 'insert'; readonly entity: StoredEntity }
  | { readonly kind: 'update'; readonly stamp: Timestamp }
  | { readonly kind: 'delete' };

/** A change that is right in itself. */
export interface PreparedChange extends EntityKeys {
  readonly kind: Change['kind'];
  readonly match: EtagMatch | undefined;
  /** What is merged into the entity that is there. */
  readonly changes: readonly Property[] | undefined;
  /** Otherwise: what is stored. It is encoded ahead, so that what was sent need not be held until the commit. */
  readonly value: Buffer | undefined;
}

export function prepareChange(storage: Pick<Storage, 'granted'>, change: Change): PreparedChange {
  const match = change.kind === 'insert' ? undefined : checkIfMatch(change.ifMatch);
  const keys = checkedKeys(change);
  const { partitionKey, rowKey } = keys;
  checkGranted(storage, keys);
  if (change.kind === 'delete') {
    if (match === undefined) throw fail('MissingRequiredHeader');
    checkKeyLengths(keys);
  }
  const changes = change.kind === 'update' && change.merge ? change.entity.properties : undefined;
  const value = change.kind === 'delete' || changes ? undefined : encodeChange(change, keys);
  return { kind: change.kind, partitionKey, rowKey, match, changes, value };
}

/** What is inserted stays in its order. */
function encodeChange({ kind, entity: { properties } }: Insert | Update, keys: EntityKeys): Buffer {
  return encodeEntity(keys, kind === 'insert' ? properties : sortByName(properties));
}

export const entityKeyFor = (
  { account }: Pick<Storage, 'account'>,
  table: TableId,
  { partitionKey, rowKey }: EntityKeys,
) => entityKey(account, table, partitionKey, rowKey);

/** Does it to the row that was found, or is not there. */
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
      return { kind, entity: { partitionKey, rowKey, stamp: tx.timestamp, value } };
    }
    case 'update': {
      if (match !== undefined) checkMatch(found, match);
      const value = prepared.value ?? mergeInto(prepared, found);
      checkStored(value);
      tx.put(key, value);
      return { kind, stamp: tx.timestamp };
    }
    case 'delete':
      checkMatch(found, match!);
      tx.remove(key);
      return { kind };
  }
}

/** Of an entity that is not there, the condition is not looked at. */
function checkMatch(found: Row | undefined, match: EtagMatch): void {
  if (!found) throw fail('ResourceNotFound');
  if (match !== 'any' && match !== found.version) throw fail('UpdateConditionNotSatisfied');
}

function mergeInto(prepared: PreparedChange, found: Row | undefined): Buffer {
  const changes = prepared.changes!;
  return found ? mergeEntity(entityFromRow(found), changes) : encodeEntity(prepared, sortByName(changes));
}

/** Where the address names the entity, it decides. */
function checkedKeys(change: Change): EntityKeys {
  if (change.kind === 'delete') return change;
  if (change.kind === 'insert') return checkEntity(change.entity);
  const { partitionKey, rowKey, entity } = change;
  return checkEntity({ partitionKey, rowKey, properties: entity.properties });
}
