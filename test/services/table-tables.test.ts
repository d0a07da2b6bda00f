import { describe, expect, it } from 'vitest';
import { createChunkChecker } from '../../src/content/chunk-check.ts';
import type { Storage } from '../../src/services/common/storage.ts';
import { check } from '../../src/services/maintenance/check.ts';
import { emptyAccount } from '../../src/services/maintenance/reset.ts';
import { tableAccess } from '../../src/services/table/access.ts';
import { getEntity } from '../../src/services/table/entities.ts';
import { encodeEntity, entityKey } from '../../src/services/table/entity-rows.ts';
import { queryTables } from '../../src/services/table/queries.ts';
import { createTable, deleteTable, getTable, getTableAcl, setTableAcl } from '../../src/services/table/tables.ts';
import { ACCOUNT, openWorld } from '../support/blob-storage.ts';
import {
  codeOf,
  deleteEntity,
  engines,
  entityOf,
  fill,
  insertEntity,
  openTables,
  queryEntities,
  updateEntity,
} from '../support/table-storage.ts';

async function openSwept() {
  const world = await openWorld();
  const { partition, store, sweeper } = world;
  const storage: Storage = { partition, account: ACCOUNT, content: store, sweeper };
  const findings = async () => (await check(partition, createChunkChecker(partition, world.extents))).findings;
  return { ...world, storage, findings };
}

const many = (count: number) => Array.from({ length: count }, (_, i) => entityOf(`p${i % 7}`, `r${i}`, { N: i }));

describe('A table', () => {
  it('is found in upper and lower case, and shown as it was created', async () => {
    const { storage } = await openTables();
    expect(await createTable(storage, { table: 'CamelCase' })).toEqual({ table: 'CamelCase' });
    expect(await codeOf(createTable(storage, { table: 'camelcase' }))).toBe('TableAlreadyExists');
    expect(await getTable(storage, { table: 'CAMELCASE' })).toEqual({ table: 'CamelCase' });
    await insertEntity(storage, { table: 'cAMELcASE', entity: entityOf('p', 'r') });
    expect((await queryEntities(storage, { table: 'camelCase' })).entities).toHaveLength(1);
  });

  it.each([
    ['aa', 'OutOfRangeInput'],
    ['1table', 'InvalidResourceName'],
    ['Tables', 'InvalidInput'],
  ])('has a name that the service takes, unlike %s, whatever is done', async (table, code) => {
    const { storage } = await openTables();
    const keys = { table, partitionKey: 'p', rowKey: 'r', ifMatch: '*' };
    const entity = entityOf('p', 'r');
    for (const work of [
      createTable(storage, { table }),
      getTable(storage, { table }),
      deleteTable(storage, { table }),
      getTableAcl(storage, { table }),
      setTableAcl(storage, { table, policies: [] }),
      insertEntity(storage, { table, entity }),
      updateEntity(storage, { ...keys, entity, merge: true }),
      deleteEntity(storage, keys),
      getEntity(storage, keys),
      queryEntities(storage, { table }),
    ])
      expect(await codeOf(work)).toBe(code);
    expect(await tableAccess(storage, table)).toBeUndefined();
  });

  it('has up to five policies, which are deleted with it', async () => {
    const { storage } = await openTables();
    const policies = Array.from({ length: 5 }, (_, i) => ({ id: `policy ${i}`, permission: 'raud' }));
    expect(await codeOf(setTableAcl(storage, { table: 'things', policies }))).toBe('ResourceNotFound');
    expect(await codeOf(getTableAcl(storage, { table: 'things' }))).toBe('ResourceNotFound');
    expect(await tableAccess(storage, 'things')).toBeUndefined();
    await createTable(storage, { table: 'things' });
    await setTableAcl(storage, { table: 'Things', policies });
    expect(await getTableAcl(storage, { table: 'things' })).toEqual(policies);
    const access = await tableAccess(storage, 'THINGS');
    expect(access).toEqual({ id: expect.any(BigInt), level: undefined, policies });
    const more = [...policies, { id: 'one more' }];
    expect(await codeOf(setTableAcl(storage, { table: 'things', policies: more }))).toBe('InvalidXmlDocument');
    await deleteTable(storage, { table: 'things' });
    await createTable(storage, { table: 'things' });
    expect(await getTableAcl(storage, { table: 'things' })).toEqual([]);
    expect((await tableAccess(storage, 'things'))!.id).not.toBe(access!.id);
  });

  it('is another one when it was deleted and created again: a signature for the first finds nothing', async () => {
    const { storage } = await openTables();
    await createTable(storage, { table: 'things' });
    const { id } = (await tableAccess(storage, 'things'))!;
    const guest = { ...storage, granted: { container: id } };
    await insertEntity(guest, { table: 'things', entity: entityOf('p', 'r') });
    await deleteTable(storage, { table: 'things' });
    await createTable(storage, { table: 'things' });
    const keys = { table: 'things', partitionKey: 'p', rowKey: 'r', ifMatch: '*' };
    for (const work of [
      insertEntity(guest, { table: 'things', entity: entityOf('p', 'r') }),
      updateEntity(guest, { ...keys, ifMatch: undefined, entity: entityOf('p', 'r'), merge: false }),
      deleteEntity(guest, keys),
      getEntity(guest, keys),
      queryEntities(guest, { table: 'things' }),
    ])
      expect(await codeOf(work)).toBe('TableNotFound');
  });

  it.each(engines)('is deleted with all entities that are inserted meanwhile, on %s', async (engine) => {
    const { storage, partition } = await openTables(engine);
    for (let round = 0; round < 10; round++) {
      await createTable(storage, { table: 'things' });
      const codes = await Promise.all([
        ...many(20).map((entity) => codeOf(insertEntity(storage, { table: 'things', entity }))),
        codeOf(deleteTable(storage, { table: 'things' })),
        ...many(40)
          .slice(20)
          .map((entity) => codeOf(insertEntity(storage, { table: 'things', entity }))),
      ]);
      expect(codes.every((code) => code === 'done' || code === 'TableNotFound')).toBe(true);
    }
    const checker = createChunkChecker(partition, {} as Parameters<typeof createChunkChecker>[1]);
    expect((await check(partition, checker)).findings).toEqual([]);
    await createTable(storage, { table: 'things' });
    expect((await queryEntities(storage, { table: 'things' })).entities).toEqual([]);
  });
});

describe('The rows of a deleted table', () => {
  it('cannot be reached at once, and are swept in slices', async () => {
    const world = await openSwept();
    await fill(world.storage, 'things', many(1_200));
    await fill(world.storage, 'others', many(3));
    expect(await world.kinds()).toMatchObject({ e: 1_203, n: 2, p: 2 });
    await deleteTable(world.storage, { table: 'things' });
    await createTable(world.storage, { table: 'things' });
    expect((await queryEntities(world.storage, { table: 'things' })).entities).toEqual([]);
    expect(await world.findings()).toEqual([]);
    await world.sweep();
    expect(await world.kinds()).toEqual({ e: 3, n: 2, p: 2 });
    expect(await world.findings()).toEqual([]);
    await world.stop();
  });

  it('are deleted when an account is emptied', async () => {
    const world = await openSwept();
    await fill(world.storage, 'things', many(20));
    await emptyAccount(world.storage);
    expect(await queryTables(world.storage, {})).toEqual({ tables: [], next: undefined });
    await world.sweep();
    expect(await world.kinds()).toEqual({});
    await world.stop();
  });

  it('are findings of a check, unless their table exists or is in the deletion queue', async () => {
    const world = await openSwept();
    await fill(world.storage, 'things', many(2));
    await world.act((tx) => {
      const value = encodeEntity({ partitionKey: 'p', rowKey: 'r' }, []);
      tx.put(entityKey(ACCOUNT, 99n, 'p', 'r'), value);
      tx.put(entityKey(ACCOUNT, 98n, 'p', 'r'), Buffer.from('?'));
    });
    expect(await world.findings()).toEqual([
      expect.stringMatching(/"e","98","p","r"\]: an entity of format 63/),
      expect.stringMatching(/"e","99","p","r"\]: its table does not exist/),
    ]);
    await world.stop();
  });
});
