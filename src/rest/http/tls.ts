/** The server over TLS. What differs from the plain one lies before the first request of a connection. */
import { createServer as createPlainServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer, type ServerOptions as TlsServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Log } from '../../base/log.ts';

/** A certificate, with those above it, and its key in PEM; or both in a PFX. */
export type TlsOptions = (
  | { readonly cert: string; readonly key: string }
  | { readonly pfx: Buffer; readonly passphrase?: string }
) & {
  /** How long a client may take for its handshake. */
  readonly handshakeMilliseconds?: number;
};

const HANDSHAKE_MILLISECONDS = 20_000;

const PLAIN_TEXT = 'This is HTTPS: begin the URL with https://.\n';
const PLAIN_ANSWER = `HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${PLAIN_TEXT.length}\r\n\r\n${PLAIN_TEXT}`;

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
  /** Connections in their handshake, by the other end. */
  const handshaking = new Map<string, Socket>();
  /** Connections behind it that have not asked for anything yet. */
  const idle = new Set<TLSSocket>();

  server.on('connection', (socket: Socket) => {
    const peer = peerKey(socket);
    handshaking.set(peer, socket);
    socket.once('close', () => handshaking.get(peer) === socket && handshaking.delete(peer));
  });
  server.on('secureConnection', (socket) => {
    handshaking.delete(peerKey(socket));
    idle.add(socket);
    // As for plain connections: each stream that waits for the end of this one listens to it.
    socket.setMaxListeners(0);
    socket.once('close', () => idle.delete(socket));
  });
  server.on('request', ({ socket }) => idle.delete(socket as TLSSocket));
  server.on('checkContinue', ({ socket }) => idle.delete(socket as TLSSocket));

  // Node's own listener makes a clientError of it, whose answer would go through the TLS that there is not.
  server.removeAllListeners('tlsClientError');
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
    const plain = handshaking.get(peerKey(socket));
    log.debug({ code: error.code, peer: socket.remoteAddress }, 'TLS handshake failed');
    if (error.code === 'ERR_SSL_HTTP_REQUEST' && plain?.writable) plain.end(PLAIN_ANSWER);
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
