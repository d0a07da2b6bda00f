import { describe, expect, it } from 'vitest';
import { notImplementedOperations } from '../../src/rest/blob/not-implemented.ts';
import { expectError, expectRefusal, onLmdb } from '../support/test-server.ts';

describe('An operation that is not built yet', () => {
  onLmdb((running) => {
    it.each(notImplementedOperations.map((row) => [row.name, row] as const))(
      'is answered by its name: %s',
      async (name, row) => {
        const { containerName } = await running.newContainer();
        const path: Record<string, string> = {
          '/': '/',
          '/{container}': `/${containerName}`,
          '/{container}/{blob}': `/${containerName}/blob`,
        };
        const query = Object.entries(row.query ?? {}).map(([key, value]) => `${key}=${value}`);
        const headers = Object.fromEntries(
          Object.entries(row.when ?? {}).map(([key, value]) => [key, value === true ? 'x' : value]),
        );
        const question = query.length > 0 ? `?${query.join('&')}` : '';
        const answer = await running.request(row.methods[0]!, `${path[row.shape]}${question}`, { headers });
        expectError(answer, 501, 'NotImplemented');
        expect(answer.text).toContain(name);
        expect(answer.text).toContain('operations.md');
      },
    );

    it('is refused to the client too', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('x', 1);
      await expectRefusal(blob.setLegalHold(true), 501, 'NotImplemented');
    });

    it('differs from an operation that Azure does not have', async () => {
      const { containerName } = await running.newContainer();
      const ask = (method: string, path: string) => running.request(method, path);
      expectError(await ask('GET', `/${containerName}/blob?comp=nothing`), 400, 'InvalidQueryParameterValue');
      expectError(await ask('GET', `/${containerName}?restype=folder`), 400, 'InvalidQueryParameterValue');
      expectError(await ask('PATCH', `/${containerName}/blob`), 405, 'UnsupportedHttpVerb');
    });
  });
});
