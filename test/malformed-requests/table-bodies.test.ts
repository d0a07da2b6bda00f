/** Fuzzing: filters, entities and batches of clients, malformed. Each is executed or refused, and a refused one changes nothing. */
import { describe, expect, it } from 'vitest';
import { randomOf } from '../support/random.mjs';
import { ask, entityPath, newTable } from '../support/tables.ts';
import { type Answer, onEngine, type RawRequest, type Running } from '../support/test-server.ts';
import { batchText, entityText, filterText, mutate } from './table-texts.ts';

const WORKERS = 8;
const LEAK = /node_modules|\/dist\/|\.[jt]s:\d+|\n {4}at /;
const ENTITIES_MAX = 150;

type Random = ReturnType<typeof randomOf>;

describe('A server that gets malformed requests for tables', () => {
  for (const [engine, count] of [['memory', 2_500] as const, ['LMDB', 1_000] as const])
    onEngine(
      engine,
      (running) => {
        it('executes or refuses each cleanly, and a refused one changes nothing', {
          timeout: 240_000,
        }, async () => {
          const seed = Number(process.env.HOLDFAST_SEED ?? 6);
          const seen = new Map<string, number>();
          let number = 0;
          const worker = async () => {
            let table = await newFilledTable(running);
            let before = await contentsOf(running, table);
            while (number < count) {
              const random = randomOf(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(++number, 0x85ebca6b));
              const sent = requestOf(random, table);
              const answer = await ask(running, sent.method, sent.path, sent.request);
              const context = `${sent.kind}: ${sent.method} ${sent.path}\n${sent.request.body ?? ''}\n\n${answer.text}`;
              const outcome = outcomeOf(sent.kind, answer, context);
              seen.set(`${sent.kind} ${outcome}`, (seen.get(`${sent.kind} ${outcome}`) ?? 0) + 1);
              const after = await contentsOf(running, table);
              const changed = changesBetween(before, after);
              if (!outcome.startsWith('2')) expect(changed, context).toEqual([]);
              // A truncated batch must not be executed.
              else if (sent.kind === 'batch') expect(String(sent.request.body), context).toMatch(lastLine(answer));
              expect(changed.length, context).toBeLessThanOrEqual(answersIn(sent.kind, answer));
              before = after;
              if (after.size < ENTITIES_MAX) continue;
              table = await newFilledTable(running);
              before = await contentsOf(running, table);
            }
          };
          await Promise.all(Array.from({ length: WORKERS }, worker));
          // Of each kind some are executed, and some refused.
          for (const kind of ['filter', 'entity', 'batch']) {
            const of = [...seen].filter(([outcome]) => outcome.startsWith(kind));
            const sum = (form: RegExp) =>
              of.reduce((all, [outcome, times]) => all + (form.test(outcome) ? times : 0), 0);
            expect(sum(/ 2/), String(of)).toBeGreaterThan(count / 40);
            expect(sum(/ 4/), String(of)).toBeGreaterThan(count / 40);
          }
          if (process.env.HOLDFAST_SEED) console.log([...seen].sort());
        });
      },
      {},
    );
});

async function newFilledTable(running: Running): Promise<string> {
  const { tableName } = await newTable(running);
  for (let at = 0; at < 4; at++) {
    const body = entityText(randomOf(at));
    const { status, text } = await ask(running, 'PUT', entityPath(tableName, 'p', `r${at}`), { body });
    expect(status, text).toBe(204);
  }
  return tableName;
}

interface SentRequest {
  readonly kind: 'filter' | 'entity' | 'batch';
  readonly method: string;
  readonly path: string;
  readonly request: RawRequest;
}

function requestOf(random: Random, table: string): SentRequest {
  const choice = random.below(10);
  if (choice < 3) {
    const text = maybeMalformed(random, filterText(random), () => filterText(random));
    return { kind: 'filter', method: 'GET', path: `/${table}?$filter=${encoded(text)}`, request: {} };
  }
  if (choice < 6) {
    const body = maybeMalformed(random, entityText(random), () => entityText(random));
    const method = random.oneOf(['POST', 'PUT', 'PATCH']);
    const path = method === 'POST' ? `/${table}` : entityPath(table, 'p', `r${random.below(8)}`);
    return { kind: 'entity', method, path, request: { body } };
  }
  const body = maybeMalformed(random, batchText(random, table), () => batchText(random, table));
  const headers = {
    'Content-Type': random.oneOf(['multipart/mixed; boundary=batch', 'multipart/mixed;boundary="batch"']),
  };
  return { kind: 'batch', method: 'POST', path: '/$batch', request: { headers, body } };
}

function maybeMalformed(random: Random, text: string, another: () => string): Buffer {
  let bytes = Buffer.from(text);
  const times = random.chance(0.25) ? 0 : 1 + random.below(3);
  for (let done = 0; done < times; done++) bytes = mutate(random, bytes, () => Buffer.from(another()));
  return bytes;
}

/** Every byte is percent-encoded. */
function encoded(bytes: Buffer): string {
  return [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}

/** Status and error code, after checks that the reply is well formed. */
function outcomeOf(kind: SentRequest['kind'], answer: Answer, context: string): string {
  // Options of OData may be refused as not implemented.
  if (answer.status !== 501) expect(answer.status, context).toBeLessThan(500);
  expect(answer.text, context).not.toMatch(LEAK);
  if (answer.status >= 400) return `${answer.status} ${codeIn(answer.text, context)}`;
  if (kind !== 'batch') return String(answer.status);
  expect(answer.status, context).toBe(202);
  const statuses = [...answer.text.matchAll(/^HTTP\/1\.1 (\d+) /gm)].map((one) => Number(one[1]));
  const refused = statuses.filter((status) => status >= 400);
  if (refused.length === 0) return '202';
  // The reply to a refused change set has one part.
  expect(statuses, context).toHaveLength(1);
  expect(refused[0], context).toBeLessThan(500);
  return `${refused[0]} ${codeIn(/\r\n\r\n(\{.*\})\r\n/.exec(answer.text)?.[1] ?? '', context)}`;
}

function codeIn(text: string, context: string): string {
  const error = JSON.parse(text)['odata.error'];
  expect(error.code, context).toMatch(/^[A-Z][A-Za-z]+$/);
  expect(error.message.value, context).toMatch(/\nRequestId:[0-9a-f-]{36}\nTime:\S+Z$/);
  return error.code;
}

function answersIn(kind: SentRequest['kind'], { text }: Answer): number {
  if (kind === 'filter') return 0;
  return kind === 'entity' ? 1 : (text.match(/^HTTP\/1\.1 2/gm) ?? []).length;
}

/** The last line of a change set, or of a query. */
function lastLine({ text }: Answer): RegExp {
  return /^HTTP\/1\.1 200 /m.test(text) ? /^--batch--\s*$/m : /^--set--\s*$/m;
}

/** The JSON of every entity, by its keys. */
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
