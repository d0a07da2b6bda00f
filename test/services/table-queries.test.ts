import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeKey } from '../../src/partition/keys.ts';
import { parseFilter } from '../../src/rules/table/filter.ts';
import type { Granted, Storage } from '../../src/services/common/storage.ts';
import { changeEntities } from '../../src/services/table/entities.ts';
import type { StoredEntity } from '../../src/services/table/entity-rows.ts';
import { queryTables } from '../../src/services/table/queries.ts';
import { createTable } from '../../src/services/table/tables.ts';
import { codeOf, engines, entityOf, fill, openTables, queryEntities, valuesOf } from '../support/table-storage.ts';

interface Item {
  readonly partitionKey: string;
  readonly rowKey: string;
  readonly N: number;
}

/** A filter as text, and what it means. */
interface Wanted {
  readonly text: string;
  readonly isMet: (item: Item) => boolean;
}

/** Around the surrogates, where the order of UTF-16 code units and that of code points differ. */
const KEYS = ['', 'a', 'a1', 'a2', 'b', 'B', 'ab', '\u{1f600}', '\ufffd', "it's", 'b b'];
const bound = fc.oneof(fc.constantFrom(...KEYS), fc.constantFrom('a0', 'b'.repeat(600), '\u{10ffff}'));
const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;

const meanings = {
  eq: (order: number) => order === 0,
  ne: (order: number) => order !== 0,
  lt: (order: number) => order < 0,
  le: (order: number) => order <= 0,
  gt: (order: number) => order > 0,
  ge: (order: number) => order >= 0,
};
const orderOf = <T>(one: T, other: T) => (one < other ? -1 : one > other ? 1 : 0);
const operator = fc.constantFrom(...(Object.keys(meanings) as (keyof typeof meanings)[]));

const keyTests = fc.tuple(fc.constantFrom('PartitionKey', 'RowKey'), operator, bound).map(([name, op, key]): Wanted => {
  const field = name === 'PartitionKey' ? 'partitionKey' : 'rowKey';
  return {
    text: `${name} ${op} ${quoted(key)}`,
    isMet: (item) => meanings[op](orderOf(item[field], key)),
  };
});
const valueTests = fc
  .tuple(operator, fc.nat(4))
  .map(([op, n]): Wanted => ({ text: `N ${op} ${n}`, isMet: ({ N }) => meanings[op](orderOf(N, n)) }));
const { filters } = fc.letrec<{ filters: Wanted }>((tie) => ({
  filters: fc.oneof(
    { maxDepth: 2, depthIdentifier: 'filters' },
    { weight: 5, arbitrary: keyTests },
    { weight: 1, arbitrary: valueTests },
    {
      weight: 2,
      arbitrary: fc.tuple(tie('filters'), tie('filters')).map(
        ([one, other]): Wanted => ({
          text: `(${one.text}) and (${other.text})`,
          isMet: (item) => one.isMet(item) && other.isMet(item),
        }),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(tie('filters'), tie('filters')).map(
        ([one, other]): Wanted => ({
          text: `(${one.text}) or (${other.text})`,
          isMet: (item) => one.isMet(item) || other.isMet(item),
        }),
      ),
    },
    {
      weight: 1,
      arbitrary: tie('filters').map(
        (one): Wanted => ({ text: `not (${one.text})`, isMet: (item) => !one.isMet(item) }),
      ),
    },
  ),
}));

const edge = fc.record({ partitionKey: bound, rowKey: fc.option(bound, { nil: undefined }) });
const granted: fc.Arbitrary<Granted['entities']> = fc.option(
  fc.record({ from: fc.option(edge, { nil: undefined }), to: fc.option(edge, { nil: undefined }) }),
  { nil: undefined },
);

function isGranted({ partitionKey, rowKey }: Item, range: Granted['entities']): boolean {
  const order = (edge: { partitionKey: string; rowKey?: string | undefined }) =>
    orderOf(partitionKey, edge.partitionKey) || (edge.rowKey === undefined ? 0 : orderOf(rowKey, edge.rowKey));
  return (!range?.from || order(range.from) >= 0) && (!range?.to || order(range.to) <= 0);
}

const keysOf = (all: readonly { partitionKey: string; rowKey: string }[]) =>
  all.map(({ partitionKey, rowKey }) => [partitionKey, rowKey]);

async function allPages(storage: Storage, input: Parameters<typeof queryEntities>[1], pageMax: number) {
  const found: StoredEntity[] = [];
  let from: Parameters<typeof queryEntities>[1]['from'];
  for (let pages = 0; ; pages++) {
    expect(pages).toBeLessThan(500);
    const page = await queryEntities(storage, { ...input, from });
    expect(page.entities.length).toBeLessThanOrEqual(pageMax);
    found.push(...page.entities);
    if (!page.next) return found;
    if (from) expect([page.next.partitionKey, page.next.rowKey]).not.toEqual([from.partitionKey, from.rowKey]);
    from = page.next;
  }
}

describe.each(engines)('Query Entities on %s', (engine) => {
  const items: Item[] = KEYS.flatMap((partitionKey, i) =>
    KEYS.filter((_, j) => (i * 7 + j * 3) % 5 > 0).map((rowKey, j) => ({ partitionKey, rowKey, N: (i + j) % 5 })),
  );
  const inOrder = [...items].sort(
    (one, other) => orderOf(one.partitionKey, other.partitionKey) || orderOf(one.rowKey, other.rowKey),
  );

  it('finds page by page what a full scan finds, whatever the filter, the page and the signature', {
    timeout: 120_000,
  }, async () => {
    const { storage } = await openTables(engine);
    await fill(
      storage,
      'things',
      items.map(({ partitionKey, rowKey, N }) => entityOf(partitionKey, rowKey, { N })),
    );
    const top = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constant(undefined));
    await fc.assert(
      fc.asyncProperty(fc.option(filters, { nil: undefined }), granted, top, async (wanted, entities, top) => {
        const filter = wanted && parseFilter(wanted.text);
        const reader = { ...storage, granted: { entities } };
        const found = await allPages(reader, { table: 'Things', filter, top }, top ?? 1_000);
        const expected = inOrder.filter((item) => (wanted?.isMet(item) ?? true) && isGranted(item, entities));
        expect(keysOf(found)).toEqual(keysOf(expected));
        expect(found.map(valuesOf)).toEqual(expected.map(({ N }) => ({ N })));
      }),
      { numRuns: engine === 'memory' ? 600 : 100 },
    );
  });
});

describe('Query Entities', () => {
  const grid = Array.from({ length: 30 }, (_, p) =>
    Array.from({ length: 40 }, (_, r) => entityOf(`p${p + 10}`, `r${r + 10}`, { N: r, S: 'x'.repeat(50) })),
  ).flat();

  it.each([
    ["PartitionKey eq 'p12'", 40],
    ["PartitionKey eq 'p12' and RowKey eq 'r20'", 1],
    ["RowKey eq 'r20' and N eq 10 and PartitionKey eq 'p12'", 1],
    ["PartitionKey eq 'p12' and RowKey eq 'none'", 0],
    ["PartitionKey eq 'none'", 0],
    ["PartitionKey eq 'p12' and RowKey ge 'r20' and RowKey lt 'r25'", 5],
    ["PartitionKey eq 'p12' and RowKey gt 'r20' and RowKey le 'r25'", 5],
    ["PartitionKey eq 'p12' and (RowKey eq 'r11' or RowKey eq 'r48')", 2],
    ["PartitionKey eq 'p12' and RowKey eq 'r11' or PartitionKey eq 'p30' and RowKey eq 'r12'", 2],
    ["PartitionKey ge 'p12' and PartitionKey lt 'p14'", 80],
    ["PartitionKey gt 'p12' and PartitionKey le 'p14' and N eq 99", 80],
    ["'p12' eq PartitionKey and not (RowKey lt 'r45')", 5],
    ["PartitionKey eq 'p12' and PartitionKey eq 'p13'", 0],
  ])('reads no row outside the range of keys that %s names', async (text, rows) => {
    const { storage, scanned } = await openTables();
    await fill(storage, 'grid', grid);
    const { next } = await queryEntities(storage, { table: 'grid', filter: parseFilter(text) });
    expect(next).toBeUndefined();
    expect(scanned).toHaveLength(rows);
  });

  it('pages through the rows of the partition whose key is empty', async () => {
    const { storage } = await openTables();
    await fill(storage, 'grid', [...['a', 'b', 'c', 'd'].map((row) => entityOf('', row)), entityOf('p', 'a')]);
    const filter = parseFilter("PartitionKey eq '' and RowKey ne 'b'");
    const found = await allPages(storage, { table: 'grid', filter, top: 1 }, 1);
    expect(found.map(({ rowKey }) => rowKey)).toEqual(['a', 'c', 'd']);
  });

  it.each(engines)('seeks no keys that are longer than the limit, on %s', async (engine) => {
    const { storage, scanned } = await openTables(engine);
    await fill(storage, 'grid', [entityOf('p12', 'r'), entityOf('q', '\uffff'.repeat(512))]);
    const long = '\uffff'.repeat(2_000);
    const filter = parseFilter(`PartitionKey gt '${long}' or PartitionKey eq 'p12' and RowKey eq '${long}'`);
    const none = { entities: [], next: undefined };
    expect(await queryEntities(storage, { table: 'grid', filter })).toEqual(none);
    expect(await queryEntities(storage, { table: 'grid', from: { partitionKey: 'q', rowKey: long } })).toEqual(none);
    const entities = { from: { partitionKey: long, rowKey: long } };
    expect(await queryEntities({ ...storage, granted: { entities } }, { table: 'grid' })).toEqual(none);
    expect(scanned).toEqual([]);
    const most = { to: { partitionKey: 'q', rowKey: long } };
    const page = await queryEntities({ ...storage, granted: { entities: most } }, { table: 'grid' });
    expect(page.entities).toHaveLength(2);
    const { tables } = await queryTables(storage, { filter: parseFilter(`TableName le '${long}'`), from: long });
    expect(tables).toEqual([]);
  });

  it('reads no row outside the range of keys that a signature names', async () => {
    const { storage, scanned } = await openTables();
    await fill(storage, 'grid', grid);
    const entities = { from: { partitionKey: 'p12', rowKey: 'r45' }, to: { partitionKey: 'p13', rowKey: 'r11' } };
    const page = await queryEntities({ ...storage, granted: { entities } }, { table: 'grid' });
    expect(page.entities).toHaveLength(7);
    expect(scanned).toHaveLength(7);
  });

  it('reads one row more than it returns, without a filter', async () => {
    const { storage, scanned } = await openTables();
    await fill(storage, 'grid', grid);
    const page = await queryEntities(storage, { table: 'grid', top: 3 });
    expect(page.entities).toHaveLength(3);
    expect(page.next).toEqual({ partitionKey: 'p10', rowKey: 'r13' });
    expect(scanned).toHaveLength(4);
  });

  it('gives 1,000 entities a page', async () => {
    const { storage } = await openTables();
    await fill(storage, 'grid', grid);
    const page = await queryEntities(storage, { table: 'grid' });
    expect(page.entities).toHaveLength(1_000);
    const rest = await queryEntities(storage, { table: 'grid', from: page.next });
    expect(rest.entities).toHaveLength(200);
    expect(rest.next).toBeUndefined();
  });

  it('continues at a partition, if its continuation names no row', async () => {
    const { storage } = await openTables();
    await fill(storage, 'grid', grid);
    const page = await queryEntities(storage, { table: 'grid', from: { partitionKey: 'p38' } });
    expect(page.entities).toHaveLength(80);
  });

  it('ends a page at 4 MiB, but never without any entity', async () => {
    const { storage } = await openTables();
    const large = Object.fromEntries(Array.from({ length: 14 }, (_, i) => [`S${i}`, 'x'.repeat(30 << 10)]));
    const all = Array.from({ length: 25 }, (_, i) => entityOf('p', `r${i + 10}`, large));
    await fill(storage, 'large', all);
    const found: StoredEntity[] = [];
    for (let from: Parameters<typeof queryEntities>[1]['from']; ; ) {
      const page = await queryEntities(storage, { table: 'large', from });
      const bytes = page.entities.reduce((sum, { value }) => sum + value.length, 0);
      expect(bytes).toBeLessThanOrEqual(4 << 20);
      expect(page.entities.length).toBeGreaterThan(0);
      if (page.next) expect(bytes).toBeGreaterThan(3 << 20);
      found.push(...page.entities);
      if (!page.next) break;
      from = page.next;
    }
    expect(keysOf(found)).toEqual(keysOf(all));
  });

  it('ends a page after 5 seconds, with no entity if none matched, and continues at the first that it did not read', async () => {
    const { storage, scanned } = await openTables();
    await fill(storage, 'grid', grid);
    const filter = parseFilter('N gt 38');
    let milliseconds = 0;
    const clock = () => (milliseconds += 2_000);
    const first = await queryEntities(storage, { table: 'grid', filter: parseFilter('N gt 99') }, clock);
    expect(first.entities).toEqual([]);
    expect(first.next).toMatchObject({ partitionKey: expect.stringMatching(/^p(18|19|20)$/) });
    expect(scanned.length).toBeLessThan(grid.length);
    const second = await queryEntities(storage, { table: 'grid', filter, from: first.next });
    // The last row of each partition from there on.
    expect(second.entities).toHaveLength(40 - Number(first.next!.partitionKey.slice(1)));
    expect(second.next).toBeUndefined();
  });

  it('yields to the event loop again and again', async () => {
    const { storage } = await openTables();
    await fill(storage, 'grid', grid);
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns++;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await queryEntities(storage, { table: 'grid', filter: parseFilter('N gt 99') });
    isDone = true;
    expect(turns).toBeGreaterThanOrEqual(6);
  });

  it.each(engines)('shows one state of a partition while batches change it, on %s', async (engine) => {
    const { storage } = await openTables(engine);
    const row = (i: number) => `r${i + 100}`;
    const filler = Array.from({ length: 1_000 }, (_, i) => entityOf('p', `${row(Math.floor(i / 10))}-${i}`));
    await fill(storage, 'things', filler);
    const generation = (N: number) =>
      Array.from({ length: 100 }, (_, i) => {
        const keys = { partitionKey: 'p', rowKey: row(i) };
        return {
          kind: 'update' as const,
          ...keys,
          entity: entityOf('p', row(i), { N }),
          ifMatch: undefined,
          merge: false,
        };
      });
    await changeEntities(storage, 'things', generation(0));
    let isDone = false;
    const write = async () => {
      for (let n = 1; !isDone; n++) {
        await changeEntities(storage, 'things', generation(n));
        // In memory nothing waits for the event loop, so a writer would never give it up.
        await new Promise(setImmediate);
      }
    };
    const writing = write();
    const seen = new Set<unknown>();
    for (let i = 0; i < 30; i++) {
      const { entities } = await queryEntities(storage, { table: 'things', filter: parseFilter('N ge 0') });
      expect(entities).toHaveLength(100);
      const generations = new Set(entities.map((entity) => valuesOf(entity).N));
      expect(generations.size).toBe(1);
      for (const one of generations) seen.add(one);
    }
    isDone = true;
    await writing;
    expect(seen.size).toBeGreaterThan(1);
  });

  it('refuses a table that does not exist, and one that the signature does not cover', async () => {
    const { storage } = await openTables();
    expect(await codeOf(queryEntities(storage, { table: 'things' }))).toBe('TableNotFound');
    await createTable(storage, { table: 'things' });
    expect(await codeOf(queryEntities({ ...storage, granted: { container: 1n } }, { table: 'things' }))).toBe(
      'TableNotFound',
    );
  });
});

describe('Query Tables', () => {
  const NAMES = ['Abc', 'abd', 'ABE', 'bcd', 'Bce', 'zzz', 'aaa', 'Aab', 'abcd', 'abcde'];
  const inOrder = [...NAMES].sort((one, other) => orderOf(one.toLowerCase(), other.toLowerCase()));
  const name = fc.constantFrom(...NAMES, 'abb', 'AAA', 'B', 'ab', '', 'ABCDE', 'x'.repeat(100), 'é');
  const test = fc.tuple(operator, name).map(([op, value]) => ({
    text: `TableName ${op} ${quoted(value)}`,
    isMet: (table: string) => meanings[op](orderOf(table, value)),
  }));
  const wanted = fc.oneof(
    test,
    fc.tuple(test, test, fc.constantFrom('and', 'or')).map(([one, other, how]) => ({
      text: `${one.text} ${how} ${other.text}`,
      isMet: (table: string) =>
        how === 'and' ? one.isMet(table) && other.isMet(table) : one.isMet(table) || other.isMet(table),
    })),
    test.map(({ text, isMet }) => ({ text: `not (${text})`, isMet: (table: string) => !isMet(table) })),
  );

  it('lists page by page the tables that the filter wants, by their names in upper and lower case', async () => {
    const { storage } = await openTables();
    for (const table of NAMES) await createTable(storage, { table });
    const top = fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant(undefined));
    await fc.assert(
      fc.asyncProperty(fc.option(wanted, { nil: undefined }), top, async (wanted, top) => {
        const filter = wanted && parseFilter(wanted.text);
        const found: string[] = [];
        for (let from: string | undefined; ; ) {
          const page = await queryTables(storage, { filter, top, from });
          expect(page.tables.length).toBeLessThanOrEqual(top ?? 1_000);
          found.push(...page.tables);
          if (page.next === undefined) break;
          from = page.next;
        }
        expect(found).toEqual(inOrder.filter((table) => wanted?.isMet(table) ?? true));
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ["TableName eq 'Abc'", 1],
    ["TableName ge 'abc' and TableName lt 'abd'", 5],
    ["TableName ge 'b'", 10],
  ])('reads only names that begin as all must that meet %s', async (text, rows) => {
    const { storage, scanned } = await openTables();
    for (const table of NAMES) await createTable(storage, { table });
    await queryTables(storage, { filter: parseFilter(text) });
    expect(scanned.map((key) => decodeKey(key).at(-1))).toHaveLength(rows);
  });

  it('shows no tables of another name, and none for filters on other properties', async () => {
    const { storage } = await openTables();
    for (const table of NAMES) await createTable(storage, { table });
    expect(await queryTables(storage, { filter: parseFilter("Name eq 'Abc'") })).toEqual({
      tables: [],
      next: undefined,
    });
  });
});
