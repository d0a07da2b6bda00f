/** Flags of the emulator that change what a request gets: --loose and --oauth basic. */
import { request as httpsRequest } from 'node:https';
import { describe, expect, it } from 'vitest';
import { expectRefusal, serverFor } from './support.ts';

describe('A header of a feature that is missing', () => {
  const strict = serverFor('memory');
  const loose = serverFor('memory', { looseMode: true });

  it('is refused', async () => {
    const blob = (await strict.newContainer()).getBlockBlobClient('blob');
    await expectRefusal(blob.upload('x', 1, { tier: 'Cool' }), 501, 'NotImplemented');
    expect(await blob.exists()).toBe(false);
  });

  it('is passed over with --loose, and operations that are missing are still refused', async () => {
    const blob = (await loose.newContainer()).getBlockBlobClient('blob');
    await blob.upload('x', 1, { tier: 'Cool' });
    expect((await blob.downloadToBuffer()).toString()).toBe('x');
    await expectRefusal(blob.setAccessTier('Cool'), 501, 'NotImplemented');
  });
});

describe('A bearer token with --oauth basic', () => {
  const running = serverFor('memory', { https: 'auto', oauth: 'basic' });
  const seconds = () => Math.floor(Date.now() / 1_000);
  const good = () => ({
    iss: 'https://sts.windows.net/00000000-0000-0000-0000-000000000000/',
    aud: 'https://storage.azure.com',
    nbf: seconds() - 60,
    exp: seconds() + 600,
  });

  function list(claims: object): Promise<number> {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = `${part({ alg: 'none', typ: 'JWT' })}.${part(claims)}.nothing`;
    const url = new URL(`${running.server.blobUrl}/?comp=list`);
    return new Promise((resolve, reject) => {
      const headers = { Authorization: `Bearer ${token}`, 'x-ms-version': '2025-07-05' };
      const options = { headers, ca: running.server.authority!.certificate, agent: false };
      httpsRequest(url, options, (answer) => resolve(answer.resume().statusCode!))
        .on('error', reject)
        .end();
    });
  }

  it('opens the account, by its claims alone', async () => {
    expect(await list(good())).toBe(200);
  });

  it.each([
    ['is expired', { exp: 1 }],
    ['is not valid yet', { nbf: 9_999_999_999 }],
    ['is for another service', { aud: 'https://graph.microsoft.com' }],
    ['is from elsewhere', { iss: 'https://example.com/' }],
  ])('is refused if it %s', async (_, wrong) => {
    expect(await list({ ...good(), ...wrong })).toBe(401);
  });
});
