import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ACCOUNT,
  codeOf,
  deleteEntity,
  engines,
  entityOf,
  insertEntity,
  openTables,
  queryEntities,
  updateEntity,
  valuesOf,
} from '../../../test/support/table-storage.ts';
import { keysUnder } from '../../partition/keys.ts';
import { formatTableEtag } from '../../rules/table/entity-group.ts';
import type { Storage } from '../common/storage.ts';
import { type Change, changeEntities, getEntity } from './entities.ts';
import { queryTables } from './queries.ts';
import { createTable, deleteTable, getTable } from './tables.ts';

interface ModelEntity {
  values: Record<string, number>;
  version: bigint;
}

/** Tables by their names in lower case, entities by their keys. */
interface Model {
  readonly tables: Map<string, { name: string; entities: Map<string, ModelEntity> }>;
  /** The last version of each entity that ever existed. */
  readonly versions: Map<string, bigint>;
}

type Match = 'any' | 'its own' | 'stale' | 'none at all' | undefined;
type ModelChange = { rowKey: string; values: Record<string, number>; match: Match } & {
  kind: 'insert' | 'merge' | 'replace' | 'delete';
};
type Step = (storage: Storage, model: Model) => Promise<void>;

const table = fc.constantFrom('one', 'One', 'two');
const partitionKey = fc.constantFrom('', 'p', 'q\u{1f600}');
const rowKey = fc.constantFrom('', '1', '\uffff', '\u{10000}');
const values = fc.dictionary(fc.constantFrom('A', 'B', 'C'), fc.nat(9), { maxKeys: 2 });
const match = fc.constantFrom<Match>('any', 'its own', 'stale', 'none at all', undefined);
const kind = fc.constantFrom<ModelChange['kind']>('insert', 'insert', 'merge', 'replace', 'delete');
const change: fc.Arbitrary<ModelChange> = fc.record({ kind, rowKey, values, match });

const idOf = (name: string, partition: string, row: string) => `${name.toLowerCase()} ${partition} ${row}`;

/** An error code, or the values that the entity has after it. */
function expectedOutcome(found: ModelEntity | undefined, { kind, values, match }: ModelChange) {
  if (kind === 'insert') return found ? 'EntityAlreadyExists' : values;
  if (kind === 'delete' && match === undefined) return 'MissingRequiredHeader';
  if (match !== undefined && !found) return 'ResourceNotFound';
  if (match === 'stale' || match === 'none at all') return 'UpdateConditionNotSatisfied';
  if (kind === 'delete') return undefined;
  return kind === 'merge' ? { ...found?.values, ...values } : values;
}

function asSent(change: ModelChange, partition: string, found: ModelEntity | undefined): Change {
  const { kind, rowKey, values, match } = change;
  const version = found?.version ?? 630822816000000000n;
  const ifMatch =
    match &&
    { any: '*', 'its own': formatTableEtag(version), stale: formatTableEtag(version - 1n), 'none at all': 'W/"x"' }[
      match
    ];
  const entity = entityOf(partition, rowKey, values);
  if (kind === 'insert') return { kind, entity };
  if (kind === 'delete') return { kind, partitionKey: partition, rowKey, ifMatch };
  return { kind: 'update', partitionKey: partition, rowKey, entity, ifMatch, merge: kind === 'merge' };
}

const creates = table.map(
  (name): Step =>
    async (storage, { tables }) => {
      const code = await codeOf(createTable(storage, { table: name }));
      expect(code).toBe(tables.has(name.toLowerCase()) ? 'TableAlreadyExists' : 'done');
      if (code === 'done') tables.set(name.toLowerCase(), { name, entities: new Map() });
    },
);

const deletes = table.map(
  (name): Step =>
    async (storage, { tables }) => {
      const code = await codeOf(deleteTable(storage, { table: name }));
      expect(code).toBe(tables.delete(name.toLowerCase()) ? 'done' : 'ResourceNotFound');
    },
);

const lone = fc.tuple(table, partitionKey, change).map(
  ([name, partition, one]): Step =>
    async (storage, model) => {
      const found = model.tables.get(name.toLowerCase())?.entities.get(idOf(name, partition, one.rowKey));
      const sent = asSent(one, partition, found);
      const work =
        sent.kind === 'insert'
          ? insertEntity(storage, { ...sent, table: name }).then(({ version }) => version)
          : sent.kind === 'update'
            ? updateEntity(storage, { ...sent, table: name }).then(({ version }) => version)
            : deleteEntity(storage, { ...sent, table: name }).then(() => undefined);
      const outcome = expectedOutcome(found, one);
      const isKnown = model.tables.has(name.toLowerCase());
      const expected = outcome === 'MissingRequiredHeader' || isKnown ? outcome : 'TableNotFound';
      const code = await codeOf(work);
      expect(code).toBe(typeof expected === 'string' ? expected : 'done');
      if (code === 'done') record(model, name, partition, one.rowKey, expected as ModelEntity['values'], await work);
    },
);

const batches = fc.tuple(table, partitionKey, fc.array(change, { maxLength: 4 })).map(
  ([name, partition, changes]): Step =>
    async (storage, model) => {
      const entities = model.tables.get(name.toLowerCase())?.entities;
      const found = changes.map(({ rowKey }) => entities?.get(idOf(name, partition, rowKey)));
      const sent = changes.map((one, i) => asSent(one, partition, found[i]));
      const outcomes = changes.map((one, i) => expectedOutcome(found[i], one));
      const fault = firstFault(changes, outcomes, entities !== undefined);
      const work = changeEntities(storage, name, sent);
      if (fault) {
        await expect(work).rejects.toMatchObject({ index: fault.index, error: { code: fault.code } });
        return;
      }
      for (const [i, done] of (await work).entries()) {
        expect(done.kind).toBe(sent[i]!.kind);
        const version =
          done.kind === 'insert' ? done.entity.version : done.kind === 'update' ? done.version : undefined;
        record(model, name, partition, changes[i]!.rowKey, outcomes[i] as ModelEntity['values'] | undefined, version);
      }
    },
);

/** Faults of the group come before those that depend on stored entities. */
function firstFault(changes: readonly ModelChange[], outcomes: readonly unknown[], isKnown: boolean) {
  for (const [index, { rowKey }] of changes.entries()) {
    if (outcomes[index] === 'MissingRequiredHeader') return { index, code: 'MissingRequiredHeader' };
    if (changes.findIndex((one) => one.rowKey === rowKey) < index) return { index, code: 'InvalidDuplicateRow' };
  }
  if (changes.length > 0 && !isKnown) return { index: 0, code: 'TableNotFound' };
  const index = outcomes.findIndex((one) => typeof one === 'string');
  return index < 0 ? undefined : { index, code: outcomes[index] };
}

function record(
  { tables, versions }: Model,
  name: string,
  partition: string,
  row: string,
  values: ModelEntity['values'] | undefined,
  version: bigint | undefined,
): void {
  const id = idOf(name, partition, row);
  const { entities } = tables.get(name.toLowerCase())!;
  if (!values) {
    entities.delete(id);
    return;
  }
  expect(version! > (versions.get(id) ?? 0n), 'a later version than any that this entity ever had').toBe(true);
  versions.set(id, version!);
  entities.set(id, { values, version: version! });
}

async function compare(storage: Storage, { tables }: Model): Promise<void> {
  const { tables: names } = await queryTables(storage, {});
  expect(names).toEqual([...tables.values()].map(({ name }) => name).sort());
  for (const [folded, { name, entities }] of tables) {
    expect(await getTable(storage, { table: folded.toUpperCase() })).toEqual({ table: name });
    const page = await queryEntities(storage, { table: name });
    expect(page.next).toBeUndefined();
    const found = page.entities.map((entity) => [
      idOf(name, entity.partitionKey, entity.rowKey),
      { values: valuesOf(entity), version: entity.version },
    ]);
    const expected = [...entities].sort(([one], [other]) => (one < other ? -1 : 1));
    expect(found).toEqual(expected);
    for (const { partitionKey, rowKey, version } of page.entities) {
      expect((await getEntity(storage, { table: name, partitionKey, rowKey })).version).toBe(version);
    }
  }
}

describe.each(engines)('Tables and entities on %s', (engine) => {
  it('behave as a map of maps, whatever is done to them', { timeout: 120_000 }, async () => {
    const step = fc.oneof(
      { weight: 2, arbitrary: creates },
      { weight: 1, arbitrary: deletes },
      { weight: 10, arbitrary: lone },
      { weight: 6, arbitrary: batches },
    );
    const { storage, partition } = await openTables(engine);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
        const model: Model = { tables: new Map(), versions: new Map() };
        await createTable(storage, { table: 'one' });
        model.tables.set('one', { name: 'one', entities: new Map() });
        try {
          for (const step of steps) await step(storage, model);
          await compare(storage, model);
        } finally {
          for (const name of (await queryTables(storage, {})).tables) await deleteTable(storage, { table: name });
        }
      }),
      { numRuns: engine === 'memory' ? 150 : 15 },
    );
    const names = await partition.read((at) => at.scan(keysUnder([ACCOUNT, 'n']), { limit: 1 }));
    expect(names).toEqual([]);
  });
});
