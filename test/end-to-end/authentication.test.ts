import { describe, expect, it } from 'vitest';
import { account, clientOf, expectError, expectRefusal, onLmdb, serverFor } from '../support/test-server.ts';

const OTHER_KEY = Buffer.from('another key').toString('base64');

describe('SharedKey', () => {
  onLmdb((running) => {
    it('refuses another key', async () => {
      const otherKey = clientOf(running.server.blobUrl, OTHER_KEY);
      await expectRefusal(otherKey.getAccountInfo(), 403, 'AuthenticationFailed');
      await expectRefusal(otherKey.createContainer('abcd'), 403, 'AuthenticationFailed');
      expect(await running.service.getContainerClient('abcd').exists()).toBe(false);
    });

    it('accepts the signature of this request, and of no other', async () => {
      const { containerName } = await running.newContainer();
      const put = (headers: Record<string, string>, body = 'x') =>
        running.request('PUT', `/${containerName}/blob`, {
          headers: { 'x-ms-blob-type': 'BlockBlob', ...headers },
          body,
        });
      const Authorization = `SharedKey ${account}:${Buffer.alloc(32).toString('base64')}`;
      expectError(await put({ Authorization }), 403, 'AuthenticationFailed');
      expect((await put({ 'x-ms-meta-a': 'b  c', 'Content-Type': 'text/plain' })).status).toBe(201);
      expect((await running.request('GET', `/${containerName}/a%2Fb%20c?comp=metadata&x=%C3%A9+1`)).status).toBe(404);
    });

    it.each([
      '',
      'garbage',
      'SharedKey',
      'SharedKey :',
      `SharedKey ${account}`,
      `SharedKey ${account}:`,
      '\u00ff\u00fe',
    ])('refuses the header "%s"', async (Authorization) => {
      const answer = await running.request('GET', '/?comp=list', { headers: { Authorization } });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(404);
      expect(['InvalidAuthenticationInfo', 'AuthenticationFailed', 'NoAuthenticationInformation']).toContain(
        answer.headers['x-ms-error-code'],
      );
    });

    it('refuses a request without any, and names the accepted schemes', async () => {
      const answer = await running.request('GET', '/?comp=list', { unsigned: true });
      expectError(answer, 401, 'NoAuthenticationInformation');
      expect(answer.headers['www-authenticate']).toBeDefined();
    });

    it('refuses a date too far from now, whatever the test clock is', async () => {
      await running.server.clock.advance(86_400);
      expect((await running.request('GET', '/?comp=list')).status).toBe(200);
      for (const minutes of [-20, 20]) {
        const headers = { 'x-ms-date': new Date(Date.now() + minutes * 60_000).toUTCString() };
        expectError(await running.request('GET', '/?comp=list', { headers }), 403, 'AuthenticationFailed');
      }
      expectError(
        await running.request('GET', '/?comp=list', { headers: { 'x-ms-date': undefined } }),
        403,
        'AuthenticationFailed',
      );
    });

    it('refuses other credentials that are not genuine, and names the Bearer scheme only with a flag', async () => {
      const unsigned = { unsigned: true };
      expectError(await running.request('GET', '/c/b?sv=2020-02-10&sig=x', unsigned), 403, 'AuthenticationFailed');
      const ask = (Authorization: string) => running.request('GET', '/?comp=list', { headers: { Authorization } });
      expectError(await ask(`SharedKeyLite ${account}:x`), 403, 'AuthenticationFailed');
      const answer = await ask('Bearer token');
      expectError(answer, 501, 'NotImplemented');
      expect(answer.text).toContain('--oauth basic');
    });

    it('knows its accounts', async () => {
      const { port } = new URL(running.server.blobUrl);
      const answer = await fetch(`http://127.0.0.1:${port}/nobody/container?restype=container`);
      expect([answer.status, answer.headers.get('x-ms-error-code')]).toEqual([400, 'InvalidUri']);
      expect(await answer.text()).toContain('nobody');
    });
  });

  describe('with two accounts', () => {
    const keys = [OTHER_KEY, Buffer.from('second').toString('base64')];
    const running = serverFor('LMDB', {
      accounts: [
        { name: account, keys },
        { name: 'other', keys: [OTHER_KEY] },
      ],
    });

    it('accepts either key of an account, which sees nothing of other accounts', async () => {
      for (const key of keys) await clientOf(running.server.blobUrl, key).getAccountInfo();
      await clientOf(running.server.blobUrl, keys[0]).createContainer('mine');
      const foreign = clientOf(running.server.blobUrl.replace(account, 'other'), keys[0]);
      // Signed by devstoreaccount1 for a path of the other account.
      await expectRefusal(foreign.getContainerClient('mine').getProperties(), 403, 'AuthenticationFailed');
    });
  });
});
