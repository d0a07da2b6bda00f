import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Client, newFolder, serve } from '../support/disposable-servers.ts';
import { checkFolder } from '../support/server-process.mjs';

const BLOBS = 3_000;

describe('Delete Container', () => {
  it('is finished by the next start when the server is killed while it sweeps', { timeout: 90_000 }, async () => {
    const location = newFolder();
    const server = await serve(location);
    const { client } = server;
    await client.createContainer('one');
    await client.createContainer('other');
    await client.putBlob('other/blob', Buffer.from('other'));
    await fill(client);

    expect((await client.deleteContainer('one')).status).toBe(202);
    expect((await client.createContainer('one')).status).toBe(201);
    expect((await client.putBlob('one/new', Buffer.from('new'))).status).toBe(201);
    await server.kill('SIGKILL');
    const left = await blobsIn(location);
    expect(left).toBeGreaterThan(2);
    expect(left).toBeLessThanOrEqual(BLOBS + 2);

    const next = await serve(location);
    expect(await next.client.listBlobs('one')).toEqual(['new']);
    while ((await blobsIn(location)) > 2) await pause(50);
    expect(await next.client.listBlobs('one')).toEqual(['new']);
    expect((await next.client.getBlob('one/new')).body.toString()).toBe('new');
    expect((await next.client.getBlob('other/blob')).body.toString()).toBe('other');
    await next.kill('SIGTERM');
    // Two containers of a name and properties each, two blobs of head and content each, the account and the epoch.
    expect((await checkFolder(location)).text).toMatch(/^10 rows: 2 containers, 2 blobs with 8 bytes, /);
  });
});

async function fill(client: Client): Promise<void> {
  let next = 0;
  const write = async () => {
    while (next < BLOBS) expect((await client.putBlob(`one/${next++}`, Buffer.from('old'))).status).toBe(201);
  };
  await Promise.all(Array.from({ length: 64 }, write));
}

/** With those that wait to be swept. */
async function blobsIn(location: string): Promise<number> {
  const { code, text } = await checkFolder(location);
  expect({ code, text }).toMatchObject({ code: 0 });
  return Number(/(\d+) blobs/.exec(text)?.[1]);
}
