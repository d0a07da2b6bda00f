import { describe, expect, it } from 'vitest';
import { extentsConformance } from './conformance.ts';
import { NoSpace } from './extents.ts';
import { makeMemoryFiles, openMemoryExtents } from './memory.ts';

extentsConformance('memory', {
  durable: false,
  async open(options) {
    const extents = openMemoryExtents(options);
    return { extents, drop: () => extents.close() };
  },
});

describe('Files in memory with a limit', () => {
  const MIB = 1 << 20;
  async function files() {
    const made = makeMemoryFiles(4 * MIB);
    await made.make('one', Buffer.alloc(64));
    return made;
  }

  it('refuse bytes beyond it, before and during a write, and keep what they had', async () => {
    const { checkSpace, write, read } = await files();
    await expect(checkSpace(5 * MIB, 'any')).rejects.toThrow(NoSpace);
    await write('one', [Buffer.alloc(3 * MIB, 'a')], 64, 'any');
    await expect(checkSpace(MIB, 'any')).rejects.toThrow(NoSpace);
    await expect(write('one', [Buffer.alloc(MIB, 'b')], 64 + 3 * MIB, 'any')).rejects.toThrow(NoSpace);
    expect((await read('one', 64 + 3 * MIB - 1, 2)).toString()).toBe('a');
  });

  it('have room again for what was removed', async () => {
    const { make, write, remove } = await files();
    for (let round = 0; round < 10; round++) {
      await make('two', Buffer.alloc(64));
      await write('two', [Buffer.alloc(3 * MIB)], 64, 'any');
      await remove('two');
    }
  });

  it('do not count overwritten bytes twice', async () => {
    const { write } = await files();
    for (let round = 0; round < 10; round++) await write('one', [Buffer.alloc(MIB)], 64, 'any');
  });

  it('are low on space near the limit, and let a copy that frees more exceed it a little', async () => {
    const { write, isLowOnSpace } = await files();
    expect(isLowOnSpace()).toBe(false);
    await write('one', [Buffer.alloc(3.8 * MIB)], 64, 'any');
    expect(isLowOnSpace()).toBe(true);
    await expect(write('one', [Buffer.alloc(0.3 * MIB)], 4 * MIB, 'any')).rejects.toThrow(NoSpace);
    await write('one', [Buffer.alloc(0.3 * MIB)], 4 * MIB, 'frees');
    await expect(write('one', [Buffer.alloc(MIB)], 5 * MIB, 'frees')).rejects.toThrow(NoSpace);
  });
});
