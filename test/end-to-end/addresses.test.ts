/** The ways to say which account is meant: by the path, by the host, and by the secondary address of either. */
import { request as httpRequest } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { BlobServiceClient, newPipeline, StorageSharedKeyCredential } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { authorizationFor } from '../support/signing.ts';
import { account, accountKey, expectRefusal, type Running, serverFor, version } from '../support/test-server.ts';

const OTHER_KEY = Buffer.from('of the other account').toString('base64');
const KEYS: Readonly<Record<string, string>> = { [account]: accountKey, other: OTHER_KEY };
const accounts = [
  { name: account, keys: [accountKey] },
  { name: 'other', keys: [OTHER_KEY] },
];

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The account whose key signs. */
  readonly signer?: string;
  /** The target that is signed, where it is another one. */
  readonly signed?: string;
}

/** A request whose Host header differs from the address that it is sent to. */
async function ask(running: Running, host: string, target: string, asked: Asked = {}) {
  const { method = 'GET', body, signer = account, signed = target } = asked;
  const { port } = new URL(running.server.blobUrl);
  const headers = Object.entries({
    Host: `${host}:${port}`,
    'x-ms-date': new Date().toUTCString(),
    'x-ms-version': version,
    ...(method === 'PUT' && { 'Content-Length': String(body?.length ?? 0) }),
    ...asked.headers,
  });
  const signature = authorizationFor(
    'SharedKey',
    { method, target: signed, headers },
    { account: signer, key: KEYS[signer]! },
  );
  const outgoing = httpRequest({ host: '127.0.0.1', port, method, path: target });
  for (const [name, value] of [...headers, ['Authorization', signature] as const]) outgoing.setHeader(name, value);
  return new Promise<{ status: number; code: string | undefined; text: string }>((resolve, reject) => {
    outgoing.on('error', reject);
    outgoing.on('response', async (answer) => {
      const code = answer.headers['x-ms-error-code'] as string | undefined;
      resolve({ status: answer.statusCode!, code, text: await textOf(answer) });
    });
    outgoing.end(body);
  });
}

const BLOCK_BLOB = { 'x-ms-blob-type': 'BlockBlob' };

describe('The account of a request', () => {
  const running = serverFor('memory', { accounts });

  it.each([
    ['devstoreaccount1.blob.localhost', ''],
    ['DevStoreAccount1.blob.core.windows.net', ''],
    ['devstoreaccount1.storage.example', ''],
    ['127.0.0.1', '/devstoreaccount1'],
    ['localhost', '/devstoreaccount1'],
    ['storage.example', '/devstoreaccount1'],
    ['nobody.blob.localhost', '/devstoreaccount1'],
    ['azurite', '/devstoreaccount1'],
  ])('is found by the host %s and the path %s/...', async (host, base) => {
    const { containerName } = await running.newContainer();
    const target = `${base}/${containerName}/dir/blob%20name`;
    const put = await ask(running, host, target, { method: 'PUT', headers: BLOCK_BLOB, body: 'here' });
    expect([put.status, put.code]).toEqual([201, undefined]);
    expect(await ask(running, host, target)).toMatchObject({ status: 200, text: 'here' });
    const list = await ask(running, host, `${base}/${containerName}?restype=container&comp=list`);
    expect(list.text).toContain('<Name>dir/blob name</Name>');
    expect(list.text).toContain(`ServiceEndpoint="http://${host}:${new URL(running.server.blobUrl).port}${base}`);
    expect(await ask(running, host, `${base}/?comp=list`)).toMatchObject({ status: 200 });
  });

  it('is the one in the host, even if the path begins with another', async () => {
    const refused = await ask(running, 'devstoreaccount1.blob.localhost', '/other/blob');
    expect([refused.status, refused.code]).toEqual([404, 'ContainerNotFound']);
    const listed = await ask(running, 'other.blob.localhost', '/?comp=list', { signer: 'other' });
    expect(listed.text).not.toContain('<Name>');
  });

  it('is not derived from a signature', async () => {
    const refused = await ask(running, 'other.blob.localhost', '/?comp=list');
    expect([refused.status, refused.code]).toEqual([403, 'AuthenticationFailed']);
  });

  it('is named in the refusal, with all that was tried', async () => {
    const refused = await ask(running, 'noone.blob.localhost', '/nobody/container/blob');
    expect([refused.status, refused.code]).toEqual([400, 'InvalidUri']);
    expect(refused.text).toContain('noone');
    expect(refused.text).toContain('nobody');
  });
});

describe('With --disableProductStyleUrl', () => {
  const running = serverFor('memory', { accounts, pathStyleOnly: true });

  it('only the path names the account', async () => {
    expect((await ask(running, 'devstoreaccount1.blob.localhost', '/devstoreaccount1/?comp=list')).status).toBe(200);
    const refused = await ask(running, 'devstoreaccount1.blob.localhost', '/?comp=list');
    expect([refused.status, refused.code]).toEqual([400, 'InvalidUri']);
  });

  it('only the path names the source of a copy', async () => {
    const { containerName } = await running.newContainer();
    const host = 'devstoreaccount1.blob.localhost';
    const at = (blob: string) => `/${account}/${containerName}/${blob}`;
    await ask(running, host, at('from'), { method: 'PUT', headers: BLOCK_BLOB, body: 'copied' });
    const headers = { 'x-ms-copy-source': `http://${host}:${new URL(running.server.blobUrl).port}${at('from')}` };
    expect((await ask(running, host, at('to'), { method: 'PUT', headers })).status).toBe(202);
    expect(await ask(running, host, at('to'))).toMatchObject({ text: 'copied' });
  });
});

describe('A secondary address', () => {
  const running = serverFor('memory', { accounts });
  const secondary = () =>
    new BlobServiceClient(
      running.server.blobUrl.replace(account, `${account}-secondary`),
      newPipeline(new StorageSharedKeyCredential(account, accountKey), { retryOptions: { maxTries: 1 } }),
    );

  it('shows what was written a moment ago', async () => {
    const container = await running.newContainer();
    await container.getBlockBlobClient('blob').upload('fresh', 5);
    const there = secondary().getContainerClient(container.containerName);
    expect((await there.getBlobClient('blob').downloadToBuffer()).toString()).toBe('fresh');
    const names: string[] = [];
    for await (const { name } of there.listBlobsFlat()) names.push(name);
    expect(names).toEqual(['blob']);
    const target = `/${container.containerName}/blob`;
    expect(await ask(running, `${account}-secondary.blob.localhost`, target)).toMatchObject({ text: 'fresh' });
  });

  it.each([
    ['', ''],
    ['-secondary', ''],
    ['%2Dsecondary', ''],
  ])('takes signatures of its own path and of the primary one: %s, %s', async (sent, signed) => {
    const { containerName } = await running.newContainer();
    const target = (suffix: string) => `/${account}${suffix}/${containerName}?restype=container`;
    for (const path of [sent, signed]) {
      expect(await ask(running, 'localhost', target(sent), { signed: target(path) })).toMatchObject({ status: 200 });
    }
  });

  it.each([
    ['host', `${account}-secondary.blob.localhost`, ''],
    ['path', 'localhost', `/${account}-secondary`],
  ])('takes no signature of another container or blob than is asked for, by the %s', async (_, host, base) => {
    const paths = ['/a-b/b1', '/a-secondary-b/b1', '/a-b/b1-secondary', '/a-secondary-b/b1-secondary'];
    for (const container of ['a-b', 'a-secondary-b']) {
      const client = running.service.getContainerClient(container);
      await client.createIfNotExists();
      for (const blob of ['b1', 'b1-secondary'])
        await client.getBlockBlobClient(blob).upload(container, container.length);
    }
    for (const asked of paths) {
      for (const signed of paths) {
        const answer = await ask(running, host, `${base}${asked}`, { signed: `${base}${signed}` });
        expect(answer.status, `${asked} by a signature of ${signed}`).toBe(asked === signed ? 200 : 403);
        const primary = await ask(running, host, `${base}${asked}`, {
          signed: `${base.replace('-secondary', '')}${signed}`,
        });
        expect(primary.status, `${asked} by a primary signature of ${signed}`).toBe(asked === signed ? 200 : 403);
      }
    }
  });

  it('refuses writes', async () => {
    const container = await running.newContainer();
    await container.getBlockBlobClient('blob').upload('x', 1);
    const there = secondary().getContainerClient(container.containerName);
    for (const call of [
      () => there.getBlockBlobClient('blob').upload('y', 1),
      () => there.getBlobClient('blob').delete(),
      () => there.setMetadata({ a: 'b' }),
      () => there.delete(),
    ]) {
      await expectRefusal(call(), 403, 'InsufficientAccountPermissions');
    }
    expect((await container.getBlobClient('blob').downloadToBuffer()).toString()).toBe('x');
  });
});
