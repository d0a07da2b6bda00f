import { describe, expect, it } from 'vitest';
import { clientOf, elementOf, expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

describe('Get Blob Service Stats', () => {
  onEveryEngine((running) => {
    const secondary = () => clientOf(running.server.blobUrl.replace(/\/?$/, '-secondary'));

    it('reports at the secondary address that replication is live', async () => {
      const { geoReplication, date } = await secondary().getStatistics();
      expect(geoReplication?.status).toBe('live');
      expect(geoReplication?.lastSyncOn.valueOf()).toBeGreaterThanOrEqual(date!.valueOf() - 1_000);
    });

    it('is right: what was written is seen there at once', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('here', 'now', 3);
      const there = secondary().getContainerClient(container.containerName);
      expect((await there.getBlobClient('here').downloadToBuffer()).toString()).toBe('now');
    });

    it('is refused at the primary address', async () => {
      await expectRefusal(running.service.getStatistics(), 400, 'InvalidQueryParameterValue');
      const answer = await running.request('GET', '/?restype=service&comp=stats');
      expectError(answer, 400, 'InvalidQueryParameterValue', {
        QueryParameterName: 'comp',
        QueryParameterValue: 'stats',
      });
      expect(elementOf(answer.text, 'LastSyncTime')).toBeUndefined();
    });
  });
});
