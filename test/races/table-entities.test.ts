import type { TableClient } from '@azure/data-tables';
import { describe, expect, it } from 'vitest';
import { all, ask, entityPath, expectOdataError, newTable } from '../support/tables.ts';
import { onEveryEngine } from '../support/test-server.ts';

const CLIENTS = 32;
const MATCHING = { 'If-Match': '*' };

describe('Clients of a table', { timeout: 120_000 }, () => {
  onEveryEngine((running) => {
    describe('that raise counters by If-Match', () => {
      it('lose no update of one entity', async () => {
        const table = await newTable(running);
        await table.createEntity({ partitionKey: 'p', rowKey: 'counter', count: 0, kept: 'as it was' });
        const etags = new Set<string>();
        const raise = async (mode: 'Merge' | 'Replace') => {
          for (let done = 0; done < 8; ) done += await raiseOnce(table, 'counter', mode, etags);
        };
        const clients = Array.from({ length: 6 }, (_, at) => raise(at % 2 === 0 ? 'Merge' : 'Replace'));
        await Promise.all(clients);
        const found = await table.getEntity<Counter>('p', 'counter');
        expect(found).toMatchObject({ count: 48, kept: 'as it was' });
        // Each write has an ETag that no other has.
        expect(etags.size).toBe(48);
        expect(etags).toContain(found.etag);
      });

      it('lose none of several entities, in single writes and in transactions over all of them', async () => {
        const table = await newTable(running);
        const rowKeys = ['a', 'b', 'c', 'd'];
        for (const rowKey of rowKeys) await table.createEntity({ partitionKey: 'p', rowKey, count: 0, kept: rowKey });
        const alone = async (first: number) => {
          for (let done = 0; done < 8; ) done += await raiseOnce(table, rowKeys[(first + done) % 4]!, 'Merge');
        };
        const together = async () => {
          for (let done = 0; done < 5; ) done += await raiseAll(table, rowKeys);
        };
        await Promise.all([0, 1, 2, 3].map(alone).concat([0, 1, 2].map(together)));
        const found = await all(table.listEntities<Counter>());
        const expected = rowKeys.map((rowKey) => ({ rowKey, count: 4 * 2 + 3 * 5, kept: rowKey }));
        expect(found.map(({ rowKey, count, kept }) => ({ rowKey, count, kept }))).toEqual(expected);
      });
    });

    describe(`${CLIENTS} of them on one entity`, () => {
      it('of those that insert it exactly one does', async () => {
        const { tableName } = await newTable(running);
        for (let round = 0; round < 3; round++) {
          const answers = await everyClient((at) =>
            ask(running, 'POST', `/${tableName}`, { body: entityOf(`r${round}`, at) }),
          );
          const winners = answers.filter(({ status }) => status === 201);
          expect(winners).toHaveLength(1);
          for (const answer of answers) if (answer !== winners[0]) expectOdataError(answer, 409, 'EntityAlreadyExists');
          const found = await ask(running, 'GET', entityPath(tableName, 'p', `r${round}`));
          expect(JSON.parse(found.text).client).toBe(answers.indexOf(winners[0]!));
          expect(found.headers.etag).toBe(winners[0]!.headers.etag);
        }
      });

      it('of those with the same If-Match exactly one wins, and what it wrote stays', async () => {
        const { tableName } = await newTable(running);
        const path = entityPath(tableName, 'p', 'r');
        for (const method of ['PUT', 'PATCH'] as const) {
          const { etag } = (await ask(running, 'PUT', path, { body: entityOf('r', -1) })).headers;
          const headers = { 'If-Match': etag };
          const answers = await everyClient((at) => ask(running, method, path, { headers, body: entityOf('r', at) }));
          const winners = answers.filter(({ status }) => status === 204);
          expect(winners).toHaveLength(1);
          for (const answer of answers)
            if (answer !== winners[0]) expectOdataError(answer, 412, 'UpdateConditionNotSatisfied');
          const found = await ask(running, 'GET', path);
          expect(JSON.parse(found.text).client).toBe(answers.indexOf(winners[0]!));
          expect(found.headers.etag).toBe(winners[0]!.headers.etag);
        }
      });

      it('that force their writes all succeed, each with an ETag of its own, and the greatest stays', async () => {
        const { tableName } = await newTable(running);
        const path = entityPath(tableName, 'p', 'r');
        await ask(running, 'PUT', path, { body: entityOf('r', -1) });
        const answers = await everyClient((at) =>
          ask(running, 'PUT', path, { headers: at % 2 === 0 ? MATCHING : {}, body: entityOf('r', at) }),
        );
        const etags = answers.map(({ status, headers }) => {
          expect(status).toBe(204);
          return headers.etag!;
        });
        expect(new Set(etags).size).toBe(CLIENTS);
        const last = etags.reduce((one, other) => (instantOf(one) > instantOf(other) ? one : other));
        const found = await ask(running, 'GET', path);
        expect(found.headers.etag).toBe(last);
        expect(JSON.parse(found.text).client).toBe(etags.indexOf(last));
      });

      it('that delete it with the same ETag: exactly one does', async () => {
        const { tableName } = await newTable(running);
        const path = entityPath(tableName, 'p', 'r');
        const { etag } = (await ask(running, 'PUT', path, { body: entityOf('r', 0) })).headers;
        const answers = await everyClient(() => ask(running, 'DELETE', path, { headers: { 'If-Match': etag } }));
        const refused = answers.filter(({ status }) => status !== 204);
        expect(refused).toHaveLength(CLIENTS - 1);
        for (const answer of refused) expectOdataError(answer, 404, 'ResourceNotFound');
      });

      it('that insert and delete it alternate', async () => {
        const { tableName } = await newTable(running);
        const path = entityPath(tableName, 'p', 'r');
        const tally = { inserted: 0, deleted: 0 };
        const insert = async (at: number) => {
          for (let done = 0; done < 12; done++) {
            const answer = await ask(running, 'POST', `/${tableName}`, { body: entityOf('r', at) });
            if (answer.status === 201) tally.inserted++;
            else expectOdataError(answer, 409, 'EntityAlreadyExists');
          }
        };
        const remove = async () => {
          for (let done = 0; done < 12; done++) {
            const answer = await ask(running, 'DELETE', path, { headers: MATCHING });
            if (answer.status === 204) tally.deleted++;
            else expectOdataError(answer, 404, 'ResourceNotFound');
          }
        };
        await Promise.all([insert(0), insert(1), insert(2), insert(3), remove(), remove(), remove()]);
        const { status } = await ask(running, 'GET', path);
        expect(tally.inserted - tally.deleted).toBe(status === 200 ? 1 : 0);
        expect(tally.inserted).toBeGreaterThan(0);
      });

      it('that merge a property each into an entity that may not exist yet: all of them are kept', async () => {
        const { tableName } = await newTable(running);
        for (const round of [1, 2, 3]) {
          const path = entityPath(tableName, 'p', `r${round}`);
          const answers = await everyClient((at) =>
            ask(running, 'PATCH', path, { body: JSON.stringify({ [`m${at}`]: at }) }),
          );
          expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]));
          const found = JSON.parse((await ask(running, 'GET', path)).text);
          const expected = Object.fromEntries(answers.map((_, at) => [`m${at}`, at]));
          expect(found).toMatchObject(expected);
        }
      });
    });
  });
});

interface Counter extends Record<string, unknown> {
  readonly count: number;
  readonly kept: string;
}

/** 1 if it was raised, 0 if another one was faster. */
async function raiseOnce(table: TableClient, rowKey: string, mode: 'Merge' | 'Replace', etags = new Set<string>()) {
  const { count, kept, etag } = await table.getEntity<Counter>('p', rowKey);
  const next = { partitionKey: 'p', rowKey, count: count + 1, ...(mode === 'Replace' && { kept }) };
  return attempt(async () => etags.add((await table.updateEntity(next, mode, { etag })).etag!));
}

async function raiseAll(table: TableClient, rowKeys: readonly string[]) {
  const found = await Promise.all(rowKeys.map((rowKey) => table.getEntity<Counter>('p', rowKey)));
  return attempt(() =>
    table.submitTransaction(
      found.map(({ rowKey, count, etag }) => {
        const next = { partitionKey: 'p', rowKey: rowKey as string, count: count + 1 };
        return ['update', next, 'Merge', { etag }];
      }),
    ),
  );
}

async function attempt(write: () => Promise<unknown>): Promise<0 | 1> {
  try {
    await write();
    return 1;
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode !== 412) throw error;
    return 0;
  }
}

function entityOf(rowKey: string, client: number): string {
  return JSON.stringify({ PartitionKey: 'p', RowKey: rowKey, client });
}

/** As text they do not compare: zeros at the end are left out. */
function instantOf(etag: string): string {
  const [, second, fraction = ''] = /'(.*?)(?:\.(\d+))?Z'/.exec(decodeURIComponent(etag))!;
  return `${second}.${fraction.padEnd(7, '0')}`;
}

function everyClient<T>(act: (at: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: CLIENTS }, (_, at) => act(at)));
}
