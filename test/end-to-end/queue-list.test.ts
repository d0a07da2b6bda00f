import { describe, expect, it } from 'vitest';
import { ask, newName } from '../support/queues.ts';
import { elementOf, expectError, onEveryEngine } from '../support/test-server.ts';

describe('List Queues', () => {
  onEveryEngine((running) => {
    async function make(names: readonly string[], metadata: Record<string, string> = {}): Promise<void> {
      await Promise.all(names.map((name) => running.queues.createQueue(name, { metadata })));
    }

    it('lists by name, with the metadata if asked', async () => {
      const prefix = newName();
      await make([`${prefix}-b`, `${prefix}-a`, `${prefix}-c`], { kind: '<x & "y">' });
      const plain: unknown[] = [];
      for await (const item of running.queues.listQueues({ prefix })) plain.push([item.name, item.metadata]);
      expect(plain).toEqual(['a', 'b', 'c'].map((end) => [`${prefix}-${end}`, undefined]));
      const full: unknown[] = [];
      for await (const item of running.queues.listQueues({ prefix, includeMetadata: true })) full.push(item.metadata);
      expect(full).toEqual(Array(3).fill({ kind: '<x & "y">' }));
    });

    it('returns pages of the requested size, and no empty one after the last', async () => {
      const prefix = newName();
      const names = Array.from({ length: 6 }, (_, i) => `${prefix}-${i}`);
      await make(names);
      const pages: string[][] = [];
      for await (const { queueItems } of running.queues.listQueues({ prefix }).byPage({ maxPageSize: 2 })) {
        pages.push(queueItems!.map(({ name }) => name));
      }
      expect(pages).toEqual([names.slice(0, 2), names.slice(2, 4), names.slice(4)]);
    });

    it('continues where it was, whatever is created and deleted in between', async () => {
      const prefix = newName();
      await make(['b', 'd', 'f'].map((end) => `${prefix}-${end}`));
      const [first] = [await running.queues.listQueues({ prefix }).byPage({ maxPageSize: 2 }).next()];
      expect(first.value.queueItems.map(({ name }: { name: string }) => name.at(-1))).toEqual(['b', 'd']);
      await running.queues.deleteQueue(`${prefix}-d`);
      await make([`${prefix}-a`, `${prefix}-e`]);
      const { continuationToken } = first.value;
      const rest: string[] = [];
      for await (const page of running.queues.listQueues({ prefix }).byPage({ continuationToken })) {
        rest.push(...page.queueItems!.map(({ name }) => name.at(-1)!));
      }
      expect(rest).toEqual(['e', 'f']);
    });

    it('repeats what was asked, and names the account by its URL', async () => {
      const prefix = newName();
      const answer = await ask(running, 'GET', `/?comp=list&prefix=${prefix}&maxresults=7&include=metadata`);
      expect(answer.status).toBe(200);
      expect(answer.headers['content-type']).toBe('application/xml');
      expect(answer.text).toContain(`ServiceEndpoint="${running.server.queueUrl}/"`);
      expect([elementOf(answer.text, 'Prefix'), elementOf(answer.text, 'MaxResults')]).toEqual([prefix, '7']);
      expect(answer.text).toContain('<Queues />');
      expect(answer.text).toContain('<NextMarker />');
    });

    it.each(['maxresults=0', 'maxresults=-1'])('refuses %s as out of range', async (parameter) => {
      const answer = await ask(running, 'GET', `/?comp=list&${parameter}`);
      expectError(answer, 400, 'OutOfRangeQueryParameterValue', { QueryParameterName: 'maxresults' });
    });

    it('accepts any number of results and returns at most 5000', async () => {
      expect((await ask(running, 'GET', '/?comp=list&maxresults=100000')).status).toBe(200);
    });

    it('refuses what it does not understand', async () => {
      expectError(await ask(running, 'GET', '/?comp=list&maxresults=x'), 400, 'InvalidQueryParameterValue');
      expectError(await ask(running, 'GET', '/?comp=list&include=snapshots'), 400, 'InvalidQueryParameterValue');
      const marked = await ask(running, 'GET', '/?comp=list&marker=made-up');
      expect(marked.status).toBe(400);
      expectError(await ask(running, 'GET', '/?comp=lists'), 400, 'InvalidQueryParameterValue');
    });
  });
});
