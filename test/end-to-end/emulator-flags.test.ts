/** A flag of the emulator that changes what a request gets: --loose. */
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
