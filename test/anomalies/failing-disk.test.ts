import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { newLoopDisk, noLoopDisk } from '../crash/loop-disk.mjs';
import { checkFolder } from '../crash/server.mjs';
import { serve } from './server.ts';

const DISK_MEGABYTES = 256;
const BLOBS = 20;

describe('A disk whose writes fail, whatever the kernel says of the next sync', () => {
  let reason: string | undefined;
  beforeAll(async () => {
    reason = await noLoopDisk({ failing: true });
  });

  it.for(['SIGTERM', 'SIGKILL'] as const)(
    'makes the server refuse writes until it is started again; an end by %s and a power cut lose nothing acknowledged',
    { timeout: 120_000 },
    async (signal, { skip }) => {
      skip(reason !== undefined, reason);
      const disk = await newLoopDisk(DISK_MEGABYTES, { failing: true });
      onTestFinished(disk.remove);
      const server = await serve(disk.location);
      const { client } = server;
      expect((await client.createContainer('one')).status).toBe(201);
      for (let i = 0; i < BLOBS; i++) expect((await client.putBlob(`one/${i}`, contentOf(i))).status).toBe(201);

      disk.setFailing(true);
      const failed = await client.putBlob('one/failed', contentOf(100));
      expect(failed.status).toBeGreaterThanOrEqual(500);
      disk.setFailing(false);
      // The kernel has forgotten: the next sync would succeed, and confirm what never reached the disk.
      const next = await client.putBlob('one/next', contentOf(101));
      expect(next.status).toBeGreaterThanOrEqual(500);
      expect((await fetch(`${new URL(server.origin).origin}/health/ready`)).status).toBe(503);
      for (let i = 0; i < BLOBS; i++) expect((await client.getBlob(`one/${i}`)).body).toEqual(contentOf(i));
      await server.kill(signal);
      await disk.cutPower();

      const again = await serve(disk.location);
      for (let i = 0; i < BLOBS; i++) expect((await again.client.getBlob(`one/${i}`)).body).toEqual(contentOf(i));
      expect((await again.client.putBlob('one/next', contentOf(101))).status).toBe(201);
      await again.kill('SIGTERM');
      expect(await checkFolder(disk.location)).toMatchObject({ code: 0 });
    },
  );
});

function contentOf(number: number): Buffer {
  return Buffer.alloc(1_000, String(number));
}
