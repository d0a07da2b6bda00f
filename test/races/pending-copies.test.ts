/** Copies that run while servers are killed, and while many clients start and abort them. */
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { BlobServiceClient, BlockBlobClient } from '@azure/storage-blob';
import { check, type Where } from 'holdfast';
import { afterAll, afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { CopyOrigin } from '../support/copy-origin.ts';
import { newFolder } from '../support/disposable-servers.ts';
import { missing } from '../support/postgres-cluster.ts';
import { restartableServer, type Server, startServers, stopServers } from '../support/restartable-servers.ts';
import { account, clientOf, onEveryDisk, refusal } from '../support/test-server.ts';
import { newDatabase } from '../support/three-processes.ts';

const MIB = 1 << 20;
const SLICE = 16 * MIB;
const origin = await CopyOrigin.start();
afterAll(() => origin.stop());
afterEach(() => origin.resume());

interface Store {
  readonly servers: readonly Server[];
  readonly where: Where;
}

async function startStore(count: number, flags: readonly string[], where: Where): Promise<Store> {
  const all = ['--copy-from', origin.url, '--blobKeepAliveTimeout', '600', '--log-level', 'warn', ...flags];
  const servers = Array.from({ length: count }, () => restartableServer(all));
  onTestFinished(() => stopServers(servers));
  await startServers(servers);
  return { servers, where };
}

function onOneFolder(): Promise<Store> {
  const folder = newFolder();
  return startStore(1, ['--location', folder], folder);
}

async function onThreeProcesses(): Promise<Store> {
  const [partition, extents] = [await newDatabase(), newFolder()];
  return startStore(3, ['--partition', partition, '--extents', extents], { partition, extents });
}

const serviceOf = (server: Server): BlobServiceClient => clientOf(`${server.origin()}/${account}`);
const blobAt = (server: Server): BlockBlobClient =>
  serviceOf(server).getContainerClient('box').getBlockBlobClient('copy');

async function reached(server: Server, isReached: (found: { copyStatus?: string; copyProgress?: string }) => boolean) {
  for (;;) {
    const found = await blobAt(server).getProperties();
    if (isReached(found)) return found;
    await pause(50);
  }
}

const hasEnded = ({ copyStatus }: { copyStatus?: string }) => copyStatus !== 'pending';

/** Starts a copy on the first server, and kills that server when so many bytes are copied. */
async function startAndKill({ servers, where }: Store, copied: number) {
  const bytes = randomBytes(40 * MIB);
  const path = `/killed-${copied}`;
  const url = origin.put(path, { bytes, stallsAt: copied + MIB });
  const [first] = servers as [Server];
  await serviceOf(first).createContainer('box');
  const poller = await blobAt(first).beginCopyFromURL(url, { metadata: { a: '1' } });
  const { copyId } = poller.getOperationState() as { copyId?: string };
  await reached(first, ({ copyProgress }) => copyProgress === `${copied}/${bytes.length}`);
  await first.kill('SIGKILL');
  expect((await check(where)).findings).toEqual([]);
  return { first, path, bytes, copyId: copyId! };
}

async function expectCopied(server: Server, bytes: Buffer, copyId: string): Promise<void> {
  expect(await reached(server, hasEnded)).toMatchObject({
    copyStatus: 'success',
    copyId,
    copyProgress: `${bytes.length}/${bytes.length}`,
    contentLength: bytes.length,
    metadata: { a: '1' },
  });
  expect((await blobAt(server).downloadToBuffer()).equals(bytes)).toBe(true);
}

describe('A copy whose server is killed', () => {
  it.each([0, SLICE, 2 * SLICE])('goes on after the next start, from byte %i on', async (copied) => {
    const store = await onOneFolder();
    const { first, path, bytes, copyId } = await startAndKill(store, copied);
    const before = origin.requestsFor(path).length;
    origin.resume();
    await first.start();
    await expectCopied(first, bytes, copyId);
    const [resumed] = origin.requestsFor(path).slice(before);
    expect(resumed!.headers.range).toBe(copied === 0 ? undefined : `bytes=${copied}-`);
    expect((await check(store.where)).findings).toEqual([]);
  });

  it('can be aborted after the next start', async () => {
    const store = await onOneFolder();
    const { first, copyId } = await startAndKill(store, SLICE);
    await first.start();
    await blobAt(first).abortCopyFromURL(copyId);
    expect(await blobAt(first).getProperties()).toMatchObject({ copyStatus: 'aborted', contentLength: 0 });
    await blobAt(first).upload('free', 4);
    expect((await check(store.where)).findings).toEqual([]);
  });

  it('fails if the source changed meanwhile, or is not named any more', async () => {
    const store = await onOneFolder();
    const { first, path } = await startAndKill(store, SLICE);
    origin.put(path, { bytes: randomBytes(40 * MIB) });
    await first.start();
    expect(await reached(first, hasEnded)).toMatchObject({
      copyStatus: 'failed',
      copyStatusDescription: '412 ConditionNotMet "Copy failed when reading the source."',
      contentLength: 0,
    });
    await blobAt(first).beginCopyFromURL(origin.put('/unnamed', { bytes: randomBytes(40 * MIB), stallsAt: 10 }));
    await first.kill('SIGTERM');
    const unnamed = restartableServer(['--location', store.where as string]);
    onTestFinished(() => stopServers([unnamed]));
    await unnamed.start();
    expect((await reached(unnamed, hasEnded)).copyStatusDescription).toMatch(/^403 /);
    expect((await check(store.where)).findings).toEqual([]);
  });

  describe.skipIf(missing || process.env.HOLDFAST_TEST_ON_POSTGRES === 'nothing')('on PostgreSQL', () => {
    it('is taken over by another process', { timeout: 120_000 }, async () => {
      const store = await onThreeProcesses();
      const { path, bytes, copyId } = await startAndKill(store, SLICE);
      const before = origin.requestsFor(path).length;
      origin.resume();
      await expectCopied(store.servers[1]!, bytes, copyId);
      await expectCopied(store.servers[2]!, bytes, copyId);
      expect(
        origin
          .requestsFor(path)
          .slice(before)
          .map(({ headers }) => headers.range),
      ).toEqual([`bytes=${SLICE}-`]);
      expect((await check(store.where)).findings).toEqual([]);
    });

    it('can be aborted in another process, also while its own runs', async () => {
      const store = await onThreeProcesses();
      const [first, second] = store.servers as [Server, Server];
      await serviceOf(first).createContainer('box');
      const url = origin.put('/aborted', { bytes: randomBytes(40 * MIB), stallsAt: 17 * MIB });
      const poller = await blobAt(first).beginCopyFromURL(url);
      const { copyId } = poller.getOperationState() as { copyId?: string };
      await reached(second, ({ copyProgress }) => copyProgress?.startsWith(`${SLICE}/`) ?? false);
      await blobAt(second).abortCopyFromURL(copyId!);
      origin.resume();
      expect(await blobAt(first).getProperties()).toMatchObject({ copyStatus: 'aborted', contentLength: 0 });
      await blobAt(second).upload('other', 5);
      await pause(500);
      expect((await blobAt(first).downloadToBuffer()).toString()).toBe('other');
      expect((await check(store.where)).findings).toEqual([]);
    });
  });
});

const CLIENTS = 64;
const ROUNDS = 5;

describe('64 clients that start and abort copies onto one blob', () => {
  onEveryDisk(
    (running) => {
      it('see only states that Azure has', async () => {
        const bytes = Buffer.alloc(100_000, 'source');
        const url = origin.put('/contended', { bytes });
        const blob = (await running.newContainer()).getBlockBlobClient('contended');
        const started = new Set<string>();
        /** Ids whose end was answered or seen, with it. */
        const ends = new Map<string, string>();
        const refusals: Record<string, number> = {};
        const refused = async (call: Promise<unknown>) => {
          const { status, code } = await refusal(call);
          refusals[`${status} ${code}`] = (refusals[`${status} ${code}`] ?? 0) + 1;
        };

        async function look(): Promise<void> {
          const known = new Map(ends);
          const found = await blob.getProperties();
          const { copyId = '', copyStatus = '', contentLength, copyCompletedOn, copyProgress } = found;
          expect(['pending', 'success', 'aborted']).toContain(copyStatus);
          expect(contentLength).toBe(copyStatus === 'success' ? bytes.length : 0);
          expect(copyCompletedOn === undefined).toBe(copyStatus === 'pending');
          expect(copyProgress).toBe(`${copyStatus === 'success' ? bytes.length : 0}/${bytes.length}`);
          expect(found.copyStatusDescription).toBeUndefined();
          // An end is final.
          if (known.has(copyId)) expect(copyStatus).toBe(known.get(copyId));
          if (copyStatus !== 'pending') {
            expect(ends.get(copyId) ?? copyStatus).toBe(copyStatus);
            ends.set(copyId, copyStatus);
          }
        }

        async function client(number: number): Promise<void> {
          for (let round = 0; round < ROUNDS; round++) {
            try {
              const poller = await blob.beginCopyFromURL(url);
              const { copyId } = poller.getOperationState() as { copyId?: string };
              expect(started.has(copyId!)).toBe(false);
              started.add(copyId!);
              if ((number + round) % 3 === 0) await pause(20);
              const wasEnded = ends.get(copyId!);
              try {
                await blob.abortCopyFromURL(copyId!);
                expect(wasEnded).toBeUndefined();
                expect(ends.get(copyId!) ?? 'aborted').toBe('aborted');
                ends.set(copyId!, 'aborted');
              } catch (error) {
                await refused(Promise.reject(error));
              }
            } catch (error) {
              await refused(Promise.reject(error));
            }
            await look();
          }
        }

        // The first copy makes the blob, so that every look finds one.
        await (await blob.beginCopyFromURL(url, { intervalInMs: 20 })).pollUntilDone();
        await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
        const allowed = ['409 PendingCopyOperation', '409 NoPendingCopyOperation', '409 CopyIdMismatch'];
        expect(Object.keys(refusals).filter((answer) => !allowed.includes(answer))).toEqual([]);
        // Copies were aborted, and others were in the way of those that came later.
        expect(started.size).toBeGreaterThan(1);
        expect(new Set(ends.values())).toContain('aborted');
        expect(refusals['409 PendingCopyOperation']).toBeGreaterThan(0);
        for (let status: string | undefined = 'pending'; status === 'pending'; await pause(20))
          status = (await blob.getProperties()).copyStatus;
        await look();
        const { copyStatus } = await blob.getProperties();
        if (copyStatus === 'success') expect((await blob.downloadToBuffer()).equals(bytes)).toBe(true);
        expect((await check(running.where)).findings).toEqual([]);
      });
    },
    { start: { copyFrom: [origin.url], blobKeepAliveSeconds: 600 } },
  );
});
