import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ClientRequest } from 'node:http';
import { connect as connectTo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { newFolder, refusal, type Server, serve } from '../support/disposable-servers.ts';
import { checkFolder } from '../support/server-process.mjs';

const BODY = Buffer.alloc(200_000, 'slow');

describe('A signal', () => {
  it('lets it finish an upload that is under way, refuses new connections, and ends it with 0', async () => {
    const location = newFolder();
    const server = await serve(location);
    await server.client.createContainer('one');
    const upload = await halfUpload(server);
    server.signal('SIGTERM');
    await untilClosed(server);
    upload.request.end(BODY.subarray(BODY.length / 2));
    const { status, headers } = await upload.answer;
    expect(status).toBe(201);
    expect(await server.ended).toEqual({ code: 0, signal: null });
    expect(existsSync(join(location, 'admin.json'))).toBe(false);

    const next = await serve(location);
    const found = await next.client.getBlob('one/slow');
    expect(found.body.equals(BODY)).toBe(true);
    expect(found.headers.etag).toBe(headers.etag);
  });

  it('that comes a second time ends it at once, and nothing acknowledged is lost', async () => {
    const location = newFolder();
    const server = await serve(location);
    await server.client.createContainer('one');
    expect((await server.client.putBlob('one/before', Buffer.from('before'))).status).toBe(201);
    const upload = await halfUpload(server);
    server.signal('SIGINT');
    await untilClosed(server);
    server.signal('SIGINT');
    expect(await server.ended).toEqual({ code: null, signal: 'SIGINT' });
    await expect(upload.answer).rejects.toThrow();

    expect(await checkFolder(location)).toMatchObject({ code: 0 });
    const next = await serve(location);
    expect(await next.client.listBlobs('one')).toEqual(['before']);
    expect((await next.client.getBlob('one/before')).body.toString()).toBe('before');
  });
});

describe('A stop', () => {
  it('does not wait for idle connections', async () => {
    const server = await serve(newFolder(), { flags: ['--blobKeepAliveTimeout', '600'] });
    await server.client.createContainer('one');
    const idle = connectTo(Number(new URL(server.origin).port), '127.0.0.1');
    await new Promise((done) => idle.once('connect', done));
    const closed = new Promise((done) => idle.once('close', done));
    idle.resume();
    const started = Date.now();
    expect(await server.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    await closed;
    // Those that are still there after ten seconds are cut.
    expect(Date.now() - started).toBeLessThan(8_000);
  });
});

describe('A data folder of another format', () => {
  it.each([
    [99, 'a newer'],
    [1, 'an older'],
  ])('is refused and left as it is: %d', async (format, age) => {
    const location = newFolder();
    const server = await serve(location);
    await server.kill('SIGTERM');
    const file = join(location, 'holdfast.json');
    writeFileSync(file, `{"format":${format}}\n`);
    const words = `written by ${age} Holdfast (format ${format}`;
    expect(await refusal(location)).toContain(words);
    expect((await checkFolder(location)).text).toContain(words);
    expect(readFileSync(file, 'utf8')).toBe(`{"format":${format}}\n`);
    expect(readdirSync(location).sort()).toEqual(['extents', 'holdfast.json', 'holdfast.lock', 'rows']);
  });
});

/** A Put Blob whose second half is still to be sent. */
async function halfUpload({ client }: Server) {
  let request: ClientRequest | undefined;
  const headers = { 'x-ms-blob-type': 'BlockBlob', 'content-length': String(BODY.length) };
  const answer = client.send('PUT', '/one/slow', {
    headers,
    onRequest(outgoing) {
      request = outgoing;
    },
  });
  answer.catch(() => {});
  await new Promise((done) => request?.write(BODY.subarray(0, BODY.length / 2), done));
  // The server answers another request of the same time only once it has seen this one.
  await client.send('GET', '/one?restype=container');
  return { request: request!, answer };
}

/** The server has seen the signal once it takes no connection. */
async function untilClosed({ origin }: Server): Promise<void> {
  const port = Number(new URL(origin).port);
  const isOpen = () =>
    new Promise<boolean>((resolve) => {
      const socket = connectTo(port, '127.0.0.1', () => {
        socket.destroy();
        resolve(true);
      });
      socket.on('error', () => resolve(false));
    });
  while (await isOpen()) await pause(5);
}
