import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { start } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { elementOf, expectError, expectRefusal, onEveryEngine, onLmdb, serverFor } from '../support/test-server.ts';

describe('Every answer', () => {
  onLmdb((running) => {
    it('carries a request id of its own, the date, the server, the version and the id of the client', async () => {
      const headers = { 'x-ms-client-request-id': 'mine', 'x-ms-version': '2099-12-31' };
      const ids = new Set<unknown>();
      for (const path of ['/?comp=list', '/not-there?restype=container', '/?comp=nothing']) {
        const answer = await running.request('GET', path, { headers });
        expect(answer.headers).toMatchObject({
          'x-ms-client-request-id': 'mine',
          'x-ms-version': '2099-12-31',
          server: 'Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0',
        });
        expect(Math.abs(Date.parse(answer.headers.date!) - Date.now())).toBeLessThan(3_600_000);
        ids.add(answer.headers['x-ms-request-id']);
        if (answer.status >= 400) expect(answer.text).toContain(`RequestId:${answer.headers['x-ms-request-id']}\n`);
      }
      expect(ids.size).toBe(3);
    });

    it('serves any well-formed version, and refuses a malformed one', async () => {
      for (const version of ['2009-09-19', '2019-02-02', '2099-01-01']) {
        expect((await running.request('GET', '/?comp=list', { headers: { 'x-ms-version': version } })).status).toBe(
          200,
        );
      }
      for (const version of ['latest', '2019-13-01', '2019-02', '20190202']) {
        const answer = await running.request('GET', '/?comp=list', { headers: { 'x-ms-version': version } });
        expectError(answer, 400, 'InvalidHeaderValue', { HeaderName: 'x-ms-version', HeaderValue: version });
      }
    });

    it('is an error of the form that clients read', async () => {
      const { text, headers } = await running.request('GET', '/not-there?restype=container');
      expect(headers['x-ms-error-code']).toBe('ContainerNotFound');
      expect(text).toMatch(
        /^\ufeff<\?xml version="1\.0" encoding="utf-8"\?><Error><Code>ContainerNotFound<\/Code><Message>/,
      );
      expect(elementOf(text, 'Message')).toMatch(
        /^The specified container does not exist\.\nRequestId:[0-9a-f-]{36}\nTime:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/,
      );
    });

    it('comes over one connection, also after refusals', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('there', 'last bytes', 10);
      const { containerName } = container;
      const socket = running.socket();
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      const put = { 'x-ms-blob-type': 'BlockBlob', 'Content-Length': 1 };
      socket.write(`${running.head('PUT', '/not-there/blob', put)}1`);
      socket.write(`${running.head('PUT', `/${containerName}/blob`, put)}2`);
      socket.write(running.head('GET', `/${containerName}/there`, { Connection: 'close' }));
      await once(socket, 'close');
      expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 404', 'HTTP/1.1 201', 'HTTP/1.1 200']);
      expect(text.endsWith('last bytes')).toBe(true);
    });

    it('is 400 to bytes that are no HTTP, and the server goes on', async () => {
      const socket = running.socket();
      socket.write('\u0016\u0003\u0001 no HTTP at all\r\n\r\n');
      const [answer] = await once(socket, 'data');
      expect(String(answer)).toMatch(/^HTTP\/1\.1 400 /);
      socket.destroy();
      expect((await running.request('GET', '/health/live', { unsigned: true })).status).toBe(200);
    });
  });
});

describe('The health of the server', () => {
  onEveryEngine((running) => {
    it('needs no signature', async () => {
      for (const path of ['/health/live', '/health/ready']) {
        expect((await running.request('GET', path, { unsigned: true })).status).toBe(200);
      }
    });
  });
});

describe('The clock', () => {
  onEveryEngine((running) => {
    it('is moved by a request, and all that is written has the new time', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const before = (await blob.upload('x', 1)).lastModified!.getTime();
      const answer = await running.request('POST', '/_holdfast/clock/advance?seconds=3600', { unsigned: true });
      expect(answer.status).toBe(204);
      const after = (await blob.upload('x', 1)).lastModified!.getTime();
      expect(after - before).toBeGreaterThanOrEqual(3_600_000);
    });

    it('is moved by a request, and the next request sees expired leases', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('x', 1);
      for (let round = 0; round < 3; round++) {
        await blob.getBlobLeaseClient().acquireLease(60);
        await running.request('POST', '/_holdfast/clock/advance?seconds=60', { unsigned: true });
        expect((await blob.getProperties()).leaseState).toBe('expired');
      }
    });

    it('moves forward only', async () => {
      for (const seconds of ['-1', 'x', '1e10', '']) {
        const path = `/_holdfast/clock/advance?seconds=${seconds}`;
        const answer = await running.request('POST', path, { unsigned: true });
        if (seconds !== '') expectError(answer, 400, 'OutOfRangeInput');
      }
      await expect(running.server.clock.advance(-1)).rejects.toThrow(/seconds/);
    });
  });

  describe('of a server on disk without a test clock', () => {
    const running = serverFor('LMDB', { testClock: false });

    it('cannot be moved, nor the server be emptied', async () => {
      await running.newContainer();
      for (const path of ['/_holdfast/clock/advance?seconds=1', '/_holdfast/reset']) {
        const answer = await running.request('POST', path, { unsigned: true });
        expectError(answer, 403, 'AuthorizationFailure');
        expect(answer.text).toContain('--test-clock');
      }
      await expect(running.server.clock.advance(1)).rejects.toThrow(/--test-clock/);
      await expect(running.server.reset()).rejects.toThrow(/--test-clock/);
      expect((await running.service.listContainers().next()).done).toBe(false);
    });
  });
});

describe('The endpoints for tests', () => {
  const running = serverFor('memory');

  it('are closed to pages of the web, which need nothing but the address', async () => {
    const container = await running.newContainer();
    for (const path of ['/_holdfast/clock/advance?seconds=1', '/_holdfast/reset']) {
      const headers = { Origin: 'https://page.example' };
      expectError(await running.request('POST', path, { unsigned: true, headers }), 403, 'AuthorizationFailure');
    }
    expect(await container.exists()).toBe(true);
  });
});

describe('Emptying the server', () => {
  onEveryEngine((running) => {
    it('removes all containers and settings, leased or not, and lets names be used again', async () => {
      const reset = [
        () => running.server.reset(),
        () => running.request('POST', '/_holdfast/reset', { unsigned: true }),
      ];
      for (const empty of reset) {
        const container = running.service.getContainerClient('once-more');
        await container.create();
        await container.uploadBlockBlob('blob', 'x', 1);
        await container.getBlobLeaseClient().acquireLease(-1);
        await running.service.setProperties({ defaultServiceVersion: '2020-02-10' });
        await empty();
        expect((await running.service.listContainers().next()).done).toBe(true);
        expect((await running.service.getProperties()).defaultServiceVersion).toBeUndefined();
        await expectRefusal(container.getBlobClient('blob').download(), 404, 'ContainerNotFound');
      }
    });
  });
});

describe('A server', () => {
  const running = serverFor('LMDB');

  it('finds everything again after a stop', async () => {
    const container = await running.newContainer();
    const blob = container.getBlockBlobClient('blob');
    await blob.upload('bytes', 5, { metadata: { a: '1' } });
    await blob.getBlobLeaseClient(randomUUID()).acquireLease(-1);
    const before = await blob.getProperties();
    await running.server.stop();
    const again = await start({ location: running.folder!, blobPort: Number(new URL(running.server.blobUrl).port) });
    try {
      const after = await blob.getProperties();
      for (const name of ['etag', 'lastModified', 'createdOn', 'metadata', 'leaseState', 'leaseDuration'] as const) {
        expect(after[name]).toEqual(before[name]);
      }
      expect((await blob.downloadToBuffer()).toString()).toBe('bytes');
      await expectRefusal(blob.upload('x', 1), 412, 'LeaseIdMissing');
    } finally {
      await again.stop();
    }
  });
});
