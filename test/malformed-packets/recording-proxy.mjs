/** A proxy of TCP that keeps the packets which clients send. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const PREFIX_BYTES = 4;

/**
 * @param {number} port of the server
 * @param {(packet: Buffer) => void} onPacket a client's, without the prefix that has its length
 */
export async function startRecordingProxy(port, onPacket) {
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    let pending = Buffer.alloc(0);
    client.on('data', (bytes) => {
      pending = Buffer.concat([pending, bytes]);
      while (pending.length >= PREFIX_BYTES) {
        const end = PREFIX_BYTES + pending.readUIntBE(1, 3);
        if (pending.length < end) break;
        onPacket(Buffer.from(pending.subarray(PREFIX_BYTES, end)));
        pending = pending.subarray(end);
      }
    });
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) socket.on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { port: address.port, close: () => server.close() };
}
