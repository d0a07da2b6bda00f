/** Ports of the loopback address for servers that cannot choose one themselves. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Whether a server accepts connections on the port before the time is over.
 * @param {number} port
 * @param {number} milliseconds
 * @param {() => boolean} hasEnded the server's process
 */
export async function listens(port, milliseconds, hasEnded = () => false) {
  const until = performance.now() + milliseconds;
  while (performance.now() < until && !hasEnded()) {
    const socket = connect(port, '127.0.0.1');
    const accepted = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (accepted) return true;
    await sleep(50);
  }
  return false;
}
