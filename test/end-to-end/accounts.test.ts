/** Accounts that come, change and go while the server runs, over its admin endpoint. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { BlobServiceClient, newPipeline, StorageSharedKeyCredential } from '@azure/storage-blob';
import { check, type HoldfastServer, type StartOptions, start } from 'holdfast';
import { describe, expect, it, onTestFinished } from 'vitest';
import { accountKey, refusal, serverFor } from '../support/test-server.ts';

const PATH = '/_holdfast/accounts';

interface Admin {
  readonly url: string;
  readonly token: string;
}

interface NamedKeys {
  readonly name: string;
  readonly keys: readonly string[];
}

describe('An account that is added', () => {
  it('works at once, and with both keys', async () => {
    const { folder } = await serverIn();
    const { keys } = await add(folder, 'mine');
    for (const key of keys)
      await clientOf(folder, 'mine', key)
        .getContainerClient(`box-${keys.indexOf(key)}`)
        .create();
    expect(await containersOf(clientOf(folder, 'mine', keys[1]))).toEqual(['box-0', 'box-1']);
  });

  it('can have keys that are given', async () => {
    const { folder } = await serverIn();
    expect((await add(folder, 'mine', ['b25l'])).keys).toEqual(['b25l']);
    expect(await containersOf(clientOf(folder, 'mine', 'b25l'))).toEqual([]);
  });

  it('does not see the containers of another, whose key does not open it', async () => {
    const { folder } = await serverIn();
    const { keys } = await add(folder, 'mine');
    await clientOf(folder, 'mine', keys[0]).getContainerClient('box').create();
    const development = clientOf(folder, 'devstoreaccount1', accountKey);
    expect(await containersOf(development)).toEqual([]);
    await development.getContainerClient('box').create();
    await development.getContainerClient('box').delete();
    expect(await containersOf(clientOf(folder, 'mine', keys[0]))).toEqual(['box']);
    expect(await statusOf(clientOf(folder, 'mine', accountKey))).toBe(403);
    expect(await statusOf(clientOf(folder, 'devstoreaccount1', keys[0]))).toBe(403);
  });

  it('is there after a restart, with its keys and its data', async () => {
    const { folder, server } = await serverIn();
    const { keys } = await add(folder, 'mine');
    await clientOf(folder, 'mine', keys[0]).getContainerClient('box').create();
    await server.stop();
    await serverIn({ location: folder });
    expect(await containersOf(clientOf(folder, 'mine', keys[0]))).toEqual(['box']);
    expect(await containersOf(clientOf(folder, 'devstoreaccount1', accountKey))).toEqual([]);
  });

  it('is served beside those of the environment, unlike the default one', async () => {
    const { folder, server } = await serverIn();
    const { keys } = await add(folder, 'mine');
    await server.stop();
    const given = { location: folder, accounts: [{ name: 'other', keys: ['b25l'] }] };
    const { server: second } = await serverIn(given);
    expect(second.connectionString).toContain('AccountName=other;AccountKey=b25l;');
    expect(await statusOf(clientOf(folder, 'mine', keys[0]))).toBe(200);
    expect(await statusOf(clientOf(folder, 'other', 'b25l'))).toBe(200);
    expect(await statusOf(clientOf(folder, 'devstoreaccount1', accountKey))).toBe(400);
  });
});

describe('A key that is rotated', () => {
  it('fails from the next request on, while the other one goes on working', async () => {
    const { folder } = await serverIn();
    const { keys: old } = await add(folder, 'mine');
    const { keys } = await rotate(folder, 'mine', 1);
    expect(await statusOf(clientOf(folder, 'mine', old[0]))).toBe(403);
    expect(await statusOf(clientOf(folder, 'mine', keys[0]))).toBe(200);
    expect(await statusOf(clientOf(folder, 'mine', old[1]))).toBe(200);
  });

  it('gives requests under way nothing but 200 and 403, and the other key nothing but 200', async () => {
    const { folder } = await serverIn();
    const account = await add(folder, 'mine');
    const seen = { first: new Set<number>(), second: new Set<number>() };
    let first = account.keys[0]!;
    let isOver = false;
    const asking = Array.from({ length: 8 }, async (_, index) => {
      while (!isOver) {
        if (index % 2 === 0) seen.first.add(await statusOf(clientOf(folder, 'mine', first)));
        else seen.second.add(await statusOf(clientOf(folder, 'mine', account.keys[1])));
      }
    });
    for (let round = 0; round < 20; round++) first = (await rotate(folder, 'mine', 1)).keys[0]!;
    isOver = true;
    await Promise.all(asking);
    expect([...seen.first].filter((status) => status !== 200 && status !== 403)).toEqual([]);
    expect([...seen.second]).toEqual([200]);
    expect(await statusOf(clientOf(folder, 'mine', first))).toBe(200);
  });
});

describe('An account that is removed', () => {
  it('is unknown to the next request', async () => {
    const { folder } = await serverIn();
    const { keys } = await add(folder, 'mine');
    expect((await call(folder, 'DELETE', `${PATH}?name=mine`)).status).toBe(204);
    const refused = await refusal(clientOf(folder, 'mine', keys[0]).getProperties());
    expect(refused).toMatchObject({ status: 400, code: 'InvalidUri' });
  });

  it('is refused as long as it has containers, unless they are to go', async () => {
    const { folder } = await serverIn();
    const { keys } = await add(folder, 'mine');
    await clientOf(folder, 'mine', keys[0]).getContainerClient('box').create();
    const refused = await call(folder, 'DELETE', `${PATH}?name=mine`);
    expect(refused).toMatchObject({ status: 409, value: { error: { code: 'AccountHasContainers' } } });
    expect(await containersOf(clientOf(folder, 'mine', keys[0]))).toEqual(['box']);
    expect((await call(folder, 'DELETE', `${PATH}?name=mine&withData=true`)).status).toBe(204);
    const again = await add(folder, 'mine');
    expect(await containersOf(clientOf(folder, 'mine', again.keys[0]))).toEqual([]);
  });

  it('may be the last one', async () => {
    const { folder, server } = await serverIn();
    expect((await call(folder, 'DELETE', `${PATH}?name=devstoreaccount1`)).status).toBe(204);
    await server.stop();
    const { server: empty } = await serverIn({ location: folder });
    expect(empty.connectionString).toBe('');
    expect(await accountsIn(folder)).toEqual([]);
    const { keys } = await add(folder, 'first');
    expect(await statusOf(clientOf(folder, 'first', keys[0]))).toBe(200);
  });

  it('frees its space, and refuses requests under way cleanly', async () => {
    const { folder, server } = await serverIn();
    const { keys } = await add(folder, 'mine');
    const service = clientOf(folder, 'mine', keys[0]);
    const bytes = Buffer.alloc(50_000, 'x');
    const statuses = new Set<number>();
    let isOver = false;
    const working = Array.from({ length: 6 }, async (_, worker) => {
      for (let round = 0; !isOver; round++) {
        const container = service.getContainerClient(`box-${worker}-${round}`);
        const calls = [
          () => container.create(),
          () => container.getBlockBlobClient('large').uploadData(bytes),
          () => container.getBlockBlobClient('small').uploadData(Buffer.from('abc')),
          () => container.getBlockBlobClient('staged').stageBlock('YQ==', 'abc', 3),
          () => container.getBlobClient('large').download(),
        ];
        for (const each of calls)
          statuses.add(
            await each().then(
              () => 200,
              (error) => error.statusCode,
            ),
          );
      }
    });
    await expect.poll(async () => (await containersOf(service)).length, { timeout: 20_000 }).toBeGreaterThan(10);
    expect((await call(folder, 'DELETE', `${PATH}?name=mine&withData=true`)).status).toBe(204);
    isOver = true;
    await Promise.all(working);
    // Unknown account, account that is just gone, container that is just gone.
    expect([...statuses].filter((status) => ![200, 400, 403, 404].includes(status))).toEqual([]);
    expect(statuses).toContain(400);
    await expect.poll(async () => (await check(folder)).blobs, { timeout: 20_000 }).toBe(0);
    await server.stop();
    // Uploads that were under way at the end are collected by the next start.
    const { server: next } = await serverIn({ location: folder });
    await expect.poll(async () => (await check(folder)).bytes, { timeout: 20_000 }).toBe(0);
    await next.stop();
    expect((await check(folder)).findings).toEqual([]);
  });
});

describe('The admin endpoint', () => {
  const running = serverFor('LMDB');

  it('wants the token that lies in the folder, for every call', async () => {
    const folder = running.folder!;
    const { url, token } = adminIn(folder);
    const calls = [
      ['GET', PATH],
      ['POST', PATH],
      ['DELETE', `${PATH}?name=devstoreaccount1`],
      ['POST', `${PATH}/rotate-key`],
    ] as const;
    const wrong = [undefined, '', 'Bearer', 'Bearer ', `Bearer ${token}x`, `Bearer ${token.slice(1)}`, token];
    for (const [method, path] of calls) {
      for (const authorization of wrong) {
        const headers = authorization === undefined ? {} : { authorization };
        const answer = await fetch(url + path, { method, headers });
        expect(answer.status).toBe(401);
        expect(answer.headers.get('www-authenticate')).toBe('Bearer');
      }
    }
    expect(await accountsIn(folder)).toHaveLength(1);
  });

  it('answers to its own machine, by whatever address', async (context) => {
    const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
    const other = addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address;
    if (other === undefined) return context.skip('this machine has no address but its loopback');
    const { folder } = await serverIn({ blobHost: '0.0.0.0' });
    const { url, token } = adminIn(folder);
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(url + PATH, { headers })).status).toBe(200);
    const outside = `http://${other}:${new URL(url).port}${PATH}`;
    expect((await fetch(outside, { headers })).status).toBe(200);
    expect((await fetch(outside)).status).toBe(401);
  });

  it('tells an IPv4 loopback peer by its IPv6 form, too', async (context) => {
    const started = await serverIn({ blobHost: '::' }).catch(() => undefined);
    if (!started) return context.skip('this machine has no IPv6');
    expect(await accountsIn(started.folder)).toHaveLength(1);
  });

  it('shows no key unless it is asked to', async () => {
    const folder = running.folder!;
    const { value, text } = await call(folder, 'GET', PATH);
    expect(value.accounts).toEqual([
      {
        name: 'devstoreaccount1',
        created: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        from: 'default',
        isServed: true,
        keyCount: 1,
      },
    ]);
    expect(text).not.toContain(accountKey);
    expect((await call(folder, 'GET', `${PATH}?keys=true`)).value.accounts[0].keys).toEqual([accountKey]);
  });

  const bad: [what: string, method: string, path: string, body: string | undefined, status: number][] = [
    ['no JSON', 'POST', PATH, 'name', 400],
    ['a list', 'POST', PATH, '[]', 400],
    ['no name', 'POST', PATH, '{}', 400],
    ['a name that is no string', 'POST', PATH, '{"name":1}', 400],
    ['a bad name', 'POST', PATH, '{"name":"a/b"}', 400],
    ['a name of its own', 'POST', PATH, '{"name":"_holdfast"}', 400],
    ['keys that are no list', 'POST', PATH, '{"name":"a","keys":"b25l"}', 400],
    ['a key that is not base64', 'POST', PATH, '{"name":"a","keys":["!"]}', 400],
    ['a name that there is', 'POST', PATH, '{"name":"devstoreaccount1"}', 409],
    ['a body that is too long', 'POST', PATH, JSON.stringify({ name: 'a'.repeat(70_000) }), 413],
    ['a third key', 'POST', `${PATH}/rotate-key`, '{"name":"devstoreaccount1","which":3}', 400],
    ['a key of nobody', 'POST', `${PATH}/rotate-key`, '{"name":"nobody","which":1}', 404],
    ['a removal without a name', 'DELETE', PATH, undefined, 400],
    ['a removal of nobody', 'DELETE', `${PATH}?name=nobody`, undefined, 404],
  ];
  it.each(bad)('refuses %s', async (_, method, path, body, status) => {
    const folder = running.folder!;
    const answer = await call(folder, method, path, body);
    expect(answer.status).toBe(status);
    expect(answer.value.error.message).toMatch(/\.$/);
    expect(await accountsIn(folder)).toHaveLength(1);
  });

  it('is described in a file that only its owner can read, and that goes with the server', async () => {
    const { folder, server } = await serverIn();
    expect(adminIn(folder)).toEqual({
      url: new URL(server.blobUrl).origin,
      origins: {
        blob: new URL(server.blobUrl).origin,
        queue: new URL(server.queueUrl).origin,
        table: new URL(server.tableUrl).origin,
        file: new URL(server.fileUrl).origin,
      },
      token: expect.stringMatching(/^[\w-]{43}$/),
    });
    if (process.platform !== 'win32') expect(statSync(join(folder, 'admin.json')).mode & 0o777).toBe(0o600);
    const { token } = adminIn(folder);
    await server.stop();
    expect(readdirSync(folder)).not.toContain('admin.json');
    await serverIn({ location: folder });
    expect(adminIn(folder).token).not.toBe(token);
  });
});

async function serverIn(options: StartOptions = {}): Promise<{ folder: string; server: HoldfastServer }> {
  const folder = options.location ?? mkdtempSync(join(tmpdir(), 'holdfast-'));
  if (options.location === undefined) onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const server = await start({ blobPort: 0, location: folder, ...options });
  onTestFinished(() => server.stop());
  return { folder, server };
}

function adminIn(folder: string): Admin {
  return JSON.parse(readFileSync(join(folder, 'admin.json'), 'utf8')) as Admin;
}

async function call(folder: string, method: string, path: string, body?: string) {
  const { url, token } = adminIn(folder);
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body !== undefined && { body }),
  });
  const text = await answer.text();
  return { status: answer.status, text, value: text === '' ? undefined : JSON.parse(text) };
}

async function add(folder: string, name: string, keys?: readonly string[]): Promise<NamedKeys> {
  const { status, value } = await call(folder, 'POST', PATH, JSON.stringify({ name, keys }));
  expect(status).toBe(201);
  return value as NamedKeys;
}

async function rotate(folder: string, name: string, which: number): Promise<NamedKeys> {
  return (await call(folder, 'POST', `${PATH}/rotate-key`, JSON.stringify({ name, which }))).value as NamedKeys;
}

async function accountsIn(folder: string): Promise<string[]> {
  const { accounts } = (await call(folder, 'GET', PATH)).value as { accounts: { name: string }[] };
  return accounts.map(({ name }) => name);
}

function clientOf(folder: string, name: string, key = ''): BlobServiceClient {
  const credential = new StorageSharedKeyCredential(name, key);
  const pipeline = newPipeline(credential, { retryOptions: { maxTries: 1 } });
  return new BlobServiceClient(`${adminIn(folder).url}/${name}`, pipeline);
}

async function containersOf(service: BlobServiceClient): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of service.listContainers()) names.push(name);
  return names;
}

/** Of a request that is signed with this client's key. */
async function statusOf(service: BlobServiceClient): Promise<number> {
  return service.getProperties().then(
    () => 200,
    (error) => error.statusCode as number,
  );
}
