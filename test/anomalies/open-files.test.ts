/** A server that may open few files: connections leave enough of them for the data. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newFolder, serve } from '../support/disposable-servers.ts';

const FILES_MAX = 100;

describe.skipIf(process.platform !== 'linux')('With few files that may be open', () => {
  it('connections beyond half of them are closed, with one line in the log, and the others are served', async () => {
    const before = ['sh', '-c', `ulimit -n ${FILES_MAX}; exec "$@"`, 'sh'];
    const { client, origin, stdout } = await serve(newFolder(), { before });
    await client.createContainer('one');
    const { port, hostname } = new URL(origin);
    const sockets = Array.from({ length: FILES_MAX }, () => connect({ port: Number(port), host: hostname }));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    let closed = 0;
    for (const socket of sockets) {
      socket.on('error', () => undefined);
      socket.once('close', () => closed++);
      await once(socket, 'connect');
    }
    await expect.poll(() => closed).toBeGreaterThanOrEqual(FILES_MAX / 2);
    expect(closed).toBeLessThan(FILES_MAX - 10);
    const bytes = Buffer.alloc(3 << 20, 'x');
    expect((await client.putBlob('one/blob', bytes)).status).toBe(201);
    expect((await client.getBlob('one/blob')).body.equals(bytes)).toBe(true);
    const lines = () => stdout().match(/ WARN {2}there are too many connections.*ulimit -n.* connections=50$/gm);
    await expect.poll(lines).toHaveLength(1);
  });
});
