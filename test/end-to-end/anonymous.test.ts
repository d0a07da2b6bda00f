/** Containers with public access, by Microsoft's client without a credential. */
import {
  AnonymousCredential,
  BlobServiceClient,
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  newPipeline,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import {
  account,
  accountKey,
  elementOf,
  expectError,
  expectRefusal,
  onEveryEngine,
  type Running,
} from '../support/test-server.ts';

const anonymousService = (running: Running) =>
  new BlobServiceClient(
    running.server.blobUrl,
    newPipeline(new AnonymousCredential(), { retryOptions: { maxTries: 1 } }),
  );

let made = 0;

async function open(running: Running, access?: 'blob' | 'container') {
  made += 1;
  const container = running.service.getContainerClient(`open-to-${access ?? 'none'}-${made}`);
  await container.create({ ...(access && { access }), metadata: { of: 'container' } });
  await container.getBlockBlobClient('dir/blob').upload('for all', 7, { metadata: { of: 'blob' } });
  const seen = anonymousService(running).getContainerClient(container.containerName);
  return { container, seen, blob: seen.getBlockBlobClient('dir/blob') };
}

describe('An anonymous caller', () => {
  onEveryEngine((running) => {
    it('sees nothing of a private container', async () => {
      const { seen, blob } = await open(running);
      const calls = [
        () => blob.download(),
        () => blob.getProperties(),
        () => seen.getProperties(),
        () => seen.listBlobsFlat().next(),
      ];
      for (const call of calls) await expectRefusal(call(), 401, 'NoAuthenticationInformation');
      const missing = anonymousService(running).getContainerClient('not-there').getBlobClient('blob');
      await expectRefusal(missing.download(), 401, 'NoAuthenticationInformation');
    });

    it('reads the blobs of a container that is open to blobs, and does not list it', async () => {
      const { seen, blob } = await open(running, 'blob');
      expect((await blob.downloadToBuffer()).toString()).toBe('for all');
      expect((await blob.getProperties()).metadata).toEqual({ of: 'blob' });
      expect((await blob.getBlockList('committed')).committedBlocks).toEqual([]);
      const calls = [
        () => seen.listBlobsFlat().next(),
        () => seen.getProperties(),
        () => blob.delete(),
        () => blob.upload('', 0),
      ];
      for (const call of calls) await expectRefusal(call(), 401, 'NoAuthenticationInformation');
      await expectRefusal(seen.getBlobClient('not-there').download(), 404, 'BlobNotFound');
    });

    it('lists a container that is open, reads its properties, and changes nothing', async () => {
      const { seen, blob } = await open(running, 'container');
      const names: string[] = [];
      for await (const item of seen.listBlobsFlat()) names.push(item.name);
      expect(names).toEqual(['dir/blob']);
      expect((await seen.getProperties()).metadata).toEqual({ of: 'container' });
      expect((await blob.downloadToBuffer()).toString()).toBe('for all');
      const calls = [
        () => seen.getAccessPolicy(),
        () => seen.setAccessPolicy('blob'),
        () => seen.setMetadata({ a: 'b' }),
        () => seen.delete(),
        () => blob.setMetadata({ a: 'b' }),
        () => blob.delete(),
        () => blob.upload('', 0),
        () => blob.stageBlock('YQ==', 'a', 1),
        () => blob.getBlobLeaseClient().acquireLease(15),
        () => anonymousService(running).listContainers().next(),
        () => anonymousService(running).getProperties(),
      ];
      for (const call of calls) await expectRefusal(call(), 401, 'NoAuthenticationInformation');
    });

    it('is let in and shut out at once when the access changes', async () => {
      const { container, blob } = await open(running);
      await container.setAccessPolicy('blob');
      await blob.download();
      await container.setAccessPolicy();
      await expectRefusal(blob.download(), 401, 'NoAuthenticationInformation');
      await container.setAccessPolicy('container');
      await blob.download();
      const { containerName } = container;
      await container.delete();
      await expectRefusal(blob.download(), 401, 'NoAuthenticationInformation');
      await running.service.createContainer(containerName);
      await running.service.getContainerClient(containerName).getBlockBlobClient('dir/blob').upload('private', 7);
      await expectRefusal(blob.download(), 401, 'NoAuthenticationInformation');
    });

    it('is answered by the rules of an old version that shows nothing', async () => {
      const { container } = await open(running);
      const path = `/${container.containerName}/dir/blob`;
      for (const version of ['2009-09-19', '2019-07-07', undefined]) {
        const answer = await running.request('GET', path, { unsigned: true, headers: { 'x-ms-version': version } });
        expectError(answer, 404, 'ResourceNotFound');
      }
      const { container: shown } = await open(running, 'blob');
      const answer = await running.request('GET', `/${shown.containerName}/dir/blob`, {
        unsigned: true,
        headers: { 'x-ms-version': undefined, 'x-ms-date': undefined },
      });
      expect([answer.status, answer.text]).toEqual([200, 'for all']);
      expect(answer.headers['x-ms-version']).toBe('2009-09-19');
      // As that version had it.
      expect(answer.headers.etag).toMatch(/^0x[0-9A-F]+$/);
    });

    it('is answered by the version of a signature that has no other', async () => {
      const { container } = await open(running);
      const sas = generateBlobSASQueryParameters(
        {
          containerName: container.containerName,
          permissions: ContainerSASPermissions.parse('r'),
          expiresOn: new Date(Date.now() + 3_600_000),
          version: '2020-08-04',
        },
        new StorageSharedKeyCredential(account, accountKey),
      );
      const answer = await fetch(`${container.getBlobClient('dir/blob').url}?${sas}`);
      expect([answer.status, answer.headers.get('x-ms-version')]).toEqual([200, '2020-08-04']);
      expect(answer.headers.get('etag')).toMatch(/^"0x[0-9A-F]+"$/);
    });

    it('with a wrong signature is refused, not anonymous', async () => {
      const { container } = await open(running, 'container');
      const path = `/${container.containerName}/dir/blob`;
      const sas = await running.request('GET', `${path}?sv=2022-11-02&sr=b&sp=r&se=2099-01-01&sig=AAAA`, {
        unsigned: true,
      });
      expectError(sas, 403, 'AuthenticationFailed');
      const key = Buffer.from('not the key').toString('base64');
      expectError(await running.request('GET', path, { key }), 403, 'AuthenticationFailed');
    });
  });
});

describe('The access of a container', () => {
  onEveryEngine((running) => {
    it.each([undefined, 'blob', 'container'] as const)(
      'is returned by every operation that has it: %s',
      async (access) => {
        const { container } = await open(running, access);
        expect((await container.getProperties()).blobPublicAccess).toBe(access);
        const acl = await container.getAccessPolicy();
        expect(acl.blobPublicAccess).toBe(access);
        const prefix = container.containerName;
        const found = [];
        for await (const item of running.service.listContainers({ prefix })) found.push(item.properties.publicAccess);
        expect(found).toEqual([access]);
        const { text } = await running.request('GET', `/?comp=list&prefix=${prefix}`);
        expect(elementOf(text, 'PublicAccess')).toBe(access);
      },
    );

    it('is kept by Set Container Metadata, and replaced with the policies', async () => {
      const { container } = await open(running, 'blob');
      await container.setMetadata({ a: 'b' });
      expect((await container.getProperties()).blobPublicAccess).toBe('blob');
      const accessPolicy = { permissions: 'r', startsOn: new Date(), expiresOn: new Date(Date.now() + 1e6) };
      await container.setAccessPolicy('container', [{ id: 'policy', accessPolicy }]);
      expect(await container.getAccessPolicy()).toMatchObject({
        blobPublicAccess: 'container',
        signedIdentifiers: [{ id: 'policy' }],
      });
      await container.setAccessPolicy(undefined, [{ id: 'policy', accessPolicy }]);
      expect((await container.getAccessPolicy()).blobPublicAccess).toBeUndefined();
    });

    it('is refused where it is no level', async () => {
      const { container } = await open(running);
      for (const [path, method] of [
        [`/${container.containerName}?restype=container&comp=acl`, 'PUT'],
        ['/never-made?restype=container', 'PUT'],
      ] as const) {
        const headers = { 'x-ms-blob-public-access': 'everyone' };
        expectError(await running.request(method, path, { headers }), 400, 'InvalidHeaderValue');
      }
    });
  });
});
