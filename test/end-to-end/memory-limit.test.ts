import { describe, expect, it } from 'vitest';
import { expectRefusal, serverFor } from './support.ts';

describe('A limit on data in memory', () => {
  const MIB = 1 << 20;
  const running = serverFor('memory', { memoryBytesMax: 16 * MIB });

  it('refuses uploads beyond it as a full disk would, serves what is there, and takes more once some is deleted', async () => {
    const container = await running.newContainer();
    const bytes = Buffer.alloc(5 * MIB, 'x');
    const upload = (name: string) => container.getBlockBlobClient(name).upload(bytes, bytes.length);
    for (const name of ['one', 'two', 'three']) await upload(name);
    await expectRefusal(upload('four'), 503, 'ServerBusy');
    expect((await container.getBlobClient('two').downloadToBuffer()).equals(bytes)).toBe(true);
    await container.deleteBlob('one');
    // The space comes back in the background.
    const until = async (): Promise<void> => {
      await upload('four').catch(async (error) => {
        if (error.statusCode !== 503) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
        await until();
      });
    };
    await until();
    expect((await container.getBlobClient('four').downloadToBuffer()).equals(bytes)).toBe(true);
  });
});
