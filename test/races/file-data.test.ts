/** Bytes of files: writes against deletes, and processes that are killed while ranges are written and copies run. */
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type ShareFileClient, ShareServiceClient, StorageSharedKeyCredential } from '@azure/storage-file-share';
import { check } from 'holdfast';
import { afterAll, afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { CopyOrigin } from '../support/copy-origin.ts';
import { newFolder } from '../support/disposable-servers.ts';
import { restartableServer, type Server, stopServers } from '../support/restartable-servers.ts';
import { account, accountKey, onEveryDisk } from '../support/test-server.ts';

const MIB = 1 << 20;
const SLICE = 16 * MIB;
const WRITERS = 6;
const SPAN = 3_000;
const KILLS = 3;
const ACKNOWLEDGED_MIN = 60;

const origin = await CopyOrigin.start();
afterAll(() => origin.stop());
afterEach(() => origin.resume());

describe('Put Range and Delete File', () => {
  onEveryDisk((running) => {
    it('have one order: what is written to a file that is deleted is nowhere', async () => {
      const share = await running.newShare();
      for (let round = 0; round < 10; round++) {
        const file = share.rootDirectoryClient.getFileClient(`f${round}`);
        await file.create(20_000);
        const writes = Array.from({ length: 8 }, (_, i) =>
          file.uploadRange(randomBytes(i % 2 ? 2_000 : 6_000), i * 1_000, i % 2 ? 2_000 : 6_000).then(
            () => 201,
            (error: { statusCode?: number }) => error.statusCode,
          ),
        );
        const [deleted, ...written] = await Promise.all([file.delete().then(() => 202), ...writes]);
        expect(deleted).toBe(202);
        for (const status of written) expect([201, 404]).toContain(status);
        expect(await file.exists()).toBe(false);
        await file.create(20_000);
        expect((await file.downloadToBuffer()).every((byte) => byte === 0)).toBe(true);
        await file.delete();
      }
      const { shareUsageBytes } = await share.getStatistics();
      expect(shareUsageBytes).toBe(0);
    });
  });
});

function serverOn(folder: string): Server {
  const flags = ['--location', folder, '--copy-from', origin.url, '--filePort', '0', '--log-level', 'warn'];
  const server = restartableServer(flags);
  onTestFinished(() => stopServers([server]));
  return server;
}

/** The File service is the last to listen. */
async function started(server: Server): Promise<void> {
  await server.start();
  while (server.originOf('File') === undefined) await pause(10);
}

function fileAt(server: Server, name: string): ShareFileClient {
  const credential = new StorageSharedKeyCredential(account, accountKey);
  const service = new ShareServiceClient(`${server.originOf('File')}/${account}`, credential, {
    retryOptions: { maxTries: 1 },
  });
  return service.getShareClient('box').rootDirectoryClient.getFileClient(name);
}

const shareAt = (server: Server) =>
  new ShareServiceClient(
    `${server.originOf('File')}/${account}`,
    new StorageSharedKeyCredential(account, accountKey),
  ).getShareClient('box');

describe('Files of a process that is killed', { timeout: 240_000 }, () => {
  it('have all ranges that were acknowledged, and no part of another', async () => {
    const folder = newFolder();
    const server = serverOn(folder);
    await started(server);
    await shareAt(server).create();
    await fileAt(server, 'data').create(WRITERS * SPAN);
    /** By writer: the numbers that were sent, and the last one that was acknowledged. */
    const spans = Array.from({ length: WRITERS }, () => ({ sent: new Set<number>([0]), acknowledged: 0 }));
    let [count, serial] = [0, 0];
    for (let kill = 0; kill < KILLS; kill++) {
      const enough = count + ACKNOWLEDGED_MIN;
      let isOver = false;
      const writers = spans.map(async (span, at) => {
        while (!isOver) {
          const number = ++serial;
          span.sent.add(number);
          const abortSignal = AbortSignal.timeout(5_000);
          const bytes = Buffer.from(`<${number}>`.padEnd(SPAN, '.'));
          const isKept = await Promise.resolve()
            .then(() => fileAt(server, 'data').uploadRange(bytes, at * SPAN, SPAN, { abortSignal }))
            .then(
              () => true,
              () => pause(20, false),
            );
          if (!isKept) continue;
          span.acknowledged = number;
          count++;
        }
      });
      await expect.poll(() => count, { timeout: 60_000 }).toBeGreaterThan(enough);
      await server.kill();
      expect((await check(folder)).findings).toEqual([]);
      await started(server);
      isOver = true;
      await Promise.all(writers);
      const bytes = await fileAt(server, 'data').downloadToBuffer();
      for (const [at, { sent, acknowledged }] of spans.entries()) {
        const part = bytes.subarray(at * SPAN, (at + 1) * SPAN);
        const number = Number(/^<(\d+)>/.exec(part.toString('latin1'))?.[1] ?? 0);
        expect(sent.has(number) && number >= acknowledged).toBe(true);
        const whole = number === 0 ? Buffer.alloc(SPAN) : Buffer.from(`<${number}>`.padEnd(SPAN, '.'));
        expect(part.equals(whole)).toBe(true);
      }
    }
    await stopServers([server]);
    expect((await check(folder)).findings).toEqual([]);
  });

  it.each([0, SLICE, 2 * SLICE])('go on being copied after the next start, from byte %i on', async (copied) => {
    const folder = newFolder();
    const server = serverOn(folder);
    await started(server);
    await shareAt(server).create();
    const bytes = randomBytes(40 * MIB);
    const path = `/file-${copied}`;
    const url = origin.put(path, { bytes, stallsAt: copied + MIB });
    const { copyId } = await fileAt(server, 'copy').startCopyFromURL(url, { metadata: { a: '1' } });
    const reached = async (isReached: (found: { copyStatus?: string; copyProgress?: string }) => boolean) => {
      for (;;) {
        const found = await fileAt(server, 'copy').getProperties();
        if (isReached(found)) return found;
        await pause(50);
      }
    };
    await reached(({ copyProgress }) => copyProgress === `${copied}/${bytes.length}`);
    await server.kill('SIGKILL');
    expect((await check(folder)).findings).toEqual([]);
    const before = origin.requestsFor(path).length;
    origin.resume();
    await started(server);
    const found = await reached(({ copyStatus }) => copyStatus !== 'pending');
    expect(found).toMatchObject({ copyStatus: 'success', copyId, contentLength: bytes.length, metadata: { a: '1' } });
    expect((await fileAt(server, 'copy').downloadToBuffer()).equals(bytes)).toBe(true);
    const [resumed] = origin.requestsFor(path).slice(before);
    expect(resumed!.headers.range).toBe(copied === 0 ? undefined : `bytes=${copied}-`);
    await stopServers([server]);
    expect((await check(folder)).findings).toEqual([]);
  });
});
