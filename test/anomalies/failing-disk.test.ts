import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Client, serve } from '../support/disposable-servers.ts';
import { newLoopDisk, noLoopDisk } from '../support/loop-disk.mjs';
import { checkFolder } from '../support/server-process.mjs';

const DISK_MEGABYTES = 256;
const BLOBS = 20;
/** Of a blob whose bytes are a row, and of one whose bytes are in an extent. */
const SIZES = { small: 1_000, large: 100_000 };
/** A store without writes makes a checkpoint after a second. */
const CHECKPOINT_MILLISECONDS = 3_000;

describe('A disk whose writes fail, whatever the next sync reports', () => {
  let reason: string | undefined;
  beforeAll(async () => {
    reason = await noLoopDisk({ failing: true });
  });

  const cases = (['small', 'large'] as const).flatMap((size) =>
    (['SIGTERM', 'SIGKILL'] as const).map((signal) => ({ size, signal })),
  );

  it.for(cases)(
    'refuses a $size blob; an end by $signal and a power cut lose nothing acknowledged',
    { timeout: 120_000 },
    async ({ size, signal }, { skip }) => {
      skip(reason !== undefined, reason);
      const { disk, server } = await serveOnDisk();
      const { client } = server;

      disk.setFailing(true);
      expect((await client.putBlob('one/failed', contentOf(100, SIZES[size]))).status).toBeGreaterThanOrEqual(500);
      disk.setFailing(false);
      // The kernel reports an error once: the next sync would succeed, and confirm pages that never reached the disk.
      if (size === 'small') {
        expect((await client.putBlob('one/next', contentOf(101))).status).toBeGreaterThanOrEqual(500);
        expect((await fetch(`${new URL(server.origin).origin}/health/ready`)).status).toBe(503);
      }
      await expectBlobs(client);
      await server.kill(signal);
      await disk.cutPower();
      await expectAllAfterStart(disk.location);
    },
  );

  it('loses nothing acknowledged when the checkpoint fails', { timeout: 120_000 }, async ({ skip }) => {
    skip(reason !== undefined, reason);
    const { disk, server } = await serveOnDisk();
    disk.setFailing(true);
    await pause(CHECKPOINT_MILLISECONDS);
    disk.setFailing(false);
    await pause(CHECKPOINT_MILLISECONDS);
    await expectBlobs(server.client);
    await disk.cutPower(server);
    await expectAllAfterStart(disk.location);
  });
});

async function serveOnDisk() {
  const disk = await newLoopDisk(DISK_MEGABYTES, { failing: true });
  onTestFinished(disk.remove);
  // Longer than a test is idle: the server could close the connection just as the next request is sent.
  const server = await serve(disk.location, { flags: ['--blobKeepAliveTimeout', '60'] });
  expect((await server.client.createContainer('one')).status).toBe(201);
  for (let i = 0; i < BLOBS; i++) {
    const bytes = contentOf(i, i % 2 === 0 ? SIZES.small : SIZES.large);
    expect((await server.client.putBlob(`one/${i}`, bytes)).status).toBe(201);
  }
  return { disk, server };
}

async function expectBlobs(client: Client): Promise<void> {
  for (let i = 0; i < BLOBS; i++) {
    const { body } = await client.getBlob(`one/${i}`);
    expect(body.equals(contentOf(i, i % 2 === 0 ? SIZES.small : SIZES.large))).toBe(true);
  }
}

async function expectAllAfterStart(location: string): Promise<void> {
  const again = await serve(location);
  await expectBlobs(again.client);
  expect((await again.client.putBlob('one/next', contentOf(101))).status).toBe(201);
  await again.kill('SIGTERM');
  expect(await checkFolder(location)).toMatchObject({ code: 0 });
}

function contentOf(number: number, length = SIZES.small): Buffer {
  return Buffer.alloc(length, String(number));
}
