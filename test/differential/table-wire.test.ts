/** Random entities and queries over the wire: which entities are found, in which order, on which page, and with which values. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ask, newTable } from '../support/tables.ts';
import { onEngine, type Running } from '../support/test-server.ts';
import { anyCondition, anyEntity, type Condition, type Entity, filterText, isMet, type Value } from './naive-filter.ts';

interface Question {
  readonly condition: Condition | undefined;
  readonly top: number | undefined;
  readonly select: readonly string[] | undefined;
  readonly level: 'minimalmetadata' | 'fullmetadata';
}

const KEYS = ['PartitionKey', 'RowKey'];

const anyQuestion: fc.Arbitrary<Question> = fc.record({
  condition: fc.option(anyCondition, { freq: 10, nil: undefined }),
  top: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  select: fc.option(fc.subarray(['Timestamp', 'a', 'b', 'c', 'unknown']), { nil: undefined }),
  level: fc.constantFrom('minimalmetadata', 'fullmetadata'),
});

const anyTable = fc.uniqueArray(anyEntity, { minLength: 1, maxLength: 25, size: 'max', selector: keyOf });

describe('What a query finds over the wire', { timeout: 120_000 }, () => {
  for (const [engine, numRuns] of [['LMDB', 12] as const, ['PostgreSQL', 4] as const])
    onEngine(
      engine,
      (running) => {
        it('is what the naive evaluator computes, page by page, with every value as it was sent', async () => {
          const found = { entities: 0, pages: 0, asked: 0 };
          const property = fc.asyncProperty(
            anyTable,
            fc.array(anyQuestion, { minLength: 15, maxLength: 15 }),
            async (entities, questions) => {
              const { tableName } = await newTable(running);
              for (const entity of entities) await insert(running, tableName, entity);
              const stored = await everything(running, tableName);
              expect(stored.map(withoutTimestamp)).toEqual([...entities].sort(byKeys).map(withoutTimestamp));
              for (const question of questions) {
                const { condition, select } = question;
                const wanted = stored.filter((entity) => !condition || isMet(condition, entity));
                const pages = await pagesOf(running, tableName, question);
                const text = condition && filterText(condition);
                expect(pages.flat(), text).toEqual(wanted.map((entity) => selected(entity, select)));
                found.entities += wanted.length;
                found.pages += pages.length;
                found.asked++;
              }
            },
          );
          await fc.assert(property, { numRuns, endOnFailure: true });
          expect(found.entities).toBeGreaterThan(0);
          expect(found.pages).toBeGreaterThan(found.asked);
        });
      },
      { heavy: true },
    );
});

const at = (entity: Entity, name: string) => entity[name]!.text;

function keyOf(entity: Entity): string {
  return JSON.stringify(KEYS.map((name) => at(entity, name)));
}

/** By UTF-16 units. */
function byKeys(one: Entity, other: Entity): number {
  const name = at(one, 'PartitionKey') === at(other, 'PartitionKey') ? 'RowKey' : 'PartitionKey';
  return at(one, name) < at(other, name) ? -1 : 1;
}

/** The server's own time is not the one that chance gave it. */
function withoutTimestamp({ Timestamp: _, ...entity }: Entity): Entity {
  return sameNumbers(entity);
}

function selected(entity: Entity, select: readonly string[] | undefined): Entity {
  const names = Object.keys(entity).filter((name) => !select || KEYS.includes(name) || select.includes(name));
  return sameNumbers(Object.fromEntries(names.map((name) => [name, entity[name]!])));
}

/** A double may be written in several ways. */
function sameNumbers(entity: Entity): Entity {
  const pairs = Object.entries(entity).map(([name, value]): [string, Value] => {
    const isDouble = value.type === 'Double' && !/^NaN$|INF$/.test(value.text);
    return [name, isDouble ? { ...value, text: String(Number(value.text)) } : value];
  });
  return Object.fromEntries(pairs);
}

async function insert(running: Running, table: string, entity: Entity): Promise<void> {
  const members = Object.entries(entity)
    .filter(([name]) => name !== 'Timestamp')
    .map(([name, value]) => memberOf(name, value));
  const answer = await ask(running, 'POST', `/${table}`, { body: `{${members.join(',')}}` });
  expect(answer.status, answer.text).toBe(201);
}

function memberOf(name: string, { type, text }: Value): string {
  const annotated = `"${name}@odata.type":"Edm.${type}",`;
  switch (type) {
    case 'String':
      return `"${name}":${JSON.stringify(text)}`;
    case 'Int32':
    case 'Boolean':
      return `"${name}":${text}`;
    case 'Double':
      return /^NaN$|INF$/.test(text)
        ? `${annotated}"${name}":"${text.replace('INF', 'Infinity')}"`
        : `"${name}":${text}`;
    case 'Binary':
      return `${annotated}"${name}":"${Buffer.from(text, 'hex').toString('base64')}"`;
    default:
      return `${annotated}"${name}":"${text}"`;
  }
}

async function everything(running: Running, table: string): Promise<Entity[]> {
  const question: Question = { condition: undefined, top: undefined, select: undefined, level: 'fullmetadata' };
  return (await pagesOf(running, table, question)).flat();
}

async function pagesOf(running: Running, table: string, question: Question): Promise<Entity[][]> {
  const { condition, top, select, level } = question;
  const options = new URLSearchParams();
  if (condition) options.set('$filter', filterText(condition));
  if (top !== undefined) options.set('$top', String(top));
  if (select) options.set('$select', [...KEYS, ...select].join(','));
  const pages: Entity[][] = [];
  for (;;) {
    const query = options.toString().replaceAll('+', '%20');
    const headers = { Accept: `application/json;odata=${level}` };
    const answer = await ask(running, 'GET', `/${table}()?${query}`, { headers });
    expect(answer.status, `${condition && filterText(condition)}: ${answer.text}`).toBe(200);
    pages.push(entitiesIn(answer.text));
    expect(pages.at(-1)!.length).toBeLessThanOrEqual(top ?? 1_000);
    const next = (key: string) => answer.headers[`x-ms-continuation-next${key}`] as string | undefined;
    const [partition, row] = [next('partitionkey'), next('rowkey')];
    if (partition === undefined) return pages;
    options.set('NextPartitionKey', partition);
    options.set('NextRowKey', row!);
  }
}

/** JSON.parse would not tell 5 from 5.0. */
function entitiesIn(text: string): Entity[] {
  const kept = text.replace(/("\w+":)(-?\d[\d.eE+-]*)(?=[,}])/g, '$1{"number":"$2"}');
  return JSON.parse(kept).value.map((members: Record<string, unknown>) => {
    const names = Object.keys(members).filter((name) => !/[.@]/.test(name) && members[name] !== null);
    const pairs = names.map((name) => [name, readValue(members[name], members[`${name}@odata.type`], name)]);
    return sameNumbers(Object.fromEntries(pairs));
  });
}

function readValue(value: unknown, annotation: unknown, name: string): Value {
  if (typeof value === 'boolean') return { type: 'Boolean', text: String(value) };
  if (typeof value === 'object') {
    const text = (value as { number: string }).number;
    return { type: /^-?\d+$/.test(text) ? 'Int32' : 'Double', text };
  }
  const type = String(annotation ?? (name === 'Timestamp' ? 'Edm.DateTime' : 'Edm.String')).slice(4) as Value['type'];
  return { type, text: textOf(type, value as string) };
}

function textOf(type: Value['type'], text: string): string {
  if (type === 'Double') return text.replace('Infinity', 'INF');
  if (type === 'Binary') return Buffer.from(text, 'base64').toString('hex');
  if (type !== 'DateTime') return text;
  const [, second, fraction = ''] = /^(.*?)(?:\.(\d+))?Z$/.exec(text)!;
  return `${second}.${fraction.padEnd(7, '0')}Z`;
}
