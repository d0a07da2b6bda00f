import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Log } from '../../base/log.ts';
import { makeAuthority, makeCertificate } from '../../server/tls/x509.ts';
import { createHttpServer } from './tls.ts';

const validity = { from: new Date(0), until: new Date(Date.now() + 86_400_000) };
const authority = makeAuthority('An authority', ['localhost'], validity);
const { certificate, key } = makeCertificate(
  { certificate: new X509Certificate(authority.certificate), key: createPrivateKey(authority.key) },
  ['localhost'],
  validity,
);

async function listening(handshakeMilliseconds?: number) {
  const logged: { level: string; what: object }[] = [];
  const level = (name: string) => (what: object) => logged.push({ level: name, what });
  const log = Object.fromEntries(
    ['debug', 'info', 'warn', 'error'].map((name) => [name, level(name)]),
  ) as unknown as Log;
  const tls = {
    cert: certificate + authority.certificate,
    key,
    ...(handshakeMilliseconds !== undefined && { handshakeMilliseconds }),
  };
  const server = createHttpServer(tls, {}, log);
  server.on('clientError', (_error, socket) => {
    logged.push({ level: 'error', what: { not: 'of HTTP' } });
    socket.destroy();
  });
  server.on('request', (_incoming, outgoing) => outgoing.end('served'));
  await new Promise<void>((done) => server.listen(0, done));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port, logged };
}

describe('A TLS handshake', () => {
  it('that never starts is cut, and logged at level debug only', async () => {
    const { port, logged } = await listening(50);
    const socket = connect(port);
    await once(socket.resume(), 'close');
    expect(logged).toEqual([{ level: 'debug', what: expect.objectContaining({ code: 'ERR_TLS_HANDSHAKE_TIMEOUT' }) }]);
  });

  it('that stops in the middle is cut', async () => {
    const { port } = await listening(50);
    const socket = connect(port);
    socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]));
    await once(socket.resume(), 'close');
  });

  it('that fails for lack of trust is one line at level debug', async () => {
    const { port, logged } = await listening();
    await expect(once(connectTls({ port, servername: 'localhost' }), 'secureConnect')).rejects.toThrow();
    const trusting = connectTls({ port, servername: 'localhost', ca: authority.root });
    trusting.end('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    expect(String(Buffer.concat(await trusting.toArray()))).toMatch(/^HTTP\/1\.1 200 OK.*served$/s);
    expect(logged.filter(({ level }) => level !== 'debug')).toEqual([]);
  });

  it('that is an HTTP request gets a response in HTTP', async () => {
    const { port, logged } = await listening();
    const socket = connect(port);
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const [head, body] = String(Buffer.concat(await socket.toArray())).split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 400 /);
    expect(head).toContain(`Content-Length: ${body!.length}`);
    expect(body).toContain('https://');
    expect(logged.map(({ level }) => level)).toEqual(['debug']);
  });
});
