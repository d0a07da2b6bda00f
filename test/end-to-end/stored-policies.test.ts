/** Shared access signatures that name a stored access policy. */
import { once } from 'node:events';
import {
  AnonymousCredential,
  type BlobSASSignatureValues,
  ContainerClient,
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  newPipeline,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { account, accountKey, expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

const credential = new StorageSharedKeyCredential(account, accountKey);
const pipeline = newPipeline(new AnonymousCredential(), { retryOptions: { maxTries: 1 } });
const HOUR = 3_600_000;
const from = (hours: number) => new Date(Date.now() + hours * HOUR);

function sasOf(container: ContainerClient, more: Partial<BlobSASSignatureValues> = {}): string {
  const { containerName } = container;
  return generateBlobSASQueryParameters({ containerName, identifier: 'policy', ...more }, credential).toString();
}

const using = (container: ContainerClient, sas: string) => new ContainerClient(`${container.url}?${sas}`, pipeline);
const letters = (text: string) => ({ permissions: ContainerSASPermissions.parse(text) });

describe('A stored access policy', () => {
  onEveryEngine((running) => {
    /** A container with this policy, a blob, and a client that has nothing but the policy's name. */
    async function under(accessPolicy: { permissions?: string; startsOn?: Date; expiresOn?: Date }) {
      const container = await running.newContainer();
      await container.getBlockBlobClient('blob').upload('content', 7);
      const set = (policy: typeof accessPolicy, id = 'policy') =>
        container.setAccessPolicy(undefined, [{ id, accessPolicy: policy as never }]);
      await set(accessPolicy);
      const client = using(container, sasOf(container));
      return { container, set, client, blob: client.getBlockBlobClient('blob') };
    }

    it('gives permissions and dates to a signature that has none', async () => {
      const { client, blob } = await under({ permissions: 'rl', startsOn: from(-1), expiresOn: from(1) });
      expect((await blob.downloadToBuffer()).toString()).toBe('content');
      await client.listBlobsFlat().next();
      await expectRefusal(blob.delete(), 403, 'AuthorizationPermissionMismatch');
    });

    it('takes effect at once when it is changed, and when it is removed', async () => {
      const { container, set, blob } = await under({ permissions: 'r', expiresOn: from(1) });
      await blob.download();
      await set({ permissions: 'w', expiresOn: from(1) });
      await expectRefusal(blob.download(), 403, 'AuthorizationPermissionMismatch');
      await blob.upload('new', 3);
      await set({ permissions: 'rw', expiresOn: from(-1) });
      await expectRefusal(blob.download(), 403, 'AuthenticationFailed');
      await set({ permissions: 'rw', startsOn: from(1), expiresOn: from(2) });
      await expectRefusal(blob.download(), 403, 'AuthenticationFailed');
      await set({ permissions: 'r', expiresOn: from(1) }, 'renamed');
      await expectRefusal(blob.download(), 403, 'AuthenticationFailed');
      await set({ permissions: 'r', expiresOn: from(1) });
      await blob.download();
      await container.setAccessPolicy(undefined, []);
      await expectRefusal(blob.download(), 403, 'AuthenticationFailed');
    });

    it('and the signature each have what the other lacks', async () => {
      const { container, set } = await under({ permissions: 'r' });
      const dated = using(container, sasOf(container, { expiresOn: from(1) })).getBlobClient('blob');
      await dated.download();
      await set({ expiresOn: from(1) });
      const lettered = using(container, sasOf(container, letters('r'))).getBlobClient('blob');
      await lettered.download();
      await expectRefusal(lettered.delete(), 403, 'AuthorizationPermissionMismatch');
      await set({});
      const both = { ...letters('r'), startsOn: from(-1), expiresOn: from(1) };
      await using(container, sasOf(container, both)).getBlobClient('blob').download();
    });

    it('and the signature do not both have one thing', async () => {
      const { container, set } = await under({ permissions: 'r', expiresOn: from(1) });
      const download = (more: Partial<BlobSASSignatureValues>) =>
        using(container, sasOf(container, more)).getBlobClient('blob').download();
      await expectRefusal(download(letters('r')), 403, 'AuthenticationFailed');
      await expectRefusal(download({ expiresOn: from(1) }), 403, 'AuthenticationFailed');
      await set({ permissions: 'r', startsOn: from(-1), expiresOn: from(1) });
      await expectRefusal(download({ startsOn: from(-1) }), 403, 'AuthenticationFailed');
      await download({});
    });

    it('leaves nothing out between them', async () => {
      const { blob, set } = await under({ permissions: 'r' });
      await expectRefusal(blob.download(), 403, 'AuthenticationFailed');
      await set({ expiresOn: from(1) });
      await expectRefusal(blob.download(), 403, 'AuthenticationFailed');
    });

    it('is that of its container, found by its exact name', async () => {
      const { container } = await under({ permissions: 'r', expiresOn: from(1) });
      const other = await running.newContainer();
      await other.getBlockBlobClient('blob').upload('other', 5);
      await expectRefusal(using(other, sasOf(other)).getBlobClient('blob').download(), 403, 'AuthenticationFailed');
      for (const identifier of ['Policy', 'polic', 'policy ']) {
        const named = using(container, sasOf(container, { identifier })).getBlobClient('blob');
        await expectRefusal(named.download(), 403, 'AuthenticationFailed');
      }
    });

    it('permits only to create, if it has only that permission', async () => {
      const { client } = await under({ permissions: 'c', expiresOn: from(1) });
      const made = client.getBlockBlobClient('made');
      await made.upload('one', 3);
      await expectRefusal(made.upload('two', 3), 403, 'UnauthorizedBlobOverwrite');
    });

    it('is deleted with its container: a new one of the same name has none of it', async () => {
      const { container, blob } = await under({ permissions: 'rw', expiresOn: from(1) });
      await blob.download();
      await container.delete();
      const gone = await running.request('GET', `/${container.containerName}/blob?${sasOf(container)}`, {
        unsigned: true,
      });
      expectError(gone, 403, 'AuthenticationFailed');
      await container.create();
      await container.getBlockBlobClient('blob').upload('new', 3);
      await expectRefusal(blob.download(), 403, 'AuthenticationFailed');
    });

    it.each([10, 4 * 1024 * 1024])(
      'does not carry an upload of %i bytes into a container made anew',
      async (length) => {
        const { container } = await under({ permissions: 'cw', expiresOn: from(1) });
        const socket = running.socket();
        const path = `/${account}/${container.containerName}/late?${sasOf(container)}`;
        const head = [`PUT ${path} HTTP/1.1`, 'Host: x', 'x-ms-version: 2025-07-05', 'x-ms-blob-type: BlockBlob'];
        socket.write(`${[...head, `Content-Length: ${length}`, 'Expect: 100-continue'].join('\r\n')}\r\n\r\n`);
        // It has been let in when it is asked for the body.
        const [asked] = await once(socket, 'data');
        expect(String(asked)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
        socket.write(Buffer.alloc(length / 2));
        await container.delete();
        await container.create();
        const policy = { permissions: 'cw', expiresOn: from(1) };
        await container.setAccessPolicy(undefined, [{ id: 'policy', accessPolicy: policy as never }]);
        socket.write(Buffer.alloc(length / 2));
        const [answer] = await once(socket, 'data');
        expect(String(answer)).toMatch(/^HTTP\/1\.1 404 /);
        socket.destroy();
        const names: string[] = [];
        for await (const item of container.listBlobsFlat()) names.push(item.name);
        expect(names).toEqual([]);
      },
    );
  });

  onEveryEngine((running) => {
    it('begins and expires by the time of the server', async () => {
      const container = await running.newContainer();
      await container.getBlockBlobClient('blob').upload('content', 7);
      const accessPolicy = { permissions: 'r', startsOn: from(1), expiresOn: from(2) };
      await container.setAccessPolicy(undefined, [{ id: 'policy', accessPolicy }]);
      const blob = using(container, sasOf(container)).getBlobClient('blob');
      await expectRefusal(blob.download(), 403, 'AuthenticationFailed');
      await running.server.clock.advance(3_601);
      await blob.download();
      await running.server.clock.advance(3_601);
      await expectRefusal(blob.download(), 403, 'AuthenticationFailed');
    });
  });
});
