import { describe, expect, it } from 'vitest';
import { account, expectError, onEveryEngine, type RawRequest, serverFor } from '../support/test-server.ts';

const page = 'https://page.example';
const one = {
  allowedOrigins: page,
  allowedMethods: 'GET,PUT',
  allowedHeaders: 'x-ms-*,content-type',
  exposedHeaders: 'ETag,x-ms-meta-*',
  maxAgeInSeconds: 60,
};
const open = { ...one, allowedOrigins: '*', allowedMethods: 'DELETE', exposedHeaders: '*' };

const ask = (method: string, headers = 'x-ms-version', origin = page): RawRequest => ({
  unsigned: true,
  headers: {
    Origin: origin,
    'Access-Control-Request-Method': method,
    'Access-Control-Request-Headers': headers,
    'x-ms-version': undefined,
    'x-ms-date': undefined,
  },
});

describe('Preflight Blob Request', () => {
  onEveryEngine((running) => {
    it('is refused before there are rules', async () => {
      const answer = await running.request('OPTIONS', '/c/b', ask('GET'));
      expectError(answer, 403, 'CorsPreflightFailure');
      expect(answer.reason).toBe('CORS not enabled or no matching rule found for this request.');
    });

    it('is answered from the rules at once, for every path, without a signature', async () => {
      await running.service.setProperties({ cors: [one, open] });
      for (const path of ['', '/', '/?comp=list', '/none', '/none/b?comp=block', '/none/a/b/%C3%A9?sv=1&sig=wrong']) {
        const answer = await running.request('OPTIONS', path, ask('PUT', 'x-ms-blob-type,Content-Type'));
        expect([path, answer.status]).toEqual([path, 200]);
        expect(answer.headers).toMatchObject({
          'access-control-allow-origin': page,
          'access-control-allow-methods': 'PUT',
          'access-control-allow-headers': 'x-ms-blob-type,Content-Type',
          'access-control-max-age': '60',
          'access-control-allow-credentials': 'true',
          'content-length': '0',
        });
      }
      expectError(await running.request('OPTIONS', '/c', ask('PUT', 'authorization')), 403, 'CorsPreflightFailure');
      expectError(await running.request('OPTIONS', '/c', ask('POST')), 403, 'CorsPreflightFailure');
      const otherOrigin = await running.request('OPTIONS', '/c', ask('DELETE', 'x-ms-date', 'null'));
      expect([otherOrigin.status, otherOrigin.headers['access-control-allow-origin']]).toEqual([200, 'null']);
      await running.service.setProperties({ cors: [] });
      expectError(await running.request('OPTIONS', '/c', ask('PUT')), 403, 'CorsPreflightFailure');
    });

    it('needs an origin and a method', async () => {
      const { headers } = ask('PUT');
      for (const name of ['Origin', 'Access-Control-Request-Method']) {
        const request = { unsigned: true, headers: { ...headers, [name]: undefined } };
        expectError(await running.request('OPTIONS', '/c/b', request), 400, 'InvalidHeaderValue', { HeaderName: name });
      }
    });
  });
});

describe('A request of a page', () => {
  onEveryEngine((running) => {
    it('is answered with what the browser must know, refusals too', async () => {
      await running.service.setProperties({ cors: [one, open] });
      const container = await running.newContainer();
      await container.uploadBlockBlob('b', 'text', 4, { metadata: { a: '1', b: '2' } });
      const from = (method: string, path: string, origin: string | undefined, request: RawRequest = {}) =>
        running.request(method, `/${container.containerName}${path}`, {
          ...request,
          headers: { ...request.headers, Origin: origin },
        });

      const told = {
        'access-control-allow-origin': page,
        'access-control-allow-credentials': 'true',
        vary: 'Origin',
      };
      const got = await from('GET', '/b', page);
      expect([got.status, got.text]).toEqual([200, 'text']);
      expect(got.headers).toMatchObject({ ...told, 'access-control-expose-headers': 'ETag,x-ms-meta-a,x-ms-meta-b' });
      const missing = await from('GET', '/none', page);
      expectError(missing, 404, 'BlobNotFound');
      expect(missing.headers).toMatchObject(told);
      const wrong = await from('GET', '/b', page, { key: 'AAAA' });
      expectError(wrong, 403, 'AuthenticationFailed');
      expect(wrong.headers).toMatchObject(told);
      const unsigned = await from('GET', '/b', page, { unsigned: true });
      expect(unsigned.status).toBeGreaterThanOrEqual(400);
      expect(unsigned.headers).toMatchObject(told);

      const headers = { 'x-ms-blob-type': 'BlockBlob' };
      const written = await from('PUT', '/new', page, { headers, body: 'x' });
      expect([written.status, written.headers.vary]).toEqual([201, undefined]);
      expect(written.headers['access-control-allow-origin']).toBe(page);

      const otherOrigin = await from('GET', '/b', 'https://other.example');
      expect([otherOrigin.status, otherOrigin.headers['access-control-allow-origin']]).toEqual([200, undefined]);
      expect(otherOrigin.headers.vary).toBe('Origin');

      const removed = await from('DELETE', '/b', 'https://other.example');
      expect([removed.status, removed.headers['access-control-allow-origin']]).toEqual([202, '*']);
      expect(removed.headers['access-control-expose-headers']).toMatch(/^x-ms-request-id,.*,Date,/);
      expect(removed.headers['access-control-allow-credentials']).toBeUndefined();

      await running.service.setProperties({ cors: [] });
      const without = await from('GET', '/new', page);
      expect([without.status, without.headers['access-control-allow-origin'], without.headers.vary]).toEqual([
        200,
        undefined,
        undefined,
      ]);
    });
  });
});

describe('With --cors', () => {
  const running = serverFor('memory', { cors: ['http://localhost:3000'] });

  it('pages of these origins may do everything, and others what the stored rules say', async () => {
    await running.service.setProperties({ cors: [one] });
    const local = await running.request('OPTIONS', '/c/b', ask('DELETE', 'any', 'http://localhost:3000'));
    expect([local.status, local.headers['access-control-max-age']]).toEqual([200, '86400']);
    expect((await running.request('OPTIONS', '/c/b', ask('PUT'))).status).toBe(200);
    expectError(await running.request('OPTIONS', '/c/b', ask('DELETE')), 403, 'CorsPreflightFailure');
    expect((await running.service.getProperties()).cors).toHaveLength(1);
    expect(running.server.blobUrl).toContain(account);
  });
});
