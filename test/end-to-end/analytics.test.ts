import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BlobSASPermissions, BlobServiceClient, ContainerClient } from '@azure/storage-blob';
import { check, start } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { account, expectError, expectRefusal, onEveryEngine, type Running } from '../support/test-server.ts';

const off = { enabled: false };
const metrics = (includeAPIs: boolean, days?: number) => ({
  version: '1.0',
  enabled: true,
  includeAPIs,
  retentionPolicy: days === undefined ? off : { enabled: true, days },
});
const noMetrics = { version: '1.0', enabled: false, retentionPolicy: off };
const logging = (kinds: string, version = '1.0', days?: number) => ({
  version,
  read: kinds.includes('r'),
  write: kinds.includes('w'),
  deleteProperty: kinds.includes('d'),
  retentionPolicy: days === undefined ? off : { enabled: true, days },
});

/** All processes read the settings again, and write their buffered records. */
const settle = (running: Running) => running.server.clock.advance(0);

type Columns = Record<string, number | bigint | string>;

/** By row key, added up over the hours or minutes in which they were counted. */
async function metricsIn(running: Running, table: string): Promise<Record<string, Columns>> {
  const rows: Record<string, Columns> = {};
  for await (const { partitionKey, rowKey, ...columns } of running.table(table).listEntities<Columns>()) {
    expect(partitionKey).toMatch(/^\d{8}T\d{4}$/);
    rows[rowKey!] ??= {};
    const sums = rows[rowKey!]!;
    for (const [name, value] of Object.entries(columns))
      if (typeof value === 'bigint') sums[name] = Number(sums[name] ?? 0) + Number(value);
      else if (typeof value === 'number') sums[name] = value;
  }
  return rows;
}

/** A quoted field may hold semicolons. */
const fieldsOf = (line: string): string[] => [...`${line};`.matchAll(/("[^"]*"|[^;"]*);/g)].map(([, field]) => field!);

async function logsOf(running: Running, service = 'blob') {
  const container = running.service.getContainerClient('$logs');
  const logs: { name: string; metadata: Record<string, string>; lines: string[] }[] = [];
  for await (const { name, metadata } of container.listBlobsFlat({ prefix: `${service}/`, includeMetadata: true })) {
    const text = (await container.getBlobClient(name).downloadToBuffer()).toString();
    expect(text.endsWith('\n')).toBe(true);
    logs.push({ name, metadata: metadata!, lines: text.trimEnd().split('\n') });
  }
  return logs;
}

const linesOf = async (running: Running, service?: string) =>
  (await logsOf(running, service)).flatMap(({ lines }) => lines.map((line) => fieldsOf(line)));

describe('Metrics', () => {
  onEveryEngine((running) => {
    it('count what was asked of the service, by hour and by minute, and for each operation', async () => {
      await running.service.setProperties({ hourMetrics: metrics(true), minuteMetrics: metrics(false) });
      await settle(running);
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('a blob');
      await blob.upload('12345', 5);
      for (let i = 0; i < 4; i++) await blob.downloadToBuffer();
      await expectRefusal(container.getBlobClient('none').getProperties(), 404, 'BlobNotFound');
      const expiresOn = new Date(Date.now() + 3_600_000);
      const url = new URL(await blob.generateSasUrl({ permissions: BlobSASPermissions.parse('r'), expiresOn }));
      const path = `${url.pathname.slice(account.length + 1)}${url.search}`;
      expect((await running.request('GET', path, { unsigned: true })).text).toBe('12345');
      expect((await running.request('GET', url.pathname.slice(account.length + 1), { unsigned: true })).status).toBe(
        401,
      );
      await settle(running);

      const hours = await metricsIn(running, '$MetricsHourPrimaryTransactionsBlob');
      const all = hours['user;All']!;
      const byUs = 1 + 1 + 4 + 1 + 1 + 1;
      // The Set itself is counted in some of the processes.
      expect(all.TotalRequests).toBeGreaterThanOrEqual(byUs);
      expect(all).toMatchObject({
        SASSuccess: 1,
        ClientOtherError: 1,
        AnonymousAuthorizationError: 1,
        ThrottlingError: 0,
        ServerOtherError: 0,
        Availability: 100,
        TotalBillableRequests: all.TotalRequests,
      });
      expect(all.AverageE2ELatency).toBeGreaterThan(0);
      expect(all.PercentSuccess).toBeLessThan(100);
      expect(hours['user;GetBlob']).toMatchObject({
        TotalRequests: 6,
        Success: 4,
        SASSuccess: 1,
        AnonymousAuthorizationError: 1,
      });
      expect(hours['user;GetBlob']!.TotalEgress).toBeGreaterThan(25);
      expect(hours['user;PutBlob']).toMatchObject({ TotalRequests: 1, Success: 1, TotalIngress: 5, TotalEgress: 0 });
      expect(hours['user;CreateContainer']).toMatchObject({ TotalRequests: 1, Success: 1 });
      // The client reads the properties of each blob before it downloads it.
      expect(hours['user;GetBlobProperties']).toMatchObject({ TotalRequests: 5, Success: 4, ClientOtherError: 1 });

      const minutes = await metricsIn(running, '$MetricsMinutePrimaryTransactionsBlob');
      expect(Object.keys(minutes)).toEqual(['user;All']);
      expect(minutes['user;All']!.TotalRequests).toBeGreaterThanOrEqual(byUs);
    });

    it('are added to what is there, by every process', async () => {
      await running.queues.setProperties({ hourMetrics: metrics(true) });
      await settle(running);
      const queue = running.queues.getQueueClient(`q-${randomUUID()}`);
      await queue.create();
      for (let i = 0; i < 9; i++) {
        await queue.sendMessage('text');
        if (i % 3 === 2) await settle(running);
      }
      const rows = await metricsIn(running, '$MetricsHourPrimaryTransactionsQueue');
      expect(rows['user;PutMessage']).toMatchObject({ TotalRequests: 9, Success: 9, PercentSuccess: 100 });
    });

    it('count the requests of the File service by its operations', async () => {
      await running.files.setProperties({ hourMetrics: metrics(true) });
      await settle(running);
      const share = await running.newShare();
      await share.getShareLeaseClient().acquireLease(-1);
      await share.delete().catch(() => undefined);
      await settle(running);
      const rows = await metricsIn(running, '$MetricsHourPrimaryTransactionsFile');
      expect(rows['user;CreateShare']).toMatchObject({ TotalRequests: 1, Success: 1 });
      expect(rows['user;AcquireShareLease']).toMatchObject({ TotalRequests: 1, Success: 1 });
      expect(rows['user;DeleteShare']).toMatchObject({ TotalRequests: 1, ClientOtherError: 1 });
    });

    it('lie in tables that are not listed, and that clients only read', async () => {
      await running.tables.setProperties({ minuteMetrics: metrics(true) });
      await settle(running);
      await running.tables.createTable('Ordinary');
      await settle(running);
      const table = running.table('$MetricsMinutePrimaryTransactionsTable');
      const entity = (await table.listEntities().next()).value!;
      const { partitionKey, rowKey } = entity as { partitionKey: string; rowKey: string };
      expect(await table.getEntity(partitionKey, rowKey)).toMatchObject({ partitionKey, rowKey });
      const listed: string[] = [];
      for await (const { name } of running.tables.listTables()) listed.push(name!);
      expect(listed).toEqual(['Ordinary']);
      const refused = (work: Promise<unknown>) => expect(work).rejects.toMatchObject({ statusCode: 400 });
      await refused(table.createEntity({ partitionKey: 'a', rowKey: 'b' }));
      await refused(table.deleteEntity(partitionKey, rowKey));
      await refused(table.updateEntity({ partitionKey, rowKey, TotalRequests: 0 }));
      await refused(table.submitTransaction([['create', { partitionKey: 'a', rowKey: 'b' }]]));
      await refused(running.tables.deleteTable('$MetricsMinutePrimaryTransactionsTable'));
      await refused(running.tables.createTable('$MetricsHourPrimaryTransactionsTable'));
      await refused(running.tables.createTable('$MetricsOther'));
    });

    it('end when they are switched off', async () => {
      await running.queues.setProperties({ hourMetrics: noMetrics });
      await settle(running);
      const before = await metricsIn(running, '$MetricsHourPrimaryTransactionsQueue');
      await running.queues.getQueueClient(`q-${randomUUID()}`).create();
      await settle(running);
      expect(await metricsIn(running, '$MetricsHourPrimaryTransactionsQueue')).toEqual(before);
    });
  });
});

describe('Logs', () => {
  onEveryEngine((running) => {
    it('have a line for each request', async () => {
      await running.service.setProperties({ blobAnalyticsLogging: logging('rwd') });
      await settle(running);
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('a;"b"');
      const { requestId, etag } = await blob.upload('12345', 5, { conditions: { ifNoneMatch: '*' } });
      await settle(running);
      const logs = await logsOf(running);
      for (const { name, metadata } of logs) {
        expect(name).toMatch(/^blob\/\d{4}\/\d\d\/\d\d\/\d\d00\/\d{6}\.log$/);
        expect(metadata.LogVersion ?? metadata.logversion).toBe('1.0');
      }
      const lines = logs.flatMap((log) => log.lines.map((line) => fieldsOf(line)));
      const put = lines.find((fields) => fields[2] === 'PutBlob')!;
      expect(put).toHaveLength(30);
      expect(put.slice(3, 5)).toEqual(['Success', '201']);
      expect(put.slice(7, 11)).toEqual(['authenticated', account, account, 'blob']);
      expect(put[11]).toMatch(new RegExp(`^"http://[^/]+/${account}/${container.containerName}/a%3B%22b%22"$`));
      expect(put[12]).toBe(`"/${account}/${container.containerName}/a%3B%22b%22"`);
      expect(put[13]).toBe(requestId);
      expect(put[15]).toMatch(/^(127\.0\.0\.1|::1|::ffff:127\.0\.0\.1):\d+$/);
      expect(put.slice(18, 22)).toEqual(['5', '', '0', '5']);
      expect(put[24]).toBe(`"&quot;${etag!.replaceAll('"', '')}&quot;"`);
      expect(put[25]).toMatch(/^\w+day, \d\d-\w{3}-\d\d \d\d:\d\d:\d\d GMT$/);
      expect(put[26]).toBe('"If-None-Match=*"');
      expect(put[27]).toMatch(/^"azsdk-js/);
    });

    it('hide signatures, name errors, and omit refused anonymous requests', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('none');
      const expiresOn = new Date(Date.now() + 3_600_000);
      const url = new URL(await blob.generateSasUrl({ permissions: BlobSASPermissions.parse('r'), expiresOn }));
      const path = url.pathname.slice(account.length + 1);
      expectError(await running.request('GET', `${path}${url.search}`, { unsigned: true }), 404, 'BlobNotFound');
      expect((await running.request('GET', path, { unsigned: true })).status).toBe(401);
      await settle(running);
      const lines = (await linesOf(running)).filter((fields) =>
        fields.join(';').includes(`${container.containerName}/none`),
      );
      expect(lines).toHaveLength(1);
      const text = lines[0]!.join(';');
      expect(text).toContain(';GetBlob;BlobNotFound;404;');
      expect(text).toContain(`;sas;;${account};blob;`);
      expect(text).toContain('&amp;sig=XXXXX');
      expect(text).not.toContain(url.searchParams.get('sig')!.slice(0, 10));
    });

    it('are of the kinds, the service and the format that were asked for', async () => {
      await running.queues.setProperties({ queueAnalyticsLogging: logging('d', '2.0') });
      await settle(running);
      const queue = running.queues.getQueueClient(`q-${randomUUID()}`);
      await queue.create();
      await queue.sendMessage('text');
      await queue.clearMessages();
      await queue.delete();
      await settle(running);
      const logs = await logsOf(running, 'queue');
      for (const { metadata } of logs) expect(metadata.LogType ?? metadata.logtype).toBe('delete');
      const lines = await linesOf(running, 'queue');
      expect(lines.map((fields) => fields[2]).sort()).toEqual(['ClearMessages', 'DeleteQueue']);
      expect(lines.map((fields) => [fields[0], fields.length])).toEqual([
        ['2.0', 38],
        ['2.0', 38],
      ]);
      expect(await logsOf(running, 'table')).toEqual([]);
    });

    it('are in a container that is listed only with include=system, and from which clients can only read and delete', async () => {
      const listed = async (includeSystem: boolean) => {
        const names: string[] = [];
        for await (const { name } of running.service.listContainers({ includeSystem })) names.push(name);
        return names.includes('$logs');
      };
      expect([await listed(false), await listed(true)]).toEqual([false, true]);
      const logs = running.service.getContainerClient('$logs');
      const refused = (work: Promise<unknown>) => expectRefusal(work, 403, 'AuthorizationFailure');
      await refused(logs.create());
      await refused(logs.delete());
      await refused(logs.setAccessPolicy('container'));
      const blob = logs.getBlockBlobClient('blob/mine');
      await refused(blob.upload('x', 1));
      await refused(blob.stageBlock(Buffer.from('1').toString('base64'), 'x', 1));
      const [first] = await logsOf(running);
      await refused(logs.getBlobClient(first!.name).setMetadata({ a: 'b' }));
      await logs.deleteBlob(first!.name);
      expect((await logsOf(running)).map(({ name }) => name)).not.toContain(first!.name);
    });

    it('and metrics are deleted after their retention', async () => {
      await running.service.setProperties({
        blobAnalyticsLogging: logging('rwd', '1.0', 2),
        hourMetrics: metrics(false, 2),
        minuteMetrics: metrics(false),
      });
      await settle(running);
      await running.newContainer();
      await settle(running);
      const day = 24 * 3600;
      await running.server.clock.advance(day);
      const old = (await logsOf(running)).map(({ name }) => name);
      expect(old.length).toBeGreaterThan(0);
      const hour = async (table: string) => {
        const keys: string[] = [];
        for await (const { partitionKey } of running.table(table).listEntities()) keys.push(partitionKey!);
        return keys.sort()[0]!;
      };
      const [firstHour, firstMinute] = [
        await hour('$MetricsHourPrimaryTransactionsBlob'),
        await hour('$MetricsMinutePrimaryTransactionsBlob'),
      ];
      await running.server.clock.advance(day + 3600);
      await running.newContainer();
      await settle(running);
      const left = (await logsOf(running)).map(({ name }) => name);
      expect(left.filter((name) => name.slice(0, 20) === old[0]!.slice(0, 20))).toEqual([]);
      expect(left.length).toBeGreaterThan(0);
      expect(await hour('$MetricsHourPrimaryTransactionsBlob')).not.toBe(firstHour);
      expect(await hour('$MetricsMinutePrimaryTransactionsBlob')).toBe(firstMinute);
    });
  });

  it('are written when the server stops, and go on when it starts again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-analytics-'));
    const container = `c-${randomUUID()}`;
    try {
      const first = await start({ location: folder, blobPort: 0, log: { level: 'silent' } });
      const service = BlobServiceClient.fromConnectionString(first.connectionString);
      await service.setProperties({ blobAnalyticsLogging: logging('w'), hourMetrics: metrics(true) });
      await service.createContainer(container);
      await first.stop();
      const second = await start({ location: folder, blobPort: 0, log: { level: 'silent' } });
      const again = BlobServiceClient.fromConnectionString(second.connectionString);
      await again.deleteContainer(container);
      await again.createContainer(`${container}-2`);
      await second.stop();
      const third = await start({ location: folder, blobPort: 0, log: { level: 'silent' } });
      const logs = new ContainerClient(third.connectionString, '$logs');
      let text = '';
      for await (const { name } of logs.listBlobsFlat())
        text += (await logs.getBlobClient(name).downloadToBuffer()).toString();
      await third.stop();
      const written = text
        .trimEnd()
        .split('\n')
        .map((line) => fieldsOf(line));
      expect(written.map((fields) => fields[2])).toEqual([
        'SetBlobServiceProperties',
        'CreateContainer',
        'CreateContainer',
      ]);
      expect((await check(folder)).findings).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
