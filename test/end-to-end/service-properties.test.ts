import { describe, expect, it } from 'vitest';
import { elementOf, expectError, expectRefusal, onEveryEngine, onLmdb } from './support.ts';

const PATH = '/?restype=service&comp=properties';

describe('Get Blob Service Properties', () => {
  onEveryEngine((running) => {
    it('shows every part, all of them off', async () => {
      expect(await running.service.getProperties()).toMatchObject({
        blobAnalyticsLogging: { version: '1.0', read: false, write: false, deleteProperty: false },
        hourMetrics: { enabled: false, retentionPolicy: { enabled: false } },
        minuteMetrics: { enabled: false },
        cors: [],
        deleteRetentionPolicy: { enabled: false },
        staticWebsite: { enabled: false },
      });
      const answer = await running.request('GET', PATH);
      expect(answer.text.startsWith('\ufeff<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>')).toBe(
        true,
      );
    });
  });
});

describe('Set Blob Service Properties', () => {
  onEveryEngine((running) => {
    it('stores the default version, and takes what is off anyway', async () => {
      const off = { enabled: false };
      const set = await running.service.setProperties({
        defaultServiceVersion: '2020-02-10',
        hourMetrics: { version: '1.0', enabled: false, retentionPolicy: off },
        deleteRetentionPolicy: off,
        staticWebsite: off,
        cors: [],
      });
      expect(set._response.status).toBe(202);
      expect((await running.service.getProperties()).defaultServiceVersion).toBe('2020-02-10');
      await running.service.setProperties({ staticWebsite: off });
      expect((await running.service.getProperties()).defaultServiceVersion).toBe('2020-02-10');
    });

    it('refuses what would have no effect', async () => {
      const on = { enabled: true, days: 7 };
      const logging = { version: '1.0', read: true, write: false, deleteProperty: false, retentionPolicy: on };
      const metrics = { version: '1.0', enabled: true, includeAPIs: true, retentionPolicy: on };
      const rule = {
        allowedOrigins: '*',
        allowedMethods: 'GET',
        allowedHeaders: '',
        exposedHeaders: '',
        maxAgeInSeconds: 1,
      };
      const set = (properties: Parameters<typeof running.service.setProperties>[0]) =>
        expectRefusal(running.service.setProperties(properties), 501, 'NotImplemented');
      await set({ blobAnalyticsLogging: logging });
      await set({ hourMetrics: metrics });
      await set({ minuteMetrics: metrics });
      await set({ cors: [rule] });
      await set({ deleteRetentionPolicy: on });
      await set({ staticWebsite: { enabled: true, indexDocument: 'index.html' } });
    });
  });

  onLmdb((running) => {
    const retention = (days: string) =>
      `<DeleteRetentionPolicy><Enabled>true</Enabled><Days>${days}</Days></DeleteRetentionPolicy>`;

    it.each([
      ['nothing', ''],
      ['what is no XML', 'text'],
      ['an unknown part', '<StorageServiceProperties><Extra /></StorageServiceProperties>'],
      ['a retention of 0 days', `<StorageServiceProperties>${retention('0')}</StorageServiceProperties>`],
      ['a retention of 366 days', `<StorageServiceProperties>${retention('366')}</StorageServiceProperties>`],
    ])('refuses %s', async (_, body) => {
      expectError(await running.request('PUT', PATH, { body }), 400, 'InvalidXmlDocument');
    });

    it('says where the document is wrong', async () => {
      const body = `<StorageServiceProperties>\n${retention('0')}</StorageServiceProperties>`;
      const answer = await running.request('PUT', PATH, { body });
      expect(elementOf(answer.text, 'LineNumber')).toBe('2');
      expect(elementOf(answer.text, 'Reason')).toMatch(/^Retention days must be greater than 0/);
    });
  });
});
