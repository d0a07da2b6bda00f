/** The flag of the emulator that changes answers: --loose. */
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, serverFor } from '../support/test-server.ts';

describe('A header of a feature that is missing', () => {
  const strict = serverFor('memory');
  const loose = serverFor('memory', { looseMode: true });

  it('is refused', async () => {
    const blob = (await strict.newContainer()).getBlockBlobClient('blob');
    await expectRefusal(blob.upload('x', 1, { encryptionScope: 'scope' }), 501, 'NotImplemented');
    expect(await blob.exists()).toBe(false);
  });

  it('is passed over with --loose, and operations that are missing are still refused', async () => {
    const blob = (await loose.newContainer()).getBlockBlobClient('blob');
    await blob.upload('x', 1, { encryptionScope: 'scope' });
    expect((await blob.downloadToBuffer()).toString()).toBe('x');
    await expectRefusal(blob.setLegalHold(true), 501, 'NotImplemented');
  });

  it('is refused with --loose, too, if it asks for other content', async () => {
    const container = await loose.newContainer();
    for (const name of ['a', 'b', 'c']) await container.getBlockBlobClient(name).upload(name, 1);
    const { containerName } = container;
    const list = (query: string) => loose.request('GET', `/${containerName}?restype=container&comp=list&${query}`);
    expectError(await list('endBefore=b'), 400, 'OperationNotSupportedWithFeatureMissing');
    const { text } = await list('startFrom=b');
    expect([...text.matchAll(/<Name>(.*?)<\/Name>/g)].map(([, name]) => name)).toEqual(['b', 'c']);
    const version = '?versionid=2026-11-17T00:00:00.0000000Z';
    for (const method of ['GET', 'DELETE']) {
      expectError(await loose.request(method, `/${containerName}/a${version}`), 501, 'NotImplemented');
    }
    const block = { headers: { 'x-ms-if-tags': `"a" = 'b'` }, body: 'x' };
    const path = `/${containerName}/a?comp=block&blockid=MDE%3D`;
    expectError(await loose.request('PUT', path, block), 501, 'NotImplemented');
    expect((await container.getBlobClient('a').downloadToBuffer()).toString()).toBe('a');
  });
});
