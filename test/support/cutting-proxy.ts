/** Between a client and PostgreSQL: cuts the connection at commits, now before the server gets one, now before its answer comes back. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface CuttingProxy {
  /** The same database, by way of the proxy. */
  readonly url: string;
  /** How many connections were cut so. */
  readonly cuts: { before: number; after: number };
  /** The share of commits that meet with it; none at first. */
  chance: number;
  close(): Promise<void>;
}

/** A call of the statement that is prepared under this name, as it stands in the message. */
const COMMIT = Buffer.from('\0commit\0');

export async function startCuttingProxy(url: string): Promise<CuttingProxy> {
  const target = new URL(url);
  const { port, hostname } = target;
  const cuts = { before: 0, after: 0 };
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => open.delete(socket));
    }
    client.on('close', () => upstream.end());
    upstream.on('close', () => client.destroy());
    upstream.on('data', (data) => client.write(data));
    client.on('data', (data) => {
      const isCut = data.includes(COMMIT) && Math.random() < proxy.chance;
      if (!isCut) {
        upstream.write(data);
        return;
      }
      const when = Math.random() < 0.5 ? 'before' : 'after';
      cuts[when]++;
      client.removeAllListeners('close');
      client.destroy();
      open.delete(client);
      if (when === 'before') {
        upstream.destroy();
        return;
      }
      upstream.removeAllListeners('data');
      upstream.write(data);
      upstream.once('data', () => upstream.destroy());
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  target.port = String((server.address() as { port: number }).port);
  const proxy: CuttingProxy = {
    url: target.href,
    cuts,
    chance: 0,
    async close() {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, 'close');
    },
  };
  return proxy;
}
