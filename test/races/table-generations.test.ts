import type { TableClient, TransactionAction } from '@azure/data-tables';
import { describe, expect, it } from 'vitest';
import { all, ask, newTable } from '../support/tables.ts';
import { onEveryEngine } from '../support/test-server.ts';

const ENTITIES = 50;
const GENERATIONS = 25;
const keys = Array.from({ length: ENTITIES }, (_, at) => ({ partitionKey: 'p', rowKey: `r${100 + at}` }));

describe('A reader of a partition whose entities are replaced by transactions', { timeout: 120_000 }, () => {
  onEveryEngine((running) => {
    it('never sees two generations, nor an older one than was acknowledged before it asked', async () => {
      const table = await newTable(running);
      await fillNeighbours(table);
      await table.submitTransaction(generation('upsert', 0));
      let acknowledged = 0;
      const writer = async () => {
        for (let next = 1; next <= GENERATIONS; next++) {
          await table.submitTransaction(generation(next % 2 === 0 ? 'upsert' : 'update', next));
          acknowledged = next;
        }
      };
      const reader = async (filter: string) => {
        let reads = 0;
        let newest = 0;
        while (acknowledged < GENERATIONS || reads === 0) {
          const floor = Math.max(acknowledged, newest);
          const { status, text } = await ask(
            running,
            'GET',
            `/${table.tableName}?$filter=${encodeURIComponent(filter)}`,
          );
          expect(status).toBe(200);
          const found: { RowKey: string; generation: number }[] = JSON.parse(text).value;
          expect(found.map(({ RowKey }) => RowKey)).toEqual(keys.map(({ rowKey }) => rowKey));
          expect(new Set(found.map((entity) => entity.generation)).size).toBe(1);
          newest = found[0]!.generation;
          expect(newest).toBeGreaterThanOrEqual(floor);
          reads++;
        }
        return reads;
      };
      const [reads] = await Promise.all([
        reader("PartitionKey eq 'p'"),
        reader("PartitionKey eq 'p' and (RowKey le 'r120' or RowKey ge 'r121')"),
        // The whole table is read for it.
        reader('generation ge 0'),
        writer(),
      ]);
      expect(reads).toBeGreaterThan(0);
    });

    it('that are inserted and deleted as a whole sees all of them or none', async () => {
      const table = await newTable(running);
      let rounds = 0;
      const writer = async () => {
        while (rounds < 12) {
          await table.submitTransaction(keys.map((key) => ['create', { ...key, generation: rounds }]));
          await table.submitTransaction(keys.map((key) => ['delete', key]));
          rounds++;
        }
      };
      const seen = new Set<number>();
      const reader = async () => {
        while (rounds < 12) {
          const found = await all(table.listEntities<{ generation: number }>());
          seen.add(found.length);
          expect(new Set(found.map((entity) => entity.generation)).size).toBeLessThanOrEqual(1);
        }
      };
      await Promise.all([writer(), reader(), reader(), reader()]);
      expect([...seen].filter((count) => count !== 0 && count !== ENTITIES)).toEqual([]);
    });

    it('that asks for each entity separately never sees time go back', async () => {
      const table = await newTable(running);
      await table.submitTransaction(generation('upsert', 0));
      let isOver = false;
      const writer = async () => {
        for (let next = 1; next <= GENERATIONS; next++) await table.submitTransaction(generation('upsert', next));
        isOver = true;
      };
      const reader = async () => {
        let newest = 0;
        // A generation that one entity shows has reached all of them.
        for (let at = 0; !isOver; at = (at + 7) % ENTITIES) {
          const { partitionKey, rowKey } = keys[at]!;
          const found = await table.getEntity<{ generation: number }>(partitionKey, rowKey);
          expect(found.generation).toBeGreaterThanOrEqual(newest);
          newest = found.generation;
        }
      };
      await Promise.all([writer(), reader(), reader()]);
    });
  });
});

function generation(kind: 'upsert' | 'update', number: number): TransactionAction[] {
  return keys.map((key) => [kind, { ...key, generation: number, filler: 'f'.repeat(400) }, 'Replace']);
}

/** A page is read in slices of 200 rows, between which other requests run: one slice ends amid the generation. */
async function fillNeighbours(table: TableClient): Promise<void> {
  const neighbours = { a: 100, b: 75, z: 50 };
  for (const [partitionKey, length] of Object.entries(neighbours))
    await table.submitTransaction(
      Array.from({ length }, (_, at) => ['create', { partitionKey, rowKey: String(at), filler: 'x' }]),
    );
}
