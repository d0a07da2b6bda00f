/** The address that always leads to the primary, as a proxy or a virtual address does. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A port; or none: connections are refused, or accepted by nothing that answers. */
export type Target = number | 'refused' | 'silent';

export interface Switch {
  readonly port: number;
  /** Whatever leads elsewhere is cut, but for 'silent', where it stays as it is. */
  lead(target: Target): void;
  close(): Promise<void>;
}

export async function startSwitch(first: Target): Promise<Switch> {
  const open = new Set<Socket>();
  let target = first;
  const keep = (socket: Socket): void => {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
  };
  const server = createServer((client) => {
    keep(client);
    if (target === 'refused') client.resetAndDestroy();
    if (typeof target !== 'number') return;
    const upstream = connect(target, '127.0.0.1');
    keep(upstream);
    client.pipe(upstream);
    upstream.pipe(client, { end: false });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => {
      if (target !== 'silent') client.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    lead(next) {
      target = next;
      if (next !== 'silent') for (const socket of open) socket.destroy();
    },
    async close() {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, 'close');
    },
  };
}
