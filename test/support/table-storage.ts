/** The Table service on rows in memory or in LMDB; records the rows that are scanned. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { ContentStore } from '../../src/content/content.ts';
import { encodeKey, type Key } from '../../src/partition/keys.ts';
import { openLmdb } from '../../src/partition/lmdb/engine.ts';
import { openMemory } from '../../src/partition/memory/engine.ts';
import type { Engine, Partition } from '../../src/partition/partition.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { putAccount } from '../../src/services/common/account-rows.ts';
import type { Storage } from '../../src/services/common/storage.ts';
import {
  type ChangeResult,
  changeEntity,
  type Delete,
  type Insert,
  type Update,
} from '../../src/services/table/entities.ts';
import {
  canonicalize,
  decodeEntityProperties,
  propertyName,
  type SentEntity,
  type StoredEntity,
} from '../../src/services/table/entity-rows.ts';
import { type QueryInput, queryEntities as query } from '../../src/services/table/queries.ts';
import { createTable, type TableInput } from '../../src/services/table/tables.ts';

export const ACCOUNT = 7n;
export const engines = ['memory', 'LMDB'] as const;

export async function openTables(engine: (typeof engines)[number] = 'memory') {
  const partition = openPartition(await (engine === 'memory' ? openMemory() : openFolder()));
  await partition.transact(encodeKey(['account']), async (tx) =>
    putAccount(tx, { id: ACCOUNT, name: 'seven', keys: ['a2V5'], from: 'command' }),
  );
  /** The keys of all rows that scans returned. */
  const scanned: Key[] = [];
  const watched: Partition = {
    ...partition,
    read: (fn) =>
      partition.read((at) =>
        fn({
          ...at,
          async scan(range, options) {
            const rows = await at.scan(range, options);
            scanned.push(...rows.map(({ key }) => key));
            return rows;
          },
        }),
      ),
  };
  const storage: Storage = {
    partition: watched,
    account: ACCOUNT,
    content: {} as ContentStore,
    sweeper: { wake() {} },
  };
  return { partition, storage, scanned };
}

async function openFolder(): Promise<Engine> {
  const location = await mkdtemp(join(tmpdir(), 'holdfast-tables-'));
  const engine = await openLmdb({ location });
  onTestFinished(async () => {
    await engine.close();
    await rm(location, { recursive: true, force: true });
  });
  return engine;
}

/** An entity with integers and strings. */
export function entityOf(
  partitionKey: string,
  rowKey: string,
  values: Readonly<Record<string, number | string>> = {},
): SentEntity & { partitionKey: string; rowKey: string } {
  return {
    partitionKey,
    rowKey,
    properties: Object.entries(values).map(([name, value]) => ({
      name: propertyName(name),
      value: canonicalize(typeof value === 'number' ? { type: 'Edm.Int32', value } : { type: 'Edm.String', value }),
    })),
  };
}

export function valuesOf(entity: StoredEntity): Record<string, unknown> {
  return Object.fromEntries(decodeEntityProperties(entity).map(({ name, value }) => [name, value.value]));
}

export async function insertEntity(storage: Storage, input: TableInput & Omit<Insert, 'kind'>): Promise<StoredEntity> {
  const result = await changeEntity(storage, input.table, { ...input, kind: 'insert' });
  return (result as ChangeResult & { kind: 'insert' }).entity;
}

export async function updateEntity(storage: Storage, input: TableInput & Omit<Update, 'kind'>) {
  const result = await changeEntity(storage, input.table, { ...input, kind: 'update' });
  return result as ChangeResult & { kind: 'update' };
}

export async function deleteEntity(storage: Storage, input: TableInput & Omit<Delete, 'kind'>): Promise<void> {
  await changeEntity(storage, input.table, { ...input, kind: 'delete' });
}

export async function fill(storage: Storage, table: string, entities: readonly SentEntity[]): Promise<void> {
  await createTable(storage, { table });
  for (let i = 0; i < entities.length; i += 200) {
    await Promise.all(entities.slice(i, i + 200).map((entity) => insertEntity(storage, { table, entity })));
  }
}

/** The error code; 'done': no error. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'done';
  } catch (error) {
    const { code, error: inner } = error as { code?: string; error?: { code: string } };
    const found = code ?? inner?.code;
    if (found === undefined) throw error;
    return found;
  }
}

/** The entities of one page; each counts as many bytes as are stored. */
export async function queryEntities(storage: Storage, input: QueryInput, milliseconds?: () => number) {
  const entities: StoredEntity[] = [];
  const add = (entity: StoredEntity, bytesMax: number) =>
    entity.value.length > bytesMax ? undefined : entities.push(entity) && entity.value.length;
  const next = await query(storage, input, { add }, milliseconds);
  return { entities, next };
}
