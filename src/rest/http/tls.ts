/** HTTPS server: a plain HTTP server with TLS before the first request of a connection. */
import { createServer as createPlainServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer, type ServerOptions as TlsServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Log } from '../../base/log.ts';

/** A certificate with its chain, and its key, in PEM; or both in a PFX. */
export type TlsOptions = (
  | { readonly cert: string; readonly key: string }
  | { readonly pfx: Buffer; readonly passphrase?: string }
) & {
  readonly handshakeMilliseconds?: number;
};

const HANDSHAKE_MILLISECONDS = 20_000;

const PLAIN_TEXT = 'This is HTTPS: begin the URL with https://.\n';
const PLAIN_RESPONSE = `HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${PLAIN_TEXT.length}\r\n\r\n${PLAIN_TEXT}`;

export function createHttpServer(tls: TlsOptions | undefined, limits: ServerOptions, log: Log): Server {
  return tls ? createSecureServer(tls, limits, log) : createPlainServer(limits);
}

function createSecureServer(tls: TlsOptions, limits: ServerOptions, log: Log): Server {
  const { handshakeMilliseconds, ...certificate } = tls;
  const server = createTlsServer({
    ...limits,
    ...certificate,
    minVersion: 'TLSv1.2',
    handshakeTimeout: handshakeMilliseconds ?? HANDSHAKE_MILLISECONDS,
  } as TlsServerOptions);
  /** Connections in their handshake, by peer. */
  const handshaking = new Map<string, Socket>();
  /** Connections after their handshake that have not sent a request yet. */
  const idle = new Set<TLSSocket>();

  server.on('connection', (socket: Socket) => {
    const peer = peerKey(socket);
    handshaking.set(peer, socket);
    socket.once('close', () => handshaking.get(peer) === socket && handshaking.delete(peer));
  });
  server.on('secureConnection', (socket) => {
    handshaking.delete(peerKey(socket));
    idle.add(socket);
    // As for plain connections: each stream that waits for this connection adds a listener.
    socket.setMaxListeners(0);
    socket.once('close', () => idle.delete(socket));
  });
  server.on('request', ({ socket }) => idle.delete(socket as TLSSocket));
  server.on('checkContinue', ({ socket }) => idle.delete(socket as TLSSocket));

  // Node's own listener turns this into a clientError, whose response would need the TLS session that does not exist.
  server.removeAllListeners('tlsClientError');
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
    const plain = handshaking.get(peerKey(socket));
    log.debug({ code: error.code, peer: socket.remoteAddress }, 'TLS handshake failed');
    if (error.code === 'ERR_SSL_HTTP_REQUEST' && plain?.writable) plain.end(PLAIN_RESPONSE);
    else (plain ?? socket).destroy();
  });

  const closeIdleConnections = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => {
    closeIdleConnections();
    for (const socket of [...handshaking.values(), ...idle]) {
      if (socket.bytesRead === 0 || handshaking.has(peerKey(socket))) socket.destroy();
    }
  };
  return server;
}

function peerKey({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
