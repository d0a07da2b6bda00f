import { connect } from 'node:net';
import { start } from 'holdfast';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bytesOf, send } from '../support/raw-requests.mjs';
import { expectRefusal, serverFor } from '../support/test-server.ts';

describe('A limit on data in memory', () => {
  const MIB = 1 << 20;
  const running = serverFor('memory', { memoryBytesMax: 16 * MIB });

  it('refuses uploads beyond it as a full disk would, serves stored blobs, and accepts more once some are deleted', async () => {
    const container = await running.newContainer();
    const bytes = Buffer.alloc(5 * MIB, 'x');
    const upload = (name: string) => container.getBlockBlobClient(name).upload(bytes, bytes.length);
    for (const name of ['one', 'two', 'three']) await upload(name);
    await expectRefusal(upload('four'), 503, 'ServerBusy');
    expect((await container.getBlobClient('two').downloadToBuffer()).equals(bytes)).toBe(true);
    await container.deleteBlob('one');
    // The space comes back in the background.
    const until = async (): Promise<void> => {
      await upload('four').catch(async (error) => {
        if (error.statusCode !== 503) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
        await until();
      });
    };
    await until();
    expect((await container.getBlobClient('four').downloadToBuffer()).equals(bytes)).toBe(true);
  });
});

describe('A limit on bodies in memory', () => {
  it('is one for all services: a body of a queue leaves no room for one of a blob', async () => {
    const server = await start({ inMemory: true, blobPort: 0, bodyBytesMax: 10_000 });
    onTestFinished(() => server.stop());
    const [blobs, queues] = [server.blobUrl, server.queueUrl].map((url) => Number(new URL(url).port));
    await send(blobs!, { method: 'PUT', path: '/container', query: ['restype=container'], allowed: true });
    await send(queues!, { service: 'queue', method: 'PUT', path: '/queue', allowed: true });

    /** The head, and so much of the body as to make the server wait for the rest. */
    const begin = (port: number, path: string, method: string, bytes: number) => {
      const head = bytesOf({ method, path, headers: [['x-ms-blob-type', 'BlockBlob']], allowed: true });
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.write(head.toString('latin1').replace('Content-Length: 0', 'Content-Length: 60000'));
      socket.write(Buffer.alloc(bytes));
      return socket;
    };
    const stalled = begin(queues!, '/queue/messages', 'POST', 20_000);
    onTestFinished(() => void stalled.destroy());
    const upload = () =>
      new Promise<string>((resolve) => {
        const socket = begin(blobs!, '/container/blob', 'PUT', 1_000);
        // The accepted part waits for the rest, and is discarded.
        socket.setTimeout(500, () => socket.destroy());
        socket.once('data', (bytes) => resolve(bytes.toString().slice(0, 12)));
        socket.once('close', () => resolve('taken'));
      });
    await expect.poll(upload, { timeout: 20_000 }).toBe('HTTP/1.1 503');
    stalled.destroy();
    await expect.poll(upload, { timeout: 20_000 }).toBe('taken');
  });
});
