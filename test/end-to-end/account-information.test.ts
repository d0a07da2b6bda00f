import { ContainerSASPermissions } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { onEveryEngine } from '../support/test-server.ts';

const ACCOUNT = { 'x-ms-sku-name': 'Standard_LRS', 'x-ms-account-kind': 'StorageV2' };

async function eachAddress(container: string, ask: (method: string, path: string) => Promise<void>): Promise<void> {
  for (const path of ['/', `/${container}`, `/${container}/blob`]) {
    for (const method of ['GET', 'HEAD']) await ask(method, `${path}?restype=account&comp=properties`);
  }
}

describe('Get Account Information', () => {
  onEveryEngine((running) => {
    it('describes the account, from its root, a container or a blob, which need not exist', async () => {
      expect(await running.service.getAccountInfo()).toMatchObject({
        skuName: 'Standard_LRS',
        accountKind: 'StorageV2',
        isHierarchicalNamespaceEnabled: false,
      });
      await eachAddress('not-there', async (method, path) => {
        const answer = await running.request(method, path);
        expect([answer.status, answer.text]).toEqual([200, '']);
        expect(answer.headers).toMatchObject(ACCOUNT);
        expect(answer.headers['x-ms-is-hns-enabled']).toBe('false');
        const old = await running.request(method, path, { headers: { 'x-ms-version': '2019-02-02' } });
        expect(old.headers).toMatchObject(ACCOUNT);
        expect(old.headers).not.toHaveProperty('x-ms-is-hns-enabled');
      });
    });

    it('tells it to the holder of any signature, and to no anonymous caller, even at a public container', async () => {
      const container = await running.newContainer();
      await container.setAccessPolicy('container');
      const { containerName } = container;
      const permissions = ContainerSASPermissions.parse('d');
      const url = await container.generateSasUrl({ permissions, expiresOn: new Date(Date.now() + 3_600_000) });
      const sas = new URL(url).search.slice(1);
      await eachAddress(containerName, async (method, path) => {
        const answer = await running.request(method, `${path}&${sas}`, { unsigned: true });
        if (path.startsWith('/?')) expect(answer.status).toBe(403);
        else expect([answer.status, answer.headers]).toMatchObject([200, ACCOUNT]);
        const anonymous = await running.request(method, path, { unsigned: true });
        expect(anonymous.status).toBe(401);
        expect(anonymous.headers['x-ms-error-code']).toBe('NoAuthenticationInformation');
      });
    });
  });
});
