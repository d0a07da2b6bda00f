import { afterEach, describe, expect, it } from 'vitest';
import { anAnswered, MONDAY } from '../../../test/support/access-record.ts';
import { ACCOUNT, openWorld } from '../../../test/support/blob-storage.ts';
import { queryEntities } from '../../../test/support/table-storage.ts';
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { OutcomeUnknown, type Partition, Unavailable } from '../../partition/partition.ts';
import { getBlob } from '../blob/blobs.ts';
import { listBlobs } from '../blob/listing.ts';
import { type RequestedProperties, setServiceProperties } from '../common/service-properties.ts';
import type { Storage } from '../common/storage.ts';
import { emptyAccount } from '../maintenance/reset.ts';
import { decodeEntityProperties } from '../table/entity-rows.ts';
import { type AnalyticsOptions, startAnalytics } from './analytics.ts';

const ALL: RequestedProperties = {
  logging: { version: '1.0', read: true, write: true, delete: true },
  hourMetrics: { enabled: true, perApi: false },
};
const NEVER = 2 ** 30;

describe('Storage Analytics', () => {
  let world: Awaited<ReturnType<typeof openWorld>>;
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
    await world.stop();
  });

  async function open() {
    world = await openWorld();
    const { partition, store: content, sweeper } = world;
    const storage: Storage = { partition, account: ACCOUNT, content, sweeper };
    /** Each as if in a process of its own; nothing happens by itself. */
    async function start(options: Partial<AnalyticsOptions> = {}) {
      const failures: unknown[] = [];
      const dropped: unknown[] = [];
      const analytics = await startAnalytics({
        partition,
        date: () => partition.clock.now(),
        accounts: () => [{ id: ACCOUNT, name: 'me' }],
        storageOf: () => ({ ...storage, partition: options.partition ?? partition }),
        onFailure: (error) => failures.push((error as Error).name),
        onWorked: () => failures.push('worked'),
        onDropped: (what, count) => dropped.push([what, count]),
        everyMilliseconds: { settings: NEVER, metrics: NEVER, logs: NEVER, retention: NEVER },
        ...options,
      });
      stops.push(() => analytics.stop());
      return { analytics, failures, dropped };
    }
    async function logs() {
      const names: string[] = [];
      const listing = { container: '$logs', prefix: '', marker: undefined, resultsMax: undefined };
      await listBlobs(storage, { ...listing, delimiter: undefined, uncommitted: false }, (items) => {
        for (const item of items) if ('name' in item) names.push(item.name);
      });
      const texts: string[] = [];
      for (const blob of names) {
        const none = {
          range: undefined,
          rangeMd5: undefined,
          rangeCrc64: undefined,
          leaseId: undefined,
          conditions: {},
        };
        const { bytes } = await getBlob(storage, { container: '$logs', blob, ...none });
        const buffers: Uint8Array[] = [];
        if (bytes instanceof Uint8Array) buffers.push(bytes);
        else for await (const buffer of bytes) buffers.push(buffer);
        texts.push(Buffer.concat(buffers).toString());
      }
      return { names, ids: texts.flatMap((text) => text.match(/request-\d+/g) ?? []) };
    }
    async function requests() {
      const { entities } = await queryEntities(storage, { table: '$MetricsHourPrimaryTransactionsBlob' });
      return entities.map((entity) => {
        const columns = Object.fromEntries(
          decodeEntityProperties(entity).map(({ name, value }) => [name, value.value]),
        );
        return [entity.partitionKey, entity.rowKey, columns.TotalRequests];
      });
    }
    return { storage, start, logs, requests };
  }

  /** A partition whose writes fail as long as this says so. */
  function failing(partition: Partition, fault: () => Error | undefined): Partition {
    return Object.assign(Object.create(partition) as Partition, {
      transact: (...args: Parameters<Partition['transact']>) => {
        const error = fault();
        return error ? Promise.reject(error) : partition.transact(...args);
      },
    });
  }

  it('is off until an account switches it on, and off again after a reset', async () => {
    const { storage, start } = await open();
    const { analytics } = await start();
    const settings = { refresh: () => analytics.refresh() };
    expect(analytics.isOn).toBe(false);
    await setServiceProperties({ ...storage, settings }, 'queue', { minuteMetrics: { enabled: false, days: 3 } });
    expect(analytics.isOn).toBe(false);
    await setServiceProperties({ ...storage, settings }, 'queue', ALL);
    expect(analytics.isOn).toBe(true);
    await emptyAccount(storage);
    await analytics.reset();
    expect(analytics.isOn).toBe(false);
  });

  it('of several processes leaves every line once, and one row with all that was counted', async () => {
    const { storage, start, logs, requests } = await open();
    await setServiceProperties(storage, 'blob', ALL);
    const processes = [await start(), await start(), await start()];
    for (let i = 0; i < 12; i++) processes[i % 3]!.analytics.record(anAnswered({ id: `request-${i}` }));
    await Promise.all(processes.map(({ analytics }) => analytics.settle()));
    processes[0]!.analytics.record(anAnswered({ id: 'request-12' }));
    await processes[0]!.analytics.stop();
    const { names, ids } = await logs();
    expect(names).toEqual([0, 1, 2, 3].map((number) => `blob/2026/11/16/0900/00000${number}.log`));
    expect(ids.sort()).toEqual(Array.from({ length: 13 }, (_, i) => `request-${i}`).sort());
    expect(await requests()).toEqual([['20261116T0900', 'user;All', 13n]]);
  });

  it('writes long logs as well as short ones', async () => {
    const { storage, start, logs } = await open();
    await setServiceProperties(storage, 'blob', ALL);
    const { analytics } = await start();
    const userAgent = 'x'.repeat(1_000);
    for (let i = 0; i < 100; i++) analytics.record(anAnswered({ id: `request-${i}`, userAgent }));
    await analytics.settle();
    expect((await logs()).ids).toEqual(Array.from({ length: 100 }, (_, i) => `request-${i}`));
  });

  it('keeps what could not be written for another time', async () => {
    const { storage, start, logs, requests } = await open();
    await setServiceProperties(storage, 'blob', ALL);
    let fault: Error | undefined = new Unavailable('full');
    const { analytics, failures } = await start({ partition: failing(world.partition, () => fault) });
    analytics.record(anAnswered({ id: 'request-1' }));
    await analytics.settle();
    expect(failures).toEqual(['Unavailable', 'Unavailable']);
    fault = undefined;
    await analytics.settle();
    expect(failures.at(-1)).toBe('worked');
    expect((await logs()).ids).toEqual(['request-1']);
    expect(await requests()).toEqual([['20261116T0900', 'user;All', 1n]]);
  });

  it('never counts twice what may have been written', async () => {
    const { storage, start } = await open();
    await setServiceProperties(storage, 'blob', { hourMetrics: { enabled: true, perApi: false } });
    let tries = 0;
    const unknown = failing(world.partition, () => {
      tries++;
      return new OutcomeUnknown('lost');
    });
    const { analytics } = await start({ partition: unknown });
    analytics.record(anAnswered({}));
    await analytics.settle();
    await analytics.settle();
    expect(tries).toBe(1);
  });

  it('says how much it could not keep', async () => {
    const { storage, start, logs } = await open();
    await setServiceProperties(storage, 'blob', ALL);
    const { analytics, dropped } = await start({ limits: { linesMax: 3, countersMax: 1 } });
    for (let i = 0; i < 5; i++) {
      const started = MONDAY + BigInt(i) * 3600n * TICKS_PER_SECOND;
      analytics.record(anAnswered({ id: `request-${i}`, started }));
    }
    await analytics.settle();
    expect(dropped).toEqual([
      ['requests of the metrics', 4],
      ['log lines', 2],
    ]);
    expect((await logs()).ids).toEqual(['request-0', 'request-1', 'request-2']);
  });

  it('writes the logs early when the buffer is half full', async () => {
    const { storage, start, logs } = await open();
    await setServiceProperties(storage, 'blob', ALL);
    const { analytics } = await start({ limits: { linesMax: 4 } });
    for (let i = 0; i < 3; i++) analytics.record(anAnswered({ id: `request-${i}` }));
    await expect.poll(async () => (await logs().catch(() => undefined))?.ids.length).toBe(3);
  });
});
