import { describe, expect, it } from 'vitest';
import { formatTableEtag } from '../../src/rules/table/entity-group.ts';
import { StorageError } from '../../src/services/common/errors.ts';
import type { Granted } from '../../src/services/common/storage.ts';
import {
  type Change,
  changeEntities,
  changeEntity,
  GroupFailure,
  getEntity,
} from '../../src/services/table/entities.ts';
import { createTable } from '../../src/services/table/tables.ts';
import {
  codeOf,
  deleteEntity,
  engines,
  entityOf,
  insertEntity,
  openTables,
  queryEntities,
  updateEntity,
  valuesOf,
} from '../support/table-storage.ts';

const table = 'things';
const insert = (partitionKey: string, rowKey: string, values = {}): Change => ({
  kind: 'insert',
  entity: entityOf(partitionKey, rowKey, values),
});
const row = (i: number) => `r${1_000 + i}`;

async function openThings(engine?: (typeof engines)[number]) {
  const opened = await openTables(engine);
  await createTable(opened.storage, { table });
  return opened;
}

describe('An entity group transaction', () => {
  it('takes 100 changes, which all carry one version', async () => {
    const { storage } = await openThings();
    const changes = Array.from({ length: 100 }, (_, i) => insert('p', row(i), { N: i }));
    const done = await changeEntities(storage, table, changes);
    expect(done).toHaveLength(100);
    const { entities } = await queryEntities(storage, { table });
    expect(entities.map((entity) => valuesOf(entity).N)).toEqual(changes.map((_, i) => i));
    expect(new Set(entities.map(({ version }) => version)).size).toBe(1);
  });

  it.each([
    ['a change too many', Array.from({ length: 101 }, (_, i) => insert('p', row(i))), 99, 'InvalidInput'],
    ['another partition', [insert('p', '1'), insert('q', '2')], 1, 'CommandsInBatchActOnDifferentPartitions'],
    [
      'another table',
      [insert('p', '1'), { ...insert('p', '2'), table: 'others' }],
      1,
      'CommandsInBatchActOnDifferentPartitions',
    ],
    [
      'another partition before a later key with a slash',
      [insert('p', '1'), insert('q', '2'), insert('p', '/')],
      1,
      'CommandsInBatchActOnDifferentPartitions',
    ],
    ['a key with a slash in another partition', [insert('p', '1'), insert('q', '/')], 1, 'OutOfRangeInput'],
    [
      'a change too many before its own fault',
      [...Array.from({ length: 100 }, (_, i) => insert('p', row(i))), insert('p', '/')],
      99,
      'InvalidInput',
    ],
    ['one entity twice', [insert('p', '1'), insert('p', '2'), insert('p', '1')], 2, 'InvalidDuplicateRow'],
    ['an entity that is there', [insert('p', '1'), insert('p', 'there')], 1, 'EntityAlreadyExists'],
    ['a key with a slash', [insert('p', '1'), insert('p', '/')], 1, 'OutOfRangeInput'],
    ['no key', [{ kind: 'insert', entity: { partitionKey: 'p', properties: [] } }], 0, 'PropertiesNeedValue'],
    ['a bad name', [{ ...insert('p', '1'), table: 'a' }], 0, 'OutOfRangeInput'],
    [
      'a fault of the request before one that depends on stored entities',
      [insert('p', 'there'), insert('p', '1'), insert('p', '1')],
      2,
      'InvalidDuplicateRow',
    ],
    [
      'a stale ETag',
      [insert('p', '1'), { kind: 'delete', partitionKey: 'p', rowKey: 'there', ifMatch: 'W/"old"' }],
      1,
      'UpdateConditionNotSatisfied',
    ],
    [
      'no condition of a delete',
      [insert('p', '1'), { kind: 'delete', partitionKey: 'p', rowKey: 'there', ifMatch: undefined }],
      1,
      'MissingRequiredHeader',
    ],
  ] as [string, Change[], number, string][])('names %s, and does nothing', async (_, changes, index, code) => {
    const { storage } = await openThings();
    await insertEntity(storage, { table, entity: entityOf('p', 'there') });
    const failure = await changeEntities(storage, table, changes).catch((error) => error);
    expect(failure).toBeInstanceOf(GroupFailure);
    expect(failure).toMatchObject({ index, error: { code } });
    expect((await queryEntities(storage, { table })).entities).toHaveLength(1);
  });

  it('is what a lone change is, too, which fails with its own error', async () => {
    const { storage } = await openThings();
    await expect(changeEntity(storage, table, insert('p', '/'))).rejects.toBeInstanceOf(StorageError);
    await changeEntity(storage, table, insert('p', 'there'));
    await expect(changeEntity(storage, table, insert('p', 'there'))).rejects.toBeInstanceOf(StorageError);
    await expect(changeEntity(storage, 'others', insert('p', '1'))).rejects.toMatchObject({ code: 'TableNotFound' });
  });

  it('names the first change, if the table does not exist', async () => {
    const { storage } = await openTables();
    await expect(changeEntities(storage, table, [insert('p', '1')])).rejects.toMatchObject({
      index: 0,
      error: { code: 'TableNotFound' },
    });
  });

  it('without changes changes nothing', async () => {
    const { storage } = await openTables();
    expect(await changeEntities(storage, table, [])).toEqual([]);
  });

  it('checks the limits of an entity that a merge makes larger', async () => {
    const { storage } = await openThings();
    const half = (from: number) => Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`N${from + i}`, i]));
    await insertEntity(storage, { table, entity: entityOf('p', '1', half(0)) });
    const change: Change = {
      kind: 'update',
      partitionKey: 'p',
      rowKey: '1',
      entity: entityOf('p', '1', half(200)),
      ifMatch: '*',
      merge: true,
    };
    await expect(changeEntities(storage, table, [change])).rejects.toMatchObject({
      index: 0,
      error: { code: 'TooManyProperties' },
    });
  });

  it.each(engines)('loses no update among others and lone changes to the same entities, on %s', async (engine) => {
    const { storage } = await openThings(engine);
    const rows = [0, 1, 2, 3].map(row);
    await changeEntities(
      storage,
      table,
      rows.map((rowKey) => insert('p', rowKey, { N: 0 })),
    );
    const add = async (some: readonly string[]): Promise<boolean> => {
      const found = await Promise.all(some.map((rowKey) => getEntity(storage, { table, partitionKey: 'p', rowKey })));
      const changes = found.map((entity, i) => ({
        kind: 'update' as const,
        partitionKey: 'p',
        rowKey: some[i]!,
        entity: entityOf('p', some[i]!, { N: (valuesOf(entity).N as number) + 1 }),
        ifMatch: formatTableEtag(entity.version),
        merge: some.length % 2 === 0,
      }));
      const work =
        some.length === 1 ? updateEntity(storage, { table, ...changes[0]! }) : changeEntities(storage, table, changes);
      const code = await codeOf(work);
      expect(['done', 'UpdateConditionNotSatisfied']).toContain(code);
      return code === 'done';
    };
    const wanted = new Map(rows.map((rowKey) => [rowKey, 0]));
    const client = async (some: readonly string[]) => {
      for (let done = 0; done < 10; ) {
        if (!(await add(some))) continue;
        done++;
        for (const rowKey of some) wanted.set(rowKey, wanted.get(rowKey)! + 1);
      }
    };
    await Promise.all([
      client(rows),
      client(rows.slice(1, 3)),
      client(rows.slice(2)),
      client([rows[0]!]),
      client([rows[2]!]),
      client([rows[2]!]),
    ]);
    const { entities } = await queryEntities(storage, { table });
    expect(entities.map((entity) => [entity.rowKey, valuesOf(entity).N])).toEqual([...wanted]);
  });
});

describe('A signature for a range of entities', () => {
  const entities: Granted['entities'] = {
    from: { partitionKey: 'b', rowKey: '5' },
    to: { partitionKey: 'd', rowKey: '5' },
  };
  const inside = [
    ['b', '5'],
    ['b', '9'],
    ['c', ''],
    ['d', ''],
    ['d', '5'],
  ] as const;
  const outside = [
    ['a', '9'],
    ['b', '4'],
    ['b', ''],
    ['d', '50'],
    ['da', '1'],
    ['', ''],
  ] as const;

  it.each([...inside.map((keys) => [...keys, 'done']), ...outside.map((keys) => [...keys, 'AuthorizationFailure'])])(
    'decides on the entity %j, %j: %s',
    async (partitionKey, rowKey, expected) => {
      const { storage } = await openThings();
      const guest = { ...storage, granted: { entities } };
      const keys = { table, partitionKey: partitionKey!, rowKey: rowKey! };
      const entity = entityOf(partitionKey!, rowKey!);
      const update = { ...keys, entity, ifMatch: undefined, merge: true };
      const changes: Change[] = [{ ...update, kind: 'update' }];
      expect(await codeOf(insertEntity(guest, { table, entity }))).toBe(expected);
      expect(await codeOf(updateEntity(guest, update))).toBe(expected);
      expect(await codeOf(changeEntities(guest, table, changes))).toBe(expected);
      expect(await codeOf(getEntity(guest, keys))).toBe(expected);
      expect(await codeOf(deleteEntity(guest, { ...keys, ifMatch: '*' }))).toBe(expected);
    },
  );

  it('without rows covers whole partitions', async () => {
    const { storage } = await openThings();
    const guest = { ...storage, granted: { entities: { from: { partitionKey: 'b' }, to: { partitionKey: 'b' } } } };
    for (const [partitionKey, code] of Object.entries({
      a: 'AuthorizationFailure',
      b: 'done',
      ba: 'AuthorizationFailure',
    })) {
      expect(await codeOf(insertEntity(guest, { table, entity: entityOf(partitionKey, 'zz') }))).toBe(code);
    }
  });
});

describe('If-Match', () => {
  it.each(['wrong', '"wrong"', 'W/"a", W/"b"', ''])('is one ETag, unlike %j', async (ifMatch) => {
    const { storage } = await openThings();
    const keys = { table, partitionKey: 'p', rowKey: 'r', ifMatch };
    await expect(deleteEntity(storage, keys)).rejects.toMatchObject({
      code: 'InvalidInput',
      status: 400,
      message: expect.stringContaining(`The etag value '${ifMatch}' specified`),
    });
  });
});

describe('A key that is too long', () => {
  it.each(engines)('finds nothing, and is not stored, on %s', async (engine) => {
    const { storage } = await openThings(engine);
    const keys = { table, partitionKey: 'p', rowKey: '\uffff'.repeat(5_000) };
    expect(await codeOf(getEntity(storage, keys))).toBe('ResourceNotFound');
    expect(await codeOf(deleteEntity(storage, { ...keys, ifMatch: '*' }))).toBe('ResourceNotFound');
    const entity = entityOf(keys.partitionKey, keys.rowKey);
    expect(await codeOf(insertEntity(storage, { table, entity }))).toBe('PropertyValueTooLarge');
    const longest = '\uffff'.repeat(512);
    await insertEntity(storage, { table, entity: entityOf(longest, longest) });
    const { entities } = await queryEntities(storage, { table, from: { partitionKey: longest, rowKey: longest } });
    expect(entities).toHaveLength(1);
  });
});
