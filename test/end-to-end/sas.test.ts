/** Shared access signatures, made and used by Microsoft's client. */
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  AnonymousCredential,
  type BlobClient,
  BlobSASPermissions,
  type BlobSASSignatureValues,
  BlobServiceClient,
  BlockBlobClient,
  ContainerClient,
  ContainerSASPermissions,
  generateAccountSASQueryParameters,
  generateBlobSASQueryParameters,
  newPipeline,
  SASProtocol,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { serviceSas } from '../support/raw-signing.mjs';
import {
  account,
  accountKey,
  expectError,
  expectRefusal,
  onEveryEngine,
  type Running,
  serverFor,
} from '../support/test-server.ts';

const credential = new StorageSharedKeyCredential(account, accountKey);
const pipeline = newPipeline(new AnonymousCredential(), { retryOptions: { maxTries: 1 } });
const HOUR = 3_600_000;
const inAnHour = () => new Date(Date.now() + HOUR);

function accountSas(permissions: string, resourceTypes = 'sco', more: object = {}): string {
  return generateAccountSASQueryParameters(
    {
      permissions: AccountSASPermissions.parse(permissions),
      resourceTypes: AccountSASResourceTypes.parse(resourceTypes).toString(),
      services: AccountSASServices.parse('b').toString(),
      expiresOn: inAnHour(),
      ...more,
    },
    credential,
  ).toString();
}

function blobSas(blob: BlobClient, permissions: string, more: Partial<BlobSASSignatureValues> = {}): string {
  return generateBlobSASQueryParameters(
    {
      containerName: blob.containerName,
      blobName: blob.name,
      permissions: BlobSASPermissions.parse(permissions),
      expiresOn: inAnHour(),
      ...more,
    },
    credential,
  ).toString();
}

function containerSas(container: ContainerClient, permissions: string, more: Partial<BlobSASSignatureValues> = {}) {
  return generateBlobSASQueryParameters(
    {
      containerName: container.containerName,
      permissions: ContainerSASPermissions.parse(permissions),
      expiresOn: inAnHour(),
      ...more,
    },
    credential,
  ).toString();
}

async function newBlob(running: Running, name = 'a b+c/é.txt'): Promise<BlockBlobClient> {
  const blob = (await running.newContainer()).getBlockBlobClient(name);
  await blob.upload('content', 7);
  return blob;
}

const blobWith = (blob: BlobClient, sas: string) => new BlockBlobClient(`${blob.url}?${sas}`, pipeline);
const containerWith = (container: ContainerClient, sas: string) =>
  new ContainerClient(`${container.url}?${sas}`, pipeline);

describe('An account SAS', () => {
  onEveryEngine((running) => {
    it('does what its letters say, at every level', async () => {
      const url = (sas: string) => `${running.server.blobUrl}?${sas}`;
      const service = new BlobServiceClient(url(accountSas('rwdlac')), pipeline);
      const container = service.getContainerClient(`by-account-sas-${Date.now()}`);
      await container.create({ metadata: { made: 'by sas' } });
      const blob = container.getBlockBlobClient('dir/blob é');
      await blob.upload('hello', 5);
      await blob.stageBlock('YQ==', 'block', 5);
      await blob.commitBlockList(['YQ==']);
      expect((await blob.downloadToBuffer()).toString()).toBe('block');
      expect((await blob.getProperties()).contentLength).toBe(5);
      const names: string[] = [];
      for await (const item of container.listBlobsFlat()) names.push(item.name);
      expect(names).toEqual(['dir/blob é']);
      await blob.delete();
      await container.delete();
      const reader = new BlobServiceClient(url(accountSas('r')), pipeline);
      await expectRefusal(reader.listContainers().next(), 403, 'AuthorizationPermissionMismatch');
      const forObjects = new BlobServiceClient(url(accountSas('l', 'o')), pipeline);
      await expectRefusal(forObjects.listContainers().next(), 403, 'AuthorizationResourceTypeMismatch');
    });
  });
});

describe('A service SAS', () => {
  onEveryEngine((running) => {
    it('for a blob permits this blob and no other', async () => {
      const blob = await newBlob(running);
      const sas = blobSas(blob, 'r');
      expect((await blobWith(blob, sas).downloadToBuffer()).toString()).toBe('content');
      await expectRefusal(blobWith(blob, sas).delete(), 403, 'AuthorizationPermissionMismatch');
      const other = await newBlob(running, 'other');
      await expectRefusal(blobWith(other, sas).getProperties(), 403, 'AuthenticationFailed');
      const container = running.service.getContainerClient(blob.containerName);
      await expectRefusal(containerWith(container, sas).listBlobsFlat().next(), 403, 'AuthenticationFailed');
    });

    it('for a container opens its blobs and its list, and not the container itself', async () => {
      const blob = await newBlob(running);
      const container = running.service.getContainerClient(blob.containerName);
      const all = containerWith(container, containerSas(container, 'racwdl'));
      expect((await all.getBlobClient(blob.name).downloadToBuffer()).toString()).toBe('content');
      await all.getBlockBlobClient('new').upload('', 0);
      const names: string[] = [];
      for await (const item of all.listBlobsFlat()) names.push(item.name);
      expect(names).toEqual([blob.name, 'new']);
      await expectRefusal(all.getProperties(), 403, 'AuthorizationFailure');
      await expectRefusal(all.delete(), 403, 'AuthorizationFailure');
      const listing = containerWith(container, containerSas(container, 'l'));
      await listing.listBlobsFlat().next();
      await expectRefusal(listing.getBlobClient('new').download(), 403, 'AuthorizationPermissionMismatch');
      const other = await running.newContainer();
      const elsewhere = containerWith(other, containerSas(container, 'racwdl'));
      await expectRefusal(elsewhere.listBlobsFlat().next(), 403, 'AuthenticationFailed');
    });

    it('overrides stored content headers', async () => {
      const blob = await newBlob(running);
      await blob.setHTTPHeaders({ blobContentType: 'text/plain', blobCacheControl: 'no-store' });
      const overrides = {
        cacheControl: 'max-age=60',
        contentDisposition: 'attachment; filename="a b.txt"',
        contentEncoding: 'identity',
        contentLanguage: 'de',
        contentType: 'text/css; charset=utf-8',
      };
      const found = await blobWith(blob, blobSas(blob, 'r', overrides)).download();
      expect(found).toMatchObject(overrides);
      expect(await blobWith(blob, blobSas(blob, 'r', overrides)).getProperties()).toMatchObject(overrides);
      const one = await blobWith(blob, blobSas(blob, 'r', { contentType: 'text/x' })).download();
      expect([one.contentType, one.cacheControl]).toEqual(['text/x', 'no-store']);
      expect((await blob.getProperties()).contentType).toBe('text/plain');
      // They are signed with the rest.
      const sas = blobSas(blob, 'r', overrides).replace('rscl=de', 'rscl=fr');
      await expectRefusal(blobWith(blob, sas).download(), 403, 'AuthenticationFailed');
      const added = `${blobSas(blob, 'r')}&rsct=text%2Fhtml`;
      await expectRefusal(blobWith(blob, added).download(), 403, 'AuthenticationFailed');
    });

    it('does not say them in an error', async () => {
      const blob = await newBlob(running);
      await blob.delete();
      const answer = await running.request('GET', pathOf(blob, blobSas(blob, 'r', { contentType: 'text/x' })), {
        unsigned: true,
      });
      expectError(answer, 404, 'BlobNotFound');
    });

    it('for a snapshot opens that snapshot only', async () => {
      const blob = await newBlob(running);
      const snapshotTime = '2026-01-02T03:04:05.1234567Z';
      const sas = blobSas(blob, 'r', { snapshotTime });
      expect(sas).toContain('sr=bs');
      const asked = await running.request('GET', pathOf(blob, `snapshot=${snapshotTime}&${sas}`), { unsigned: true });
      expect([401, 403]).not.toContain(asked.status);
      const base = await running.request('GET', pathOf(blob, sas), { unsigned: true });
      expectError(base, 403, 'AuthenticationFailed');
      const other = snapshotTime.replace('7Z', '8Z');
      const wrong = await running.request('GET', pathOf(blob, `snapshot=${other}&${sas}`), { unsigned: true });
      expectError(wrong, 403, 'AuthenticationFailed');
    });
  });
});

describe('The dates of a service SAS', () => {
  // Servers of their own: time goes on in them.
  onEveryEngine((running) => {
    it('expires by the time of the server', async () => {
      const blob = await newBlob(running);
      const sas = blobSas(blob, 'r');
      await blobWith(blob, sas).getProperties();
      const later = blobSas(blob, 'r', { startsOn: inAnHour(), expiresOn: new Date(Date.now() + 2 * HOUR) });
      await expectRefusal(blobWith(blob, later).getProperties(), 403, 'AuthenticationFailed');
      await running.server.clock.advance(3_601);
      await expectRefusal(blobWith(blob, sas).getProperties(), 403, 'AuthenticationFailed');
      await blobWith(blob, later).getProperties();
      await running.server.clock.advance(3_601);
      await expectRefusal(blobWith(blob, later).getProperties(), 403, 'AuthenticationFailed');
    });
  });
});

describe('The fields of a service SAS', () => {
  const running = serverFor('memory');

  it('for a directory opens what lies in it', async () => {
    const container = await running.newContainer();
    for (const name of ['dir/sub/a', 'dir/sub/b/c', 'dir/subway', 'dir/other', 'dir']) {
      await container.getBlockBlobClient(name).upload(name, name.length);
    }
    const ofDirectory = (directory: string, sdd = String(directory.split('/').length)) =>
      serviceSas(`/${container.containerName}/${directory}`, {
        ...{ sv: '2022-11-02', sr: 'd', sdd, sp: 'r', se: inAnHour().toISOString() },
      }).join('&');
    const get = (name: string, sas: string) =>
      running.request('GET', `/${container.containerName}/${name}?${sas}`, { unsigned: true });
    for (const name of ['dir/sub/a', 'dir/sub/b/c']) {
      expect((await get(name, ofDirectory('dir/sub'))).text).toBe(name);
    }
    for (const name of ['dir/subway', 'dir/other', 'dir']) {
      expectError(await get(name, ofDirectory('dir/sub')), 403, 'AuthenticationFailed');
    }
    for (const depth of ['0', '1', '3', '', '-1', 'x', '1e1']) {
      expectError(await get('dir/sub/a', ofDirectory('dir/sub', depth)), 403, 'AuthenticationFailed');
    }
  });

  it('is valid only from its IP range', async () => {
    const blob = await newBlob(running);
    const get = (ipRange: { start: string; end?: string }) =>
      blobWith(blob, blobSas(blob, 'r', { ipRange })).getProperties();
    await get({ start: '127.0.0.1' });
    await get({ start: '127.0.0.0', end: '127.0.0.255' });
    await expectRefusal(get({ start: '10.1.2.3' }), 403, 'AuthorizationSourceIPMismatch');
    await expectRefusal(get({ start: '127.0.0.2', end: '127.0.0.9' }), 403, 'AuthorizationSourceIPMismatch');
  });

  it('is valid only over its protocol', async () => {
    const blob = await newBlob(running);
    await blobWith(blob, blobSas(blob, 'r', { protocol: SASProtocol.HttpsAndHttp })).getProperties();
    const https = blobWith(blob, blobSas(blob, 'r', { protocol: SASProtocol.Https }));
    await expectRefusal(https.getProperties(), 403, 'AuthorizationProtocolMismatch');
  });

  it('is refused when a character of it differs', async () => {
    const blob = await newBlob(running);
    const sas = blobSas(blob, 'r', { startsOn: new Date(Date.now() - HOUR) });
    await blobWith(blob, sas).getProperties();
    const parts = sas.split('&');
    for (const [at, part] of parts.entries()) {
      const [name, value = ''] = part.split('=');
      const other = name === 'sp' ? 'rw' : value.replace(/\d(?!.*\d)/, (digit) => String((Number(digit) + 1) % 10));
      if (other === value) continue;
      const spoilt = parts.with(at, `${name}=${other}`).join('&');
      const answer = await running.request('GET', pathOf(blob, spoilt), { unsigned: true });
      expect([part, answer.status, answer.headers['x-ms-error-code']]).toEqual([part, 403, 'AuthenticationFailed']);
    }
    for (const name of ['sig', 'sv', 'se', 'sp', 'sr']) {
      const without = parts.filter((part) => !part.startsWith(`${name}=`)).join('&');
      const answer = await running.request('GET', pathOf(blob, without), { unsigned: true });
      expect([name, answer.status]).toEqual([name, 403]);
    }
  });

  it('has the string to sign in its refusal, since this key is well known', async () => {
    const blob = await newBlob(running, 'plain');
    const sas = blobSas(blob, 'r').replace(/sig=[^&]*/, 'sig=AAAA');
    const answer = await running.request('GET', pathOf(blob, sas), { unsigned: true });
    expectError(answer, 403, 'AuthenticationFailed');
    expect(answer.text).toContain(`/blob/${account}/${blob.containerName}/plain`);
  });

  it('is ignored beside a Shared Key signature', async () => {
    const blob = await newBlob(running, 'plain');
    const path = `/${blob.containerName}/plain?sv=2022-11-02&sr=b&sp=r&se=2000-01-01&sig=x`;
    const answer = await running.request('GET', path);
    expect(answer.status).toBe(200);
  });
});

describe('A shared access signature', () => {
  const keys = ['first key', 'second key'].map((text) => Buffer.from(text.repeat(8)).toString('base64'));
  const running = serverFor('memory', { accounts: [{ name: account, keys }] });

  it('is signed with either key of the account', async () => {
    const owner = new BlobServiceClient(
      running.server.blobUrl,
      newPipeline(new StorageSharedKeyCredential(account, keys[1]!), { retryOptions: { maxTries: 1 } }),
    );
    const container = owner.getContainerClient('two-keys');
    await container.create();
    for (const key of keys) {
      const by = new StorageSharedKeyCredential(account, key);
      const wanted = { permissions: ContainerSASPermissions.parse('l'), expiresOn: inAnHour() };
      const sas = generateBlobSASQueryParameters({ containerName: 'two-keys', ...wanted }, by).toString();
      await containerWith(container, sas).listBlobsFlat().next();
    }
    const otherAccountKey = containerSas(container, 'l');
    await expectRefusal(containerWith(container, otherAccountKey).listBlobsFlat().next(), 403, 'AuthenticationFailed');
  });
});

describe('Copy Blob', () => {
  onEveryEngine((running) => {
    it('reads its source by the signature in the URL', async () => {
      const source = await newBlob(running);
      const target = (await running.newContainer()).getBlockBlobClient('copy');
      const targetSas = blobWith(target, blobSas(target, 'w'));
      const copy = async (from: string) => (await targetSas.beginCopyFromURL(from)).pollUntilDone();
      await copy(`${source.url}?${blobSas(source, 'r')}`);
      expect((await target.downloadToBuffer()).toString()).toBe('content');
      expect((await target.getProperties()).copySource).not.toContain('sig=');
      await expectRefusal(copy(source.url), 401, 'CannotVerifyCopySource');
      await expectRefusal(copy(`${source.url}?${blobSas(source, 'w')}`), 403, 'CannotVerifyCopySource');
      const spoilt = blobSas(source, 'r').replace(/sig=[^&]*/, 'sig=AAAA');
      await expectRefusal(copy(`${source.url}?${spoilt}`), 403, 'CannotVerifyCopySource');
      const past = blobSas(source, 'r', { expiresOn: new Date(Date.now() - HOUR) });
      await expectRefusal(copy(`${source.url}?${past}`), 403, 'CannotVerifyCopySource');
    });

    it('lets the owner read all of the account, and a signature still count', async () => {
      const source = await newBlob(running);
      const target = (await running.newContainer()).getBlockBlobClient('copy');
      const copy = async (from: string) => (await target.beginCopyFromURL(from)).pollUntilDone();
      await copy(source.url);
      const wrong = blobSas(source, 'w');
      await expectRefusal(copy(`${source.url}?${wrong}`), 403, 'CannotVerifyCopySource');
    });

    it('reads a public source without any', async () => {
      const container = running.service.getContainerClient(`public-${Date.now()}`);
      await container.create({ access: 'blob' });
      const source = container.getBlockBlobClient('source');
      await source.upload('for all', 7);
      const target = (await running.newContainer()).getBlockBlobClient('copy');
      await (await blobWith(target, blobSas(target, 'c')).beginCopyFromURL(source.url)).pollUntilDone();
      expect((await target.downloadToBuffer()).toString()).toBe('for all');
    });
  });
});

function pathOf(blob: BlobClient, query: string): string {
  return `/${blob.containerName}/${encodeURIComponent(blob.name)}?${query}`;
}
