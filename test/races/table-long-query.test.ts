import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { describe, expect, it } from 'vitest';
import { ask, entityPath, newTable } from '../support/tables.ts';
import { onEngine, type Running } from '../support/test-server.ts';

const ENTITIES = 50_000;
const WRITERS = 16;

describe(`A query that matches none of ${ENTITIES} entities`, () => {
  for (const engine of ['LMDB', 'PostgreSQL'] as const)
    onEngine(
      engine,
      (running) => {
        it('ends with nothing, and clients write meanwhile', { timeout: 240_000 }, async () => {
          const { tableName } = await newTable(running);
          await fill(running, tableName);
          let isOver = false;
          const delay = monitorEventLoopDelay({ resolution: 1 });
          const written: number[] = [];
          const times: number[] = [];
          const write = async (writer: number) => {
            const path = entityPath(tableName, 'written', String(writer));
            written[writer] = 0;
            while (!isOver) {
              const began = performance.now();
              const body = JSON.stringify({ count: written[writer]! + 1 });
              expect((await ask(running, 'PUT', path, { body })).status).toBe(204);
              times.push(performance.now() - began);
              written[writer]!++;
            }
          };
          const writing = Array.from({ length: WRITERS }, (_, writer) => write(writer));
          delay.enable();
          const began = performance.now();
          const { found, pages } = await query(running, tableName, "missing eq 'x' or filler eq 'y'");
          const took = performance.now() - began;
          delay.disable();
          const during = times.length;
          isOver = true;
          await Promise.all(writing);
          const p99 = times.sort((one, other) => one - other)[Math.floor(times.length * 0.99)]!;
          const milliseconds = (value: number) => `${value.toFixed(1)} ms`;
          console.log(
            `${engine}: ${ENTITIES} entities read in ${milliseconds(took)} (${pages} pages) beside ${during} writes, p99 ${milliseconds(p99)};`,
            `the loop of server and clients was late by p99 ${milliseconds(delay.percentile(99) / 1e6)}, at most ${milliseconds(delay.max / 1e6)}`,
          );
          expect(found).toEqual([]);
          expect(during).toBeGreaterThan(0);
          const counts = await query(running, tableName, "PartitionKey eq 'written'");
          expect(counts.found.map(({ count }) => count)).toEqual(inOrder(written));
        });
      },
      { heavy: true },
    );
});

/** Row keys are ordered as text. */
function inOrder(written: readonly number[]): number[] {
  const keys = written.map((_, writer) => String(writer)).sort();
  return keys.map((key) => written[Number(key)]!);
}

async function query(running: Running, table: string, filter: string) {
  const found: { count: number }[] = [];
  for (let pages = 1, from = ''; ; pages++) {
    const answer = await ask(running, 'GET', `/${table}?$filter=${encodeURIComponent(filter)}${from}`);
    expect(answer.status).toBe(200);
    found.push(...JSON.parse(answer.text).value);
    const next = (key: string) => answer.headers[`x-ms-continuation-next${key}`];
    if (next('partitionkey') === undefined) return { found, pages };
    from = `&NextPartitionKey=${next('partitionkey')}&NextRowKey=${next('rowkey')}`;
  }
}

async function fill(running: Running, table: string): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < ENTITIES) {
      const first = next;
      next += 100;
      const { status, text } = await ask(running, 'POST', '/$batch', {
        headers: { 'Content-Type': 'multipart/mixed; boundary=b' },
        body: `--b\nContent-Type: multipart/mixed; boundary=c\n\n${inserts(table, first)}--c--\n--b--\n`,
      });
      expect(status).toBe(202);
      expect(text).not.toMatch(/HTTP\/1\.1 4/);
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
}

function inserts(table: string, first: number): string {
  let text = '';
  for (let at = first; at < first + 100; at++) {
    const body = `{"PartitionKey":"p${Math.floor(at / 1_000)}","RowKey":"${at}","filler":"x","number":${at}}`;
    text += `--c\nContent-Type: application/http\n\nPOST /${table} HTTP/1.1\nContent-Type: application/json\nPrefer: return-no-content\n\n${body}\n`;
  }
  return text;
}
