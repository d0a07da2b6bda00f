import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { encodeKey } from '../../src/partition/keys.ts';
import { openLmdb } from '../../src/partition/lmdb/engine.ts';
import { Unavailable } from '../../src/partition/partition.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { type Client, newDisk, noMount, type Server, serve } from '../support/disposable-servers.ts';
import { checkFolder } from '../support/server-process.mjs';

const BLOB_BYTES = 1_500_000;
const DISK_BYTES = 48 << 20;

describe('A full disk', () => {
  beforeEach(({ skip }) => skip(noMount !== undefined, noMount));

  it('refuses writes, serves reads and deletes, and accepts writes again once blobs are deleted', async () => {
    const { server, data, disk } = await serveOnDisk();
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
      await expect.poll(() => freeBytes(disk), { timeout: 20_000 }).toBeGreaterThan(0.7 * DISK_BYTES);
    }
    expect(counts[0]).toBeGreaterThan(15);
    expect(Math.min(...counts)).toBeGreaterThan((counts[0] ?? 0) * 0.8);
    // The rounds are less than a minute apart.
    expect(
      server.stdout().match(/ ERROR The disk is (?:nearly )?full: .* Free some space or delete blobs\.$/gm),
    ).toHaveLength(1);
    await expectSound(server, data);
  });

  it('refuses blocks, can commit those that were accepted, and reuses their space when they are deleted', async () => {
    const { server, data, disk } = await serveOnDisk();
    const { client } = server;
    const ids: string[] = [];
    for (;;) {
      const id = Buffer.from(`block ${String(ids.length).padStart(4, '0')}`).toString('base64');
      const answer = await client.putBlock('one/blocks', id, contentOf(ids.length));
      if (answer.status !== 201) {
        expectToBeRefusal(answer);
        break;
      }
      ids.push(id);
    }
    expect(ids.length).toBeGreaterThan(15);
    const list = ids.map((id) => `<Latest>${id}</Latest>`).join('');
    // A commit writes no bytes of blocks, and rows have room of their own.
    expect((await client.putBlockList('one/blocks', list)).status).toBe(201);
    expect((await client.copyBlob('one/blocks', 'one/copy')).status).toBe(202);
    for (const path of ['one/blocks', 'one/copy']) {
      expect(await isContent(client, path, Buffer.concat(ids.map((_, at) => contentOf(at))))).toBe(true);
      expect((await client.deleteBlob(path)).status).toBe(202);
    }
    await expect.poll(() => freeBytes(disk), { timeout: 20_000 }).toBeGreaterThan(0.7 * DISK_BYTES);
    expect((await client.putBlob('one/next', contentOf(1))).status).toBe(201);
    await expectSound(server, data);
  });

  it('accepts writes again once half of the blobs are deleted, although none of their extents is empty then', async () => {
    const { server, data } = await serveOnDisk(200 << 20);
    const { client } = server;
    const count = await fill(client);
    for (let i = 0; i < count; i += 2) expect((await client.deleteBlob(`one/${i}`)).status).toBe(202);
    // Far more than was free before.
    for (let i = 0; i < count / 2; i += 2) {
      const put = async () => (await client.putBlob(`one/${i}`, contentOf(i))).status;
      await expect.poll(put, { timeout: 20_000 }).toBe(201);
    }
    for (let i = 1; i < count; i += 2) expect(await isContent(client, `one/${i}`, contentOf(i))).toBe(true);
    await expectSound(server, data);
  });

  it('has the space again of an upload that did not fit', async () => {
    const { server, data } = await serveOnDisk();
    const { client } = server;
    expectToBeRefusal(await client.putBlob('one/large', Buffer.alloc(2 * DISK_BYTES)));
    const putSmall = async () => (await client.putBlob('one/small', contentOf(1))).status;
    await expect.poll(putSmall, { timeout: 20_000 }).toBe(201);
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

  it('serves deletes when other files have taken the last byte, and accepts writes again when those are removed', async () => {
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

/** Rows only: the write-ahead log runs out of space, and then the checkpoint. */
describe('A full disk under the rows', () => {
  beforeEach(({ skip }) => skip(noMount !== undefined, noMount));

  it.each([1 << 20, 8 << 20])(
    'refuses, reads, removes, takes again and starts, with a checkpoint every %i bytes',
    {
      timeout: 120_000,
    },
    async (checkpointBytes) => {
      const disk = newDisk(DISK_BYTES >> 20);
      const open = async () => openPartition(await openLmdb({ location: disk, checkpointBytes }));
      const bytesFor = (i: number) => Buffer.alloc(12_000, i);
      let partition = await open();
      const put = (i: number) => partition.transact(keyOf(i), async (tx) => tx.put(keyOf(i), bytesFor(i)));
      const remove = (i: number) => partition.transact(keyOf(i), async (tx) => tx.remove(keyOf(i)));
      const expectRows = async (from: number, to: number) => {
        for (let i = from; i < to; i++) {
          const row = await partition.read((at) => at.get(keyOf(i)));
          expect(row?.value.equals(bytesFor(i))).toBe(true);
        }
      };
      let count = 0;
      const fill = async () => {
        const refusal = await (async () => {
          for (;;) {
            await put(count);
            count++;
          }
        })().catch((error) => error);
        expect(refusal).toBeInstanceOf(Unavailable);
      };
      await fill();
      expect(count).toBeGreaterThan(800);
      await expectRows(0, count);
      const foreign = eatDisk(disk);
      for (let i = 0; i < count / 2; i++) await remove(i);
      await expectRows(Math.ceil(count / 2), count);
      await partition.close();
      partition = await open();
      expect(partition.isBroken()).toBe(false);
      await expectRows(Math.ceil(count / 2), count);
      rmSync(foreign);
      const before = count;
      // A commit is refused until a checkpoint has applied the removals: how soon that is depends on the machine.
      while (count <= before + 200) await fill();
      await expectRows(before, count);
      await partition.close();
      partition = await open();
      await expectRows(Math.ceil(before / 2), count);
      await partition.close();
    },
  );
});

const keyOf = (i: number) => encodeKey(['row', i]);

async function serveOnDisk(bytes = DISK_BYTES) {
  const disk = newDisk(bytes >> 20);
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
  expectToBeRefusal(await client.putBlob('one/refused', contentOf(0)));
}

function expectToBeRefusal({ status, code, body, headers }: Awaited<ReturnType<Client['send']>>): void {
  expect({ status, code }).toEqual({ status: 503, code: 'ServerBusy' });
  expect(body.toString()).toMatch(/The disk is (?:nearly )?full/);
  expect(headers['retry-after']).toBeDefined();
}

async function expectSound(server: Server, location: string): Promise<void> {
  expect(await server.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(await checkFolder(location)).toMatchObject({ code: 0 });
}

/** `toEqual` takes seconds for this many bytes. */
async function isContent(client: Client, path: string, bytes: Buffer): Promise<boolean> {
  return (await client.getBlob(path)).body.equals(bytes);
}

function contentOf(number: number): Buffer {
  return Buffer.alloc(BLOB_BYTES, String(number));
}

/** A file of another program, as large as it can be. */
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
