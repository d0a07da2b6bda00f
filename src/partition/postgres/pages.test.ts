import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Cluster, missing, startCluster } from '../../../test/support/postgres-cluster.ts';
import { bytes, key, times } from '../conformance/harness.ts';
import { keyPrefix, prefixEnd } from '../keys.ts';
import type { PagedSnapshot, Partition } from '../partition.ts';
import { openPartition } from '../transact.ts';
import { openPostgres } from './engine.ts';

const FOLDERS = 700;
const from = keyPrefix(['file'], '');
const range = { from, to: prefixEnd(from) };
const grouping = { from: from.length, delimiter: '/' };
let cluster: Cluster;
let partition: Partition;

describe.skipIf(missing)(`A page on PostgreSQL${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    cluster = await startCluster();
    partition = openPartition(await openPostgres({ url: cluster.url }));
    for (const file of [0, 1, 30]) {
      await partition.transact(key('file'), async (tx) => {
        for (let i = 0; i < FOLDERS; i++) tx.put(key('file', `${String(i).padStart(4, '0')}/${file}`), bytes(i));
      });
    }
  });
  afterAll(async () => {
    await partition?.close();
    await cluster?.drop();
  });

  /** The messages that are sent to the server for one read. */
  async function sentFor(fn: (at: PagedSnapshot) => Promise<void>): Promise<string[]> {
    const sent: string[] = [];
    const { query } = pg.Client.prototype;
    const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
      this: pg.Client,
      ...given: unknown[]
    ) {
      const text = (given[0] as { text?: string }).text ?? String(given[0]);
      if (text.includes('execute holdfast_')) sent.push(text);
      return Reflect.apply(query, this, given);
    });
    onTestFinished(() => spy.mockRestore());
    await partition.read(fn);
    return sent;
  }

  it('is one call of one server function, however large the groups are', async () => {
    const sent = await sentFor(async (at) => {
      const { rows, next } = await at.page(range, { limit: 5_000, grouping });
      expect([rows.length, next]).toEqual([FOLDERS, undefined]);
    });
    const page =
      /^(commit; )?begin; execute holdfast_now\(\d+\); commit; begin isolation level repeatable read[^;]*; execute holdfast_page[^;]*$/;
    expect(sent).toEqual([expect.stringMatching(page)]);
  });

  it('is one statement also without groups', async () => {
    const sent = await sentFor(async (at) => {
      expect((await at.page(range, { limit: 5_000 })).rows).toHaveLength(3 * FOLDERS);
    });
    expect(sent).toEqual([expect.stringContaining('holdfast_scan(')]);
  });

  it('shares a round trip with the other reads of the turn', async () => {
    const sent = await sentFor(async (at) => {
      await at.get(key('file', 'none'));
      const pages = await Promise.all(times(3, () => at.page(range, { limit: 10, grouping })));
      expect(pages.map(({ rows }) => rows.length)).toEqual([10, 10, 10]);
    });
    expect(sent).toEqual([
      expect.stringContaining('holdfast_get('),
      expect.stringMatching(/^(execute holdfast_page[^;]*;? ?){3}$/),
    ]);
  });
});
