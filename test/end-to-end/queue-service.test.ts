/** The Queue service itself: properties, CORS, stats, and operations that are not implemented. */
import {
  newPipeline,
  QueueServiceClient,
  type QueueServiceProperties,
  StorageSharedKeyCredential,
} from '@azure/storage-queue';
import { describe, expect, it } from 'vitest';
import { ask, newName, newQueue, textsIn } from '../support/queues.ts';
import { account, accountKey, expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

const PROPERTIES = '/?restype=service&comp=properties';
const off = { enabled: false };
const noLogging = { version: '1.0', read: false, write: false, deleteProperty: false, retentionPolicy: off };
const rule = {
  allowedOrigins: 'https://page.example',
  allowedMethods: 'GET,POST',
  allowedHeaders: 'x-ms-*',
  exposedHeaders: 'x-ms-*',
  maxAgeInSeconds: 60,
};

describe('Queue Service Properties', () => {
  onEveryEngine((running) => {
    it('say what is switched on: nothing, at first', async () => {
      const metrics = { version: '1.0', enabled: false, retentionPolicy: off };
      const properties = await running.queues.getProperties();
      expect(properties).toMatchObject({
        queueAnalyticsLogging: noLogging,
        hourMetrics: metrics,
        minuteMetrics: metrics,
        cors: [],
      });
      const answer = await ask(running, 'GET', PROPERTIES);
      expect(answer.headers['cache-control']).toBe('no-cache');
      expect(answer.text).not.toContain('DeleteRetentionPolicy');
    });

    it('keep every part that is not there, and the last writer wins', async () => {
      const set = (properties: QueueServiceProperties) => running.queues.setProperties(properties);
      expect((await set({ cors: [rule] }))._response.status).toBe(202);
      await set({ queueAnalyticsLogging: { ...noLogging, version: '2.0' } });
      expect((await running.queues.getProperties()).cors).toMatchObject([{ maxAgeInSeconds: 60 }]);
      await Promise.all([
        set({ cors: [{ ...rule, maxAgeInSeconds: 7 }] }),
        set({ queueAnalyticsLogging: { ...noLogging, version: '1.0' } }),
      ]);
      const both = await running.queues.getProperties();
      expect([both.cors![0]!.maxAgeInSeconds, both.queueAnalyticsLogging!.version]).toEqual([7, '1.0']);
      await set({ cors: [] });
      expect((await running.queues.getProperties()).cors).toEqual([]);
    });

    it('are those of the Queue service only', async () => {
      await running.service.setProperties({ cors: [] });
      await running.queues.setProperties({ cors: [rule] });
      expect((await running.service.getProperties()).cors).toEqual([]);
      await running.queues.setProperties({ cors: [] });
    });

    it.each([
      ['nothing', ''],
      ['an empty document', '<StorageServiceProperties />'],
      [
        'what only blobs have',
        '<StorageServiceProperties><StaticWebsite><Enabled>false</Enabled></StaticWebsite></StorageServiceProperties>',
      ],
      [
        '366 days',
        '<StorageServiceProperties><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>366</Days></RetentionPolicy></HourMetrics></StorageServiceProperties>',
      ],
    ])('are refused: %s', async (_, body) => {
      expectError(await ask(running, 'PUT', PROPERTIES, { body }), 400, 'InvalidXmlDocument');
    });
  });
});

describe('A page of another origin', () => {
  const origin = rule.allowedOrigins;

  onEveryEngine((running) => {
    const preflight = (path: string, method = 'POST') =>
      ask(running, 'OPTIONS', path, {
        unsigned: true,
        headers: {
          Origin: origin,
          'Access-Control-Request-Method': method,
          'Access-Control-Request-Headers': 'x-ms-version',
          'x-ms-version': undefined,
        },
      });

    it('is let in by the rules, at every path', async () => {
      const queue = await newQueue(running);
      expectError(await preflight(`/${queue.name}/messages`), 403, 'CorsPreflightFailure');
      await running.queues.setProperties({ cors: [rule] });
      for (const path of ['/', '/none', '/none/messages', '/none/messages/id?popreceipt=x', '/none/other/path']) {
        const answer = await preflight(path);
        expect([path, answer.status, answer.headers['access-control-allow-origin']]).toEqual([path, 200, origin]);
      }
      expectError(await preflight('/none', 'DELETE'), 403, 'CorsPreflightFailure');
      const read = await ask(running, 'GET', `/${queue.name}/messages`, { headers: { Origin: origin } });
      expect(read.headers).toMatchObject({ 'access-control-allow-origin': origin, vary: 'Origin' });
      const missing = await ask(running, 'GET', `/${newName()}/messages`, { headers: { Origin: origin } });
      expectError(missing, 404, 'QueueNotFound');
      expect(missing.headers['access-control-allow-origin']).toBe(origin);
      await running.queues.setProperties({ cors: [] });
    });
  });
});

describe('Get Queue Service Stats', () => {
  onEveryEngine((running) => {
    const secondary = () =>
      new QueueServiceClient(
        `${running.server.queueUrl}-secondary`,
        newPipeline(new StorageSharedKeyCredential(account, accountKey), { retryOptions: { maxTries: 1 } }),
      );

    it('reports at the secondary address that replication is live, and is right', async () => {
      const { geoReplication } = await secondary().getStatistics();
      expect(geoReplication?.status).toBe('live');
      const queue = await newQueue(running);
      await queue.sendMessage('seen');
      expect(await textsIn(secondary().getQueueClient(queue.name))).toEqual(['seen']);
    });

    it('is refused at the primary address, and writes at the secondary one', async () => {
      await expectRefusal(running.queues.getStatistics(), 400, 'InvalidQueryParameterValue');
      const there = secondary().getQueueClient(newName());
      await expectRefusal(there.create(), 403, 'InsufficientAccountPermissions');
      await expectRefusal(there.sendMessage('x'), 403, 'InsufficientAccountPermissions');
    });
  });
});

describe('A request that the Queue service cannot serve', () => {
  onEveryEngine((running) => {
    it.each([
      ['POST', '/?restype=service&comp=userdelegationkey', 501, 'NotImplemented'],
      ['GET', '/?comp=unknown', 400, 'InvalidQueryParameterValue'],
      ['GET', '/abc', 405, 'UnsupportedHttpVerb'],
      ['GET', '/abc?comp=list', 400, 'InvalidQueryParameterValue'],
      ['PUT', '/abc?comp=lease', 400, 'InvalidQueryParameterValue'],
      ['DELETE', '/', 405, 'UnsupportedHttpVerb'],
      ['PATCH', '/abc', 405, 'UnsupportedHttpVerb'],
      ['GET', '/%zz', 400, 'InvalidUri'],
      ['GET', '/abc/messages?numofmessages=%zz', 400, 'InvalidQueryParameterValue'],
    ] as const)('is told why: %s %s', async (method, path, status, code) => {
      expectError(await ask(running, method, path, { headers: { 'Content-Length': 0 } }), status, code);
    });

    it('is answered before its body is read', async () => {
      const queue = await newQueue(running);
      const long = await ask(running, 'POST', `/${queue.name}/messages`, {
        headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' },
      });
      expectError(long, 411, 'MissingContentLengthHeader');
    });
  });
});
