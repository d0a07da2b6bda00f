import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { BlobServiceClient, newPipeline, StorageSharedKeyCredential } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { textOf } from '../support/blocks.ts';
import { account, accountKey, onEveryEngine, onLmdb } from '../support/test-server.ts';

const MIB = 1 << 20;
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** In pieces of odd sizes. */
function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += 99_991) yield bytes.subarray(from, from + 99_991);
}

describe("Microsoft's client", () => {
  onEveryEngine((running) => {
    it('uploads a stream in blocks, several at a time', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const bytes = randomBytes(20 * MIB + 12_345);
      await blob.uploadStream(Readable.from(piecesOf(bytes)), MIB, 4, { metadata: { from: 'stream' } });
      expect((await blob.downloadToBuffer()).equals(bytes)).toBe(true);
      expect((await blob.getProperties()).metadata).toEqual({ from: 'stream' });
      expect((await blob.getBlockList('committed')).committedBlocks).toHaveLength(21);
    });

    it('uploads a file and downloads it, in parallel', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-file-'));
      try {
        const bytes = randomBytes(24 * MIB + 1);
        writeFileSync(join(folder, 'up'), bytes);
        await blob.uploadFile(join(folder, 'up'), { blockSize: 4 * MIB, maxSingleShotSize: MIB, concurrency: 5 });
        const found = await blob.downloadToBuffer(0, undefined, { blockSize: 3 * MIB, concurrency: 5 });
        expect(sha256(found)).toBe(sha256(bytes));
        await blob.downloadToFile(join(folder, 'down'));
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });

    it('uploads many blobs of middling size at once', async () => {
      const container = await running.newContainer();
      const all = Array.from({ length: 24 }, (_, at) => randomBytes(200_000 + at * 10_007));
      await Promise.all(all.map((bytes, at) => container.getBlockBlobClient(`b${at}`).uploadData(bytes)));
      const found = await Promise.all(all.map((_, at) => container.getBlockBlobClient(`b${at}`).downloadToBuffer()));
      expect(found.map(sha256)).toEqual(all.map(sha256));
    });

    it('discards an upload that is aborted in the middle, and keeps the old blob', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('as it was', 9);
      const abort = new AbortController();
      const bytes = randomBytes(16 * MIB);
      const half = async function* () {
        yield* piecesOf(bytes.subarray(0, 9 * MIB));
        abort.abort();
        yield* piecesOf(bytes.subarray(9 * MIB));
      };
      const upload = blob.upload(() => Readable.from(half()), bytes.length, { abortSignal: abort.signal });
      await expect(upload).rejects.toThrow(/abort/i);
      expect(await textOf(blob)).toBe('as it was');
      await blob.uploadData(bytes);
      expect((await blob.downloadToBuffer()).equals(bytes)).toBe(true);
    });

    it('ends a download that is aborted in the middle', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const bytes = randomBytes(32 * MIB);
      await blob.uploadData(bytes);
      for (let round = 0; round < 5; round++) {
        const abort = new AbortController();
        const { readableStreamBody } = await blob.download(0, undefined, { abortSignal: abort.signal });
        await once(readableStreamBody!, 'readable');
        abort.abort();
        await expect((readableStreamBody as Readable).toArray()).rejects.toThrow(/abort/i);
      }
      await blob.delete();
      await blob.uploadData(bytes);
      expect((await blob.downloadToBuffer()).equals(bytes)).toBe(true);
    });
  });

  onLmdb((running) => {
    it('tries again what a broken connection has cut, and ends with the right bytes', async () => {
      const container = await running.newContainer();
      const proxy = await breakingProxy(Number(new URL(running.server.blobUrl).port));
      try {
        const url = running.server.blobUrl.replace(/:\d+/, `:${proxy.port}`);
        const retryOptions = { maxTries: 8, retryDelayInMs: 1, maxRetryDelayInMs: 5 };
        const credential = new StorageSharedKeyCredential(account, accountKey);
        const service = new BlobServiceClient(url, newPipeline(credential, { retryOptions }));
        const blob = service.getContainerClient(container.containerName).getBlockBlobClient('blob');
        const bytes = randomBytes(12 * MIB);
        await blob.uploadData(bytes, { blockSize: MIB, maxSingleShotSize: 0, concurrency: 3 });
        expect(proxy.broken()).toBeGreaterThan(0);
        expect((await container.getBlobClient('blob').downloadToBuffer()).equals(bytes)).toBe(true);
      } finally {
        proxy.close();
      }
    });
  });
});

/** Every fourth connection breaks after half a mebibyte. */
async function breakingProxy(port: number) {
  const { connect } = await import('node:net');
  const sockets = new Set<Socket>();
  let count = 0;
  let broken = 0;
  const server = createServer((client) => {
    const breaks = ++count % 4 === 2;
    const upstream = connect(port, '127.0.0.1');
    sockets.add(client).add(upstream);
    let passed = 0;
    client.on('data', (chunk) => {
      passed += chunk.length;
      if (breaks && passed > MIB / 2) {
        broken++;
        client.destroy();
        upstream.destroy();
        return;
      }
      if (!upstream.write(chunk)) client.pause();
    });
    upstream.on('drain', () => client.resume());
    upstream.on('data', (chunk) => client.write(chunk));
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => {});
      one.on('close', () => other.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    broken: () => broken,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
