/** Mutated filters, entities and transactions: each is run or refused, and a refused one leaves nothing. */
import { describe, expect, it } from 'vitest';
import { randomOf } from '../support/random.mjs';
import { ask, entityPath, newTable } from '../support/tables.ts';
import { type Answer, onEngine, type RawRequest, type Running } from '../support/test-server.ts';
import { batchText, entityText, filterText, mutated } from './table-texts.ts';

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
            let before = await readEntities(running, table);
            while (number < count) {
              const random = randomOf(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(++number, 0x85ebca6b));
              const request = makeRequest(random, table);
              const answer = await ask(running, request.method, request.path, request.request);
              const details = `${request.kind}: ${request.method} ${request.path}\n${request.request.body ?? ''}\n\n${answer.text}`;
              const word = describeAnswer(request.kind, answer, details);
              seen.set(`${request.kind} ${word}`, (seen.get(`${request.kind} ${word}`) ?? 0) + 1);
              const after = await readEntities(running, table);
              const changed = changesBetween(before, after);
              if (!word.startsWith('2')) expect(changed, details).toEqual([]);
              // A truncated transaction must not be run.
              else if (request.kind === 'batch')
                expect(String(request.request.body), details).toMatch(lastBoundary(answer));
              expect(changed.length, details).toBeLessThanOrEqual(countChanges(request.kind, answer));
              before = after;
              if (after.size < ENTITIES_MAX) continue;
              table = await newPlayground(running);
              before = await readEntities(running, table);
            }
          };
          await Promise.all(Array.from({ length: WORKERS }, worker));
          // Each kind is both run and refused.
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

interface TableRequest {
  readonly kind: 'filter' | 'entity' | 'batch';
  readonly method: string;
  readonly path: string;
  readonly request: RawRequest;
}

function makeRequest(random: Random, table: string): TableRequest {
  const lot = random.below(10);
  if (lot < 3) {
    const text = maybeMutated(random, filterText(random), () => filterText(random));
    return { kind: 'filter', method: 'GET', path: `/${table}?$filter=${encoded(text)}`, request: {} };
  }
  if (lot < 6) {
    const body = maybeMutated(random, entityText(random), () => entityText(random));
    const method = random.oneOf(['POST', 'PUT', 'PATCH']);
    const path = method === 'POST' ? `/${table}` : entityPath(table, 'p', `r${random.below(8)}`);
    return { kind: 'entity', method, path, request: { body } };
  }
  const body = maybeMutated(random, batchText(random, table), () => batchText(random, table));
  const headers = {
    'Content-Type': random.oneOf(['multipart/mixed; boundary=batch', 'multipart/mixed;boundary="batch"']),
  };
  return { kind: 'batch', method: 'POST', path: '/$batch', request: { headers, body } };
}

function maybeMutated(random: Random, text: string, another: () => string): Buffer {
  let bytes = Buffer.from(text);
  const times = random.chance(0.25) ? 0 : 1 + random.below(3);
  for (let done = 0; done < times; done++) bytes = mutated(random, bytes, () => Buffer.from(another()));
  return bytes;
}

/** Every byte that would end the query. */
function encoded(bytes: Buffer): string {
  return [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}

/** Status and code of the answer, whose form is verified. */
function describeAnswer(kind: TableRequest['kind'], answer: Answer, details: string): string {
  // An option of OData may be refused as not implemented.
  if (answer.status !== 501) expect(answer.status, details).toBeLessThan(500);
  expect(answer.text, details).not.toMatch(LEAK);
  if (answer.status >= 400) return `${answer.status} ${codeIn(answer.text, details)}`;
  if (kind !== 'batch') return String(answer.status);
  expect(answer.status, details).toBe(202);
  const statuses = [...answer.text.matchAll(/^HTTP\/1\.1 (\d+) /gm)].map((one) => Number(one[1]));
  const refused = statuses.filter((status) => status >= 400);
  if (refused.length === 0) return '202';
  // Of a refused set only one part is answered.
  expect(statuses, details).toHaveLength(1);
  expect(refused[0], details).toBeLessThan(500);
  return `${refused[0]} ${codeIn(/\r\n\r\n(\{.*\})\r\n/.exec(answer.text)?.[1] ?? '', details)}`;
}

function codeIn(text: string, details: string): string {
  const error = JSON.parse(text)['odata.error'];
  expect(error.code, details).toMatch(/^[A-Z][A-Za-z]+$/);
  expect(error.message.value, details).toMatch(/\nRequestId:[0-9a-f-]{36}\nTime:\S+Z$/);
  return error.code;
}

function countChanges(kind: TableRequest['kind'], { text }: Answer): number {
  if (kind === 'filter') return 0;
  return kind === 'entity' ? 1 : (text.match(/^HTTP\/1\.1 2/gm) ?? []).length;
}

/** The last line of a set of changes, or of a query. */
function lastBoundary({ text }: Answer): RegExp {
  return /^HTTP\/1\.1 200 /m.test(text) ? /^--batch--\s*$/m : /^--set--\s*$/m;
}

/** Every entity of the table as text, by its keys. */
async function readEntities(running: Running, table: string): Promise<Map<string, string>> {
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
