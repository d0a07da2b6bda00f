/** Filters, entities and transactions as clients send them, spoilt: each is done or refused, and what is refused leaves nothing. */
import { describe, expect, it } from 'vitest';
import { randomOf } from '../support/random.mjs';
import { ask, entityPath, newTable } from '../support/tables.ts';
import { type Answer, onEngine, type RawRequest, type Running } from '../support/test-server.ts';
import { batchText, entityText, filterText, spoilt } from './table-texts.ts';

const WORKERS = 8;
const LEAK = /node_modules|\/dist\/|\.[jt]s:\d+|\n {4}at /;
const ENTITIES_MAX = 150;

type Random = ReturnType<typeof randomOf>;

describe('A server that gets malformed filters, entities and transactions', () => {
  for (const [engine, count] of [['memory', 2_500] as const, ['LMDB', 1_000] as const])
    onEngine(
      engine,
      (running) => {
        it('runs or refuses each, and a refused one changes nothing', {
          timeout: 240_000,
        }, async () => {
          const seed = Number(process.env.HOLDFAST_SEED ?? 6);
          const seen = new Map<string, number>();
          let number = 0;
          const worker = async () => {
            let table = await newPlayground(running);
            let before = await contentsOf(running, table);
            while (number < count) {
              const random = randomOf(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(++number, 0x85ebca6b));
              const asked = requestOf(random, table);
              const answer = await ask(running, asked.method, asked.path, asked.request);
              const told = `${asked.kind}: ${asked.method} ${asked.path}\n${asked.request.body ?? ''}\n\n${answer.text}`;
              const word = wordOf(asked.kind, answer, told);
              seen.set(`${asked.kind} ${word}`, (seen.get(`${asked.kind} ${word}`) ?? 0) + 1);
              const after = await contentsOf(running, table);
              const changed = changesBetween(before, after);
              if (!word.startsWith('2')) expect(changed, told).toEqual([]);
              // What is cut off must not be taken for all.
              else if (asked.kind === 'batch') expect(String(asked.request.body), told).toMatch(endOf(answer));
              expect(changed.length, told).toBeLessThanOrEqual(answersIn(asked.kind, answer));
              before = after;
              if (after.size < ENTITIES_MAX) continue;
              table = await newPlayground(running);
              before = await contentsOf(running, table);
            }
          };
          await Promise.all(Array.from({ length: WORKERS }, worker));
          // Each kind is done now and then, and refused.
          for (const kind of ['filter', 'entity', 'batch']) {
            const of = [...seen].filter(([word]) => word.startsWith(kind));
            const sum = (form: RegExp) => of.reduce((all, [word, times]) => all + (form.test(word) ? times : 0), 0);
            expect(sum(/ 2/), String(of)).toBeGreaterThan(count / 40);
            expect(sum(/ 4/), String(of)).toBeGreaterThan(count / 40);
          }
          if (process.env.HOLDFAST_SEED) console.log([...seen].sort());
        });
      },
      {},
    );
});

async function newPlayground(running: Running): Promise<string> {
  const { tableName } = await newTable(running);
  for (let at = 0; at < 4; at++) {
    const body = entityText(randomOf(at));
    const { status, text } = await ask(running, 'PUT', entityPath(tableName, 'p', `r${at}`), { body });
    expect(status, text).toBe(204);
  }
  return tableName;
}

interface Asked {
  readonly kind: 'filter' | 'entity' | 'batch';
  readonly method: string;
  readonly path: string;
  readonly request: RawRequest;
}

function requestOf(random: Random, table: string): Asked {
  const lot = random.below(10);
  if (lot < 3) {
    const text = maybeSpoilt(random, filterText(random), () => filterText(random));
    return { kind: 'filter', method: 'GET', path: `/${table}?$filter=${encoded(text)}`, request: {} };
  }
  if (lot < 6) {
    const body = maybeSpoilt(random, entityText(random), () => entityText(random));
    const method = random.oneOf(['POST', 'PUT', 'PATCH']);
    const path = method === 'POST' ? `/${table}` : entityPath(table, 'p', `r${random.below(8)}`);
    return { kind: 'entity', method, path, request: { body } };
  }
  const body = maybeSpoilt(random, batchText(random, table), () => batchText(random, table));
  const headers = {
    'Content-Type': random.oneOf(['multipart/mixed; boundary=batch', 'multipart/mixed;boundary="batch"']),
  };
  return { kind: 'batch', method: 'POST', path: '/$batch', request: { headers, body } };
}

function maybeSpoilt(random: Random, text: string, another: () => string): Buffer {
  let bytes = Buffer.from(text);
  const times = random.chance(0.25) ? 0 : 1 + random.below(3);
  for (let done = 0; done < times; done++) bytes = spoilt(random, bytes, () => Buffer.from(another()));
  return bytes;
}

/** Every byte that would end the query. */
function encoded(bytes: Buffer): string {
  return [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}

/** How it was answered, which is right in itself. */
function wordOf(kind: Asked['kind'], answer: Answer, told: string): string {
  // What an option of OData would ask for may be named as not built.
  if (answer.status !== 501) expect(answer.status, told).toBeLessThan(500);
  expect(answer.text, told).not.toMatch(LEAK);
  if (answer.status >= 400) return `${answer.status} ${codeIn(answer.text, told)}`;
  if (kind !== 'batch') return String(answer.status);
  expect(answer.status, told).toBe(202);
  const statuses = [...answer.text.matchAll(/^HTTP\/1\.1 (\d+) /gm)].map((one) => Number(one[1]));
  const refused = statuses.filter((status) => status >= 400);
  if (refused.length === 0) return '202';
  // Of a refused set only one part is answered.
  expect(statuses, told).toHaveLength(1);
  expect(refused[0], told).toBeLessThan(500);
  return `${refused[0]} ${codeIn(/\r\n\r\n(\{.*\})\r\n/.exec(answer.text)?.[1] ?? '', told)}`;
}

function codeIn(text: string, told: string): string {
  const error = JSON.parse(text)['odata.error'];
  expect(error.code, told).toMatch(/^[A-Z][A-Za-z]+$/);
  expect(error.message.value, told).toMatch(/\nRequestId:[0-9a-f-]{36}\nTime:\S+Z$/);
  return error.code;
}

function answersIn(kind: Asked['kind'], { text }: Answer): number {
  if (kind === 'filter') return 0;
  return kind === 'entity' ? 1 : (text.match(/^HTTP\/1\.1 2/gm) ?? []).length;
}

/** The last line of a set of changes, or of a query. */
function endOf({ text }: Answer): RegExp {
  return /^HTTP\/1\.1 200 /m.test(text) ? /^--batch--\s*$/m : /^--set--\s*$/m;
}

/** Every entity of the table as text, by its keys. */
async function contentsOf(running: Running, table: string): Promise<Map<string, string>> {
  const headers = { Accept: 'application/json;odata=fullmetadata' };
  const { status, text } = await ask(running, 'GET', `/${table}`, { headers });
  expect(status, text).toBe(200);
  const entities: Record<string, unknown>[] = JSON.parse(text).value;
  return new Map(entities.map((one) => [JSON.stringify([one.PartitionKey, one.RowKey]), JSON.stringify(one)]));
}

function changesBetween(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const keys = new Set([...before.keys(), ...after.keys()]);
  return [...keys].filter((key) => before.get(key) !== after.get(key));
}
