import { fstatSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FileCache } from './file-cache.ts';

describe('Open files', () => {
  let folder: string;
  let files: FileCache;
  const path = (name: string) => join(folder, name);
  const descriptorOf = (name: string) => files.use(path(name), 'r', async (descriptor) => descriptor);
  /** Uses a file until released. */
  const hold = async (name: string) => {
    let stop = () => {};
    const held = new Promise<void>((resolve) => {
      stop = resolve;
    });
    let started: (descriptor: number) => void = () => {};
    const begun = new Promise<number>((resolve) => {
      started = resolve;
    });
    const done = files.use(path(name), 'r', async (descriptor) => {
      started(descriptor);
      await held;
      return fstatSync(descriptor).size;
    });
    const end = () => {
      stop();
      return done;
    };
    return { descriptor: await begun, end };
  };
  const isOpen = (descriptor: number) => {
    try {
      return fstatSync(descriptor).isFile();
    } catch {
      return false;
    }
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-files-'));
    for (const name of 'abcd') writeFileSync(path(name), name);
    files = new FileCache(2);
  });
  afterEach(async () => {
    await files.close();
    rmSync(folder, { recursive: true });
  });

  it('are opened once for all users', async () => {
    const [one, two] = await Promise.all([descriptorOf('a'), descriptorOf('a')]);
    expect(two).toBe(one);
    expect(await descriptorOf('a')).toBe(one);
  });

  it('are evicted, the least recently used first', async () => {
    const a = await hold('a');
    await a.end();
    const b = await hold('b');
    await b.end();
    await descriptorOf('a');
    const c = await hold('c');
    expect(await descriptorOf('a')).toBe(a.descriptor);
    await c.end();
  });

  it('are not closed while in use: other files wait', async () => {
    const [a, b] = [await hold('a'), await hold('b')];
    let came = '';
    const waiting = ['c', 'd', 'a'].map((name) =>
      files.use(path(name), 'r', async () => {
        came += name;
      }),
    );
    await waiting[2];
    expect(came).toBe('a');
    expect([a, b].map(({ descriptor }) => isOpen(descriptor))).toEqual([true, true]);
    await a.end();
    await Promise.all(waiting);
    expect(came).toBe('acd');
    expect(await b.end()).toBe(1);
  });

  it('that were evicted stay open for their users, and are opened again by the next', async () => {
    const a = await hold('a');
    files.evict(path('a'));
    expect(await descriptorOf('a')).not.toBe(a.descriptor);
    expect(isOpen(a.descriptor)).toBe(true);
    expect(await a.end()).toBe(1);
    await files.close();
    expect(isOpen(a.descriptor)).toBe(false);
  });

  it('that cannot be opened take no room in the cache', async () => {
    for (let i = 0; i < 5; i++) await expect(descriptorOf('missing')).rejects.toThrow('ENOENT');
    writeFileSync(path('missing'), '');
    await descriptorOf('missing');
  });

  it('are closed after their last use; later uses are refused', async () => {
    const [a, b] = [await hold('a'), await hold('b')];
    const waiting = descriptorOf('c').catch((error: Error) => error.message);
    let closed = false;
    const closing = files.close().then(() => {
      closed = true;
    });
    expect(await waiting).toContain('closed');
    await expect(descriptorOf('a')).rejects.toThrow('closed');
    await a.end();
    expect(closed).toBe(false);
    await b.end();
    await closing;
    expect([a, b].map(({ descriptor }) => isOpen(descriptor))).toEqual([false, false]);
  });

  it('are evicted except for those to be kept, one in use after its use', async () => {
    const [a, b] = [await hold('a'), await descriptorOf('b')];
    files.evictOthers(new Set([path('b')]));
    expect([isOpen(a.descriptor), isOpen(b)]).toEqual([true, true]);
    await a.end();
    while (isOpen(a.descriptor)) await new Promise(setImmediate);
    expect(await descriptorOf('b')).toBe(b);
  });
});
