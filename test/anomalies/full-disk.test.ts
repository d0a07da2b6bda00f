import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { checkFolder } from '../crash/server.mjs';
import { type Client, newDisk, noMount, type Server, serve } from './server.ts';

const BLOB_BYTES = 1_500_000;

describe('A full disk', () => {
  beforeEach(({ skip }) => skip(noMount !== undefined, noMount));

  it('refuses writes, goes on with reads and deletes, and takes writes again once blobs are deleted', async () => {
    const { server, data } = await serveOnDisk();
    const { client } = server;
    const counts: number[] = [];
    for (let round = 0; round < 3; round++) {
      const count = await fill(client);
      counts.push(count);
      expect(await isContent(client, 'one/0', contentOf(0))).toBe(true);
      expect(await isContent(client, `one/${count - 1}`, contentOf(count - 1))).toBe(true);
      expect((await client.getBlob(`one/${count}`)).status).toBe(404);
      expect((await client.send('PUT', '/one/0?comp=metadata', { headers: { 'x-ms-meta-a': 'b' } })).status).not.toBe(
        500,
      );
      for (let i = 0; i < count; i++) expect((await client.deleteBlob(`one/${i}`)).status).toBe(202);
    }
    expect(counts[0]).toBeGreaterThan(15);
    // Pages that deletes gave back serve the next writes, although the file does not shrink.
    expect(Math.min(...counts)).toBeGreaterThan((counts[0] ?? 0) * 0.8);
    await expectSound(server, data);
  });

  it('refuses many writers at the same time without a crash', async () => {
    const { server, data } = await serveOnDisk();
    const { client } = server;
    const kept = new Set<string>();
    let refused = 0;
    await Promise.all(
      Array.from({ length: 16 }, async (_, writer) => {
        for (let i = 0; i < 100 && refused < 50; i++) {
          const path = `one/${writer}-${i}`;
          const { status } = await client.putBlob(path, contentOf(writer));
          if (status === 201) kept.add(path);
          else refused++;
          expect([201, 503]).toContain(status);
        }
      }),
    );
    expect(refused).toBeGreaterThan(0);
    expect((await client.listBlobs('one')).map((name) => `one/${name}`).sort()).toEqual([...kept].sort());
    expect((await client.deleteContainer('one')).status).toBe(202);
    await expectSound(server, data);
  });

  it('keeps deletes going when others have taken the last byte, and takes writes again when they give it back', async () => {
    const { server, data, disk } = await serveOnDisk();
    const { client } = server;
    for (let i = 0; i < 15; i++) expect((await client.putBlob(`one/${i}`, contentOf(i))).status).toBe(201);
    for (let round = 0; round < 3; round++) {
      const foreign = eatDisk(disk);
      expect(freeBytes(disk)).toBe(0);
      await expectRefusal(client);
      for (let i = round * 5; i < round * 5 + 5; i++) {
        expect(await isContent(client, `one/${i}`, contentOf(i))).toBe(true);
        expect((await client.deleteBlob(`one/${i}`)).status).toBe(202);
        expect((await client.getBlob(`one/${i}`)).status).toBe(404);
      }
      await expectRefusal(client);
      rmSync(foreign);
      expect((await client.putBlob(`one/round-${round}`, contentOf(round))).status).toBe(201);
    }
    await expectSound(server, data);
  });

  it.each(['SIGKILL', 'SIGTERM'] as const)('is no reason not to start, after an end by %s', async (signal) => {
    const { server, data, disk } = await serveOnDisk();
    await server.client.putBlob('one/blob', contentOf(1));
    await server.client.putBlob('one/other', contentOf(2));
    await server.kill(signal);
    const foreign = eatDisk(disk);
    const { client, ...next } = await serve(data);
    expect(await isContent(client, 'one/blob', contentOf(1))).toBe(true);
    expect((await client.deleteBlob('one/blob')).status).toBe(202);
    await expectRefusal(client);
    rmSync(foreign);
    expect((await client.putBlob('one/third', contentOf(3))).status).toBe(201);
    await expectSound({ ...next, client }, data);
  });
});

async function serveOnDisk() {
  const disk = newDisk(48);
  const data = join(disk, 'data');
  const server = await serve(data);
  expect((await server.client.createContainer('one')).status).toBe(201);
  return { server, data, disk };
}

/** How many blobs were taken before one was refused. */
async function fill(client: Client): Promise<number> {
  for (let i = 0; i < 1_000; i++) {
    const { status } = await client.putBlob(`one/${i}`, contentOf(i));
    if (status === 201) continue;
    await expectRefusal(client);
    return i;
  }
  throw new Error('the disk did not fill');
}

async function expectRefusal(client: Client): Promise<void> {
  const { status, code, body, headers } = await client.putBlob('one/refused', contentOf(0));
  expect({ status, code }).toEqual({ status: 503, code: 'ServerBusy' });
  expect(body.toString()).toContain('The disk is nearly full');
  expect(headers['retry-after']).toBeDefined();
}

async function expectSound(server: Server, location: string): Promise<void> {
  expect(await server.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(await checkFolder(location)).toMatchObject({ code: 0 });
}

/** Comparing so many bytes by `toEqual` takes seconds. */
async function isContent(client: Client, path: string, bytes: Buffer): Promise<boolean> {
  return (await client.getBlob(path)).body.equals(bytes);
}

function contentOf(number: number): Buffer {
  return Buffer.alloc(BLOB_BYTES, String(number));
}

/** Somebody else's file, as large as it can be. */
function eatDisk(disk: string): string {
  const name = join(disk, 'foreign');
  const file = openSync(name, 'w');
  for (const piece of [Buffer.alloc(1 << 20), Buffer.alloc(1 << 12)]) {
    try {
      while (freeBytes(disk) >= piece.length) writeSync(file, piece);
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC');
    }
  }
  closeSync(file);
  return name;
}

function freeBytes(disk: string): number {
  const { bavail, bsize } = statfsSync(disk);
  return bavail * bsize;
}
