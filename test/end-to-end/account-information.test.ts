import { describe, expect, it } from 'vitest';
import { onEveryEngine } from '../support/test-server.ts';

describe('Get Account Information', () => {
  onEveryEngine((running) => {
    it('describes the account, from its root, a container or a blob, which need not exist', async () => {
      expect(await running.service.getAccountInfo()).toMatchObject({
        skuName: 'Standard_LRS',
        accountKind: 'StorageV2',
        isHierarchicalNamespaceEnabled: false,
      });
      for (const path of ['/', '/not-there', '/not-there/blob']) {
        for (const method of ['GET', 'HEAD']) {
          const answer = await running.request(method, `${path}?restype=account&comp=properties`);
          expect([answer.status, answer.text]).toEqual([200, '']);
          expect(answer.headers).toMatchObject({ 'x-ms-sku-name': 'Standard_LRS', 'x-ms-account-kind': 'StorageV2' });
        }
      }
    });
  });
});
