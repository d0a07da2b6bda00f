/** The server over TLS, with certificates that it makes: to Microsoft's client, to plain HTTPS, and to connections that are neither. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get as getPlain } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import { connect as connectPlain, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  generateAccountSASQueryParameters,
  SASProtocol,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { type HoldfastServer, start } from 'holdfast';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { account, accountKey, elementOf } from '../support/test-server.ts';

interface HttpsAnswer {
  readonly status: number;
  readonly text: string;
  readonly bytes: Buffer;
  /** Whether the connection had served another request before. */
  readonly reused: boolean;
}

/** All permissions of an account SAS, as a query. */
function sas(protocol = SASProtocol.HttpsAndHttp): string {
  return generateAccountSASQueryParameters(
    {
      expiresOn: new Date(Date.now() + 3_600_000),
      permissions: AccountSASPermissions.parse('rwdlac'),
      services: AccountSASServices.parse('b').toString(),
      resourceTypes: AccountSASResourceTypes.parse('sco').toString(),
      protocol,
    },
    new StorageSharedKeyCredential(account, accountKey),
  ).toString();
}

describe('Over HTTPS with a certificate of its own', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  let server: HoldfastServer;
  let agent: Agent;
  let ca: string;
  let origin: URL;
  beforeAll(async () => {
    server = await start({ location: join(folder, 'data'), blobPort: 0, https: 'auto', testClock: true });
    ca = server.authority!.certificate;
    origin = new URL(server.blobUrl);
    agent = new Agent({ ca, keepAlive: true, maxSockets: 1 });
    await call('PUT', '/photos?restype=container');
  });
  afterAll(async () => {
    agent?.destroy();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The path begins after the account. */
  function call(
    method: string,
    path: string,
    { body, ...options }: RequestOptions & { body?: Uint8Array } = {},
  ): Promise<HttpsAnswer> {
    return new Promise((resolve, reject) => {
      const url = new URL(`${server.blobUrl}${path}${path.includes('?') ? '&' : '?'}${sas()}`);
      const headers = { 'Content-Length': body?.length ?? 0, ...options.headers };
      const outgoing = request(url, { method, agent, ...options, headers });
      outgoing.on('error', reject);
      outgoing.on('continue', () => outgoing.end(body));
      outgoing.on('response', async (incoming) => {
        const bytes = Buffer.concat(await incoming.toArray());
        resolve({ status: incoming.statusCode!, bytes, text: bytes.toString(), reused: outgoing.reusedSocket });
      });
      if (!('Expect' in headers)) outgoing.end(body);
      else outgoing.flushHeaders();
    });
  }

  function socket(options = {}): TLSSocket {
    return connect({ host: origin.hostname, port: Number(origin.port), ca, servername: 'localhost', ...options });
  }

  it("is what the connection string and the service's own addresses say", async () => {
    expect(server.blobUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/devstoreaccount1$/);
    expect(server.connectionString).toContain(`DefaultEndpointsProtocol=https;`);
    expect(server.connectionString).toContain(`BlobEndpoint=${server.blobUrl};`);
    const { text } = await call('GET', '?comp=list');
    expect(text).toContain(`ServiceEndpoint="${server.blobUrl}`);
  });

  it("serves Microsoft's client in a process that trusts the authority, and none that does not", async () => {
    const program = `
      import { BlobServiceClient } from '@azure/storage-blob';
      const service = BlobServiceClient.fromConnectionString(process.env.CONNECTION, { retryOptions: { maxTries: 1 } });
      const container = service.getContainerClient('from-the-sdk');
      await container.create();
      const bytes = Buffer.alloc(20 << 20, 'some bytes that differ. ');
      const blob = container.getBlockBlobClient('a/large blob');
      await blob.uploadData(bytes, { blockSize: 4 << 20, concurrency: 4 });
      const back = await blob.downloadToBuffer(0, undefined, { blockSize: 3 << 20, concurrency: 4 });
      console.log(back.equals(bytes), blob.url);`;
    const file = join(folder, 'ca.pem');
    writeFileSync(file, ca);
    const trusting = await node(program, { CONNECTION: server.connectionString, NODE_EXTRA_CA_CERTS: file });
    expect(trusting.stdout).toBe(`true ${server.blobUrl}/from-the-sdk/a/large%20blob\n`);
    const strange = await node(program, { CONNECTION: server.connectionString });
    expect(strange.stderr).toMatch(/unable to get local issuer certificate/);
  });

  it.each(['localhost', '127.0.0.1', 'devstoreaccount1.blob.localhost'])(
    'is trusted under the name %s',
    async (host) => {
      const opened = socket({ servername: /^\d/.test(host) ? '' : host });
      await once(opened, 'secureConnect');
      expect(opened.authorized).toBe(true);
      opened.destroy();
    },
  );

  it('keeps a connection for further requests', async () => {
    await call('GET', '?comp=list');
    expect((await call('GET', '?comp=list')).reused).toBe(true);
  });

  it('uploads and downloads large bodies', async () => {
    const body = randomBytes(24 << 20);
    const put = await call('PUT', '/photos/large', { body, headers: { 'x-ms-blob-type': 'BlockBlob' } });
    expect(put.status).toBe(201);
    expect((await call('GET', '/photos/large')).bytes.equals(body)).toBe(true);
  });

  it('asks for a body that is held back by Expect: 100-continue, unless it would be refused', async () => {
    const headers = { 'x-ms-blob-type': 'BlockBlob', Expect: '100-continue' };
    const body = randomBytes(100_000);
    expect((await call('PUT', '/photos/expected', { body, headers })).status).toBe(201);
    expect((await call('PUT', '/missing/expected', { body, headers })).status).toBe(404);
  });

  it('serves the certificate of the authority without authentication', async () => {
    const outgoing = request(new URL('/_holdfast/certificate', origin), { agent });
    outgoing.end();
    const found = await answerOf(outgoing);
    expect([found.status, found.text]).toEqual([200, ca]);
    expect(found.type).toBe('application/x-pem-file');
  });

  it('is TLS 1.2 or 1.3', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const opened = socket({ minVersion: version, maxVersion: version });
      await once(opened, 'secureConnect');
      expect(opened.getProtocol()).toBe(version);
      opened.destroy();
    }
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
    await expect(once(socket(old), 'secureConnect')).rejects.toThrow(/protocol version|unsupported protocol/i);
  });

  it('is reported to a client that speaks HTTP, with 400', async () => {
    const { status, text } = await answerOf(getPlain({ host: origin.hostname, port: origin.port }));
    expect(status).toBe(400);
    expect(text).toContain('https://');
  });

  it('closes a connection that speaks neither, and goes on', async () => {
    const opened = connectPlain(Number(origin.port), origin.hostname);
    opened.on('error', () => {});
    opened.end('no TLS and no HTTP\r\n\r\n');
    opened.resume();
    await once(opened, 'close');
    expect((await call('GET', '?comp=list')).status).toBe(200);
  });

  it('accepts a SAS for HTTPS, which is refused over HTTP', async () => {
    const secured = await start({ inMemory: true, blobPort: 0, https: 'auto' });
    const plain = await start({ inMemory: true, blobPort: 0 });
    try {
      const query = `?comp=list&${sas(SASProtocol.Https)}`;
      const refused = await answerOf(getPlain(`${plain.blobUrl}${query}`));
      expect([refused.status, elementOf(refused.text, 'Code')]).toEqual([403, 'AuthorizationProtocolMismatch']);
      const { certificate } = secured.authority!;
      const outgoing = request(`${secured.blobUrl}${query}`, { ca: certificate, agent: false });
      outgoing.end();
      expect((await answerOf(outgoing)).status).toBe(200);
    } finally {
      await Promise.all([secured.stop(), plain.stop()]);
    }
  });
});

describe('Stopping a server over HTTPS', () => {
  it('closes connections that wait, that have not asked for anything, and that are in their handshake', async () => {
    const server = await start({ inMemory: true, blobPort: 0, https: 'auto', blobKeepAliveSeconds: 600 });
    const { port } = new URL(server.blobUrl);
    const tls = () => connect({ port: Number(port), ca: server.authority!.certificate, servername: 'localhost' });
    const [waiting, silent] = [tls(), tls()];
    const [mute, halfway] = [connectPlain(Number(port)), connectPlain(Number(port))];
    const all: Socket[] = [waiting, silent, mute, halfway];
    // Not by `once` of node:events, which fails with the socket: a reset closes it, too.
    const closed = all.map((each) => new Promise((resolve) => each.once('close', resolve)));
    for (const each of all) each.on('error', () => {});
    await Promise.all([once(waiting, 'secureConnect'), once(silent, 'secureConnect'), once(mute, 'connect')]);
    // The header of a TLS record, without the rest.
    halfway.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]));
    waiting.write('GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(waiting, 'data');
    for (const each of all) each.resume();
    await server.stop();
    await Promise.all(closed);
  });

  it('finishes a download that runs', async () => {
    const server = await start({ inMemory: true, blobPort: 0, https: 'auto' });
    const agent = new Agent({ ca: server.authority!.certificate });
    const send = (method: string, path: string, body?: Uint8Array) => {
      const headers = { 'x-ms-blob-type': 'BlockBlob', 'Content-Length': body?.length ?? 0 };
      const outgoing = request(`${server.blobUrl}${path}${sas()}`, { method, agent, headers });
      outgoing.end(body);
      return outgoing;
    };
    const body = randomBytes(16 << 20);
    expect((await answerOf(send('PUT', '/films?restype=container&'))).status).toBe(201);
    expect((await answerOf(send('PUT', '/films/blob?', body))).status).toBe(201);
    const [incoming] = await once(send('GET', '/films/blob?'), 'response');
    const stopped = server.stop();
    expect(Buffer.concat(await incoming.toArray()).equals(body)).toBe(true);
    await stopped;
  });
});

async function answerOf(outgoing: ReturnType<typeof request>): Promise<{ status: number; type: string; text: string }> {
  const [incoming] = await once(outgoing, 'response');
  const text = String(Buffer.concat(await incoming.toArray()));
  return { status: incoming.statusCode, type: incoming.headers['content-type'], text };
}

/** A program of its own: which authorities a process trusts is settled when it begins. */
async function node(program: string, env: Record<string, string>): Promise<{ stdout: string; stderr: string }> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const texts = [child.stdout, child.stderr].map(async (stream) =>
    (await stream.setEncoding('utf8').toArray()).join(''),
  );
  const [stdout = '', stderr = ''] = await Promise.all(texts);
  return { stdout, stderr };
}
