/** Everything that is done through a handle, but for opens and closes themselves, which handles.test.ts has. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { keysUnder } from '../../partition/keys.ts';
import { ALL_RIGHTS, RIGHTS } from '../../rules/file/access-mask.ts';
import { ALL } from '../../rules/file/share-mode.ts';
import { createDirectory } from './directories.ts';
import { createFile, getFile } from './files.ts';
import { copyRange } from './handle-copies.ts';
import { listThroughHandle, parsePattern } from './handle-listing.ts';
import {
  getHandlePermission,
  readHandlePath,
  setHandlePermission,
  setHandleProperties,
  setSparse,
  viewHandle,
} from './handle-properties.ts';
import { listAllocated, readRange, setAllocation, setEndOfFile, writeRange, zeroRange } from './handle-ranges.ts';
import { renameThroughHandle } from './handle-rename.ts';
import { closeHandle } from './handles.ts';
import { type OpenInput, openNode } from './open-node.ts';
import { downloadFile } from './reads.ts';
import { encodeShare, nameKey } from './rows.ts';
import { readShareSizes } from './share-sizes.ts';

const mode = 'now';

async function openWorld() {
  const world = await openShare();
  const { storage } = world;
  const open = async (path: string, changes: Partial<OpenInput> = {}) => {
    const { handle } = await openNode(storage, {
      ...{ share: SHARE, path, disposition: 'openIf', kind: 'any', rights: ALL_RIGHTS, shareMode: ALL },
      ...{ deletesOnClose: false, smb: {}, client: { session: '1', ip: '192.0.2.1:445' } },
      ...changes,
    });
    return handle;
  };
  const directory = (path: string) => createDirectory(storage, { share: SHARE, path, metadata: [], smb: {} });
  const restBytes = async (path: string) => {
    const { bytes } = await downloadFile(storage, {
      ...{ share: SHARE, path, leaseId: undefined, range: undefined, rangeMd5: undefined },
    });
    const pieces: Buffer[] = [];
    if (Buffer.isBuffer(bytes)) return bytes;
    for await (const piece of bytes) pieces.push(Buffer.from(piece));
    return Buffer.concat(pieces);
  };
  const names = async (path: string, pattern = '*') => {
    const handle = await open(path, { rights: RIGHTS.readData });
    const found: string[] = [];
    const input = { pattern: parsePattern(pattern), after: undefined, dotsSent: 0 };
    await listThroughHandle(storage, handle, input, ({ name }) => found.push(name) > 0);
    return found;
  };
  return { ...world, open, directory, restBytes, names };
}

describe('Bytes through a handle', () => {
  it('are those of a naive file, whatever is written, cut, zeroed or read, and REST reads the same', async () => {
    const size = fc.nat(70_000);
    const step = fc.oneof(
      fc.record({ kind: fc.constant('write' as const), at: size, length: fc.nat(20_000), byte: fc.nat(255) }),
      fc.record({ kind: fc.constant('end' as const), at: size }),
      fc.record({ kind: fc.constant('allocation' as const), at: size }),
      fc.record({ kind: fc.constant('zero' as const), at: size, length: fc.nat(30_000) }),
      fc.record({ kind: fc.constant('read' as const), at: size, length: fc.nat(90_000) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const { storage, open, restBytes } = await openWorld();
        const handle = await open('f');
        let model = Buffer.alloc(0);
        const resize = (length: number) => {
          const next = Buffer.alloc(length);
          model.copy(next);
          model = next;
        };
        for (const each of steps) {
          if (each.kind === 'write') {
            await writeRange(storage, handle, { from: each.at, bytes: Buffer.alloc(each.length, each.byte), mode });
            if (each.length === 0) continue;
            resize(Math.max(model.length, each.at + each.length));
            model.fill(each.byte, each.at, each.at + each.length);
          } else if (each.kind === 'end') {
            await setEndOfFile(storage, handle, { end: each.at, mode });
            resize(each.at);
          } else if (each.kind === 'allocation') {
            await setAllocation(storage, handle, { size: each.at, mode });
            resize(Math.min(model.length, each.at));
          } else if (each.kind === 'zero') {
            await zeroRange(storage, handle, { range: { from: each.at, to: each.at + each.length }, mode });
            model.fill(0, Math.min(each.at, model.length), Math.min(each.at + each.length, model.length));
          } else {
            const read = await readRange(storage, handle, { from: each.at, to: each.at + each.length });
            expect(read.equals(model.subarray(each.at, each.at + each.length))).toBe(true);
          }
        }
        expect((await restBytes('f')).equals(model)).toBe(true);
        const { totalBytes, freeBytes } = await readShareSizes(storage, SHARE);
        expect(totalBytes - freeBytes).toBe(BigInt(model.length));
      }),
      { numRuns: 40 },
    );
  });

  it('are all there after writes that run at the same time', async () => {
    const { storage, open, restBytes } = await openWorld();
    const handle = await open('f');
    const blocks = Array.from({ length: 32 }, (_, i) => Buffer.alloc(8_192, i + 1));
    await Promise.all(blocks.map((bytes, i) => writeRange(storage, handle, { from: i * 8_192, bytes, mode })));
    expect((await restBytes('f')).equals(Buffer.concat(blocks))).toBe(true);
  });

  it('need the right to read or to write them', async () => {
    const { storage, open } = await openWorld();
    const writer = await open('f');
    await writeRange(storage, writer, { from: 0, bytes: Buffer.from('abc'), mode });
    const attributes = await open('f', { rights: RIGHTS.readAttributes });
    await expect(readRange(storage, attributes, { from: 0, to: 1 })).rejects.toMatchObject({ code: 'AccessDenied' });
    const reader = await open('f', { rights: RIGHTS.readData });
    const write = { from: 0, bytes: Buffer.from('x'), mode } as const;
    await expect(writeRange(storage, reader, write)).rejects.toMatchObject({ code: 'AccessDenied' });
    await expect(writeRange(storage, reader, { ...write, bytes: Buffer.alloc(0) })).rejects.toMatchObject({
      code: 'AccessDenied',
    });
    const appender = await open('f', { rights: RIGHTS.appendData });
    await expect(writeRange(storage, appender, write)).rejects.toMatchObject({ code: 'AccessDenied' });
    await writeRange(storage, appender, { ...write, from: 3 });
    expect(String(await readRange(storage, reader, { from: 0, to: 9 }))).toBe('abcx');
  });

  it('are refused after the handle is closed, and above the quota', async () => {
    const { storage, open, act, share } = await openWorld();
    const handle = await open('f');
    await act((tx) => tx.put(nameKey(share.account, SHARE), encodeShare({ ...share, quota: 1 })));
    const far = { from: 2 ** 30, bytes: Buffer.from('x'), mode } as const;
    await expect(writeRange(storage, handle, far)).rejects.toMatchObject({ code: 'ShareSizeLimitReached' });
    await expect(setEndOfFile(storage, handle, { end: 2 ** 30 + 1, mode })).rejects.toMatchObject({
      code: 'ShareSizeLimitReached',
    });
    await expect(setEndOfFile(storage, handle, { end: 2 ** 43, mode })).rejects.toMatchObject({
      code: 'ShareSizeLimitReached',
    });
    await closeHandle(storage, handle);
    await expect(writeRange(storage, handle, { ...far, from: 0 })).rejects.toMatchObject({ code: 'HandleClosed' });
    await expect(readRange(storage, handle, { from: 0, to: 1 })).rejects.toMatchObject({ code: 'HandleClosed' });
  });

  it('that were written are listed by sectors, if the file is marked as sparse', async () => {
    const { storage, open } = await openWorld();
    const handle = await open('f');
    await writeRange(storage, handle, { from: 1_000, bytes: Buffer.alloc(100, 1), mode });
    await writeRange(storage, handle, { from: 10_000, bytes: Buffer.alloc(10, 1), mode });
    expect((await listAllocated(storage, handle, { from: 5, to: 2 ** 40 }, 10)).ranges).toEqual([
      { from: 5, to: 10_010 },
    ]);
    await setSparse(storage, handle, true);
    const all = await listAllocated(storage, handle, { from: 0, to: 2 ** 40 }, 10);
    expect(all).toEqual({
      ranges: [
        { from: 512, to: 1_536 },
        { from: 9_728, to: 10_010 },
      ],
      isComplete: true,
    });
    expect(await listAllocated(storage, handle, { from: 0, to: 2 ** 40 }, 1)).toMatchObject({ isComplete: false });
    expect((await listAllocated(storage, handle, { from: 2_000, to: 3_000 }, 10)).ranges).toEqual([]);
  });

  it('set the times of the last write and change, or leave the former', async () => {
    const { storage, open } = await openWorld();
    const handle = await open('f');
    const before = (await viewHandle(storage, handle)).node;
    await writeRange(storage, handle, { from: 0, bytes: Buffer.from('x'), mode: 'preserve' });
    const kept = (await viewHandle(storage, handle)).node;
    expect(kept.times.lastWrite).toBe(before.times.lastWrite);
    expect(kept.times.change).toBeGreaterThan(before.times.change);
    await writeRange(storage, handle, { from: 0, bytes: Buffer.from('x'), mode });
    const { file } = await getFile(storage, { share: SHARE, path: 'f', leaseId: undefined });
    expect(file.times.lastWrite).toBeGreaterThan(kept.times.lastWrite);
    expect(file.times).toEqual((await viewHandle(storage, handle)).node.times);
  });
});

describe('Properties through a handle', () => {
  it('are the times and attributes that were set, for REST as well', async () => {
    const { storage, open } = await openWorld();
    const handle = await open('f');
    const times = { creation: 10n ** 17n * 6n, lastWrite: 10n ** 17n * 6n + 1n, change: 10n ** 17n * 6n + 2n };
    await setHandleProperties(storage, handle, { attributes: 0x22, times: { ...times, access: 10n ** 17n * 6n + 3n } });
    const { node } = await viewHandle(storage, handle);
    expect(node).toMatchObject({ attributes: 0x22, times: { ...times, access: 10n ** 17n * 6n + 3n } });
    await setHandleProperties(storage, handle, {});
    expect((await viewHandle(storage, handle)).node.times).toMatchObject({ ...times, change: expect.any(BigInt) });
    const reader = await open('f', { rights: RIGHTS.readData });
    await expect(setHandleProperties(storage, reader, {})).rejects.toMatchObject({ code: 'AccessDenied' });
    await expect(viewHandle(storage, reader, RIGHTS.readAttributes)).rejects.toMatchObject({ code: 'AccessDenied' });
  });

  it('name the path as it is now', async () => {
    const { storage, open, directory } = await openWorld();
    await directory('a');
    await directory('a/b');
    const handle = await open('A/B/c.txt');
    expect(await readHandlePath(storage, handle)).toEqual(['a', 'b', 'c.txt']);
    expect(await readHandlePath(storage, await open(''))).toEqual([]);
  });

  it('have the parts of the permission that are asked for, and take those that are sent', async () => {
    const { storage, open } = await openWorld();
    const handle = await open('f');
    const whole = await getHandlePermission(storage, handle, 0x7);
    const owner = await getHandlePermission(storage, handle, 0x1);
    expect(owner.length).toBeLessThan(whole.length);
    const dacl = await getHandlePermission(storage, await open('g'), 0x4);
    await setHandlePermission(storage, handle, 0x4, dacl);
    // The list counts as inherited automatically only if the request says that, too: byte 3 of the control bits.
    expect((await getHandlePermission(storage, handle, 0x4)).subarray(4)).toEqual(dacl.subarray(4));
    await expect(setHandlePermission(storage, handle, 0x1, dacl)).rejects.toMatchObject({
      code: 'FileInvalidPermission',
    });
    const reader = await open('f', { rights: RIGHTS.readData });
    await expect(setHandlePermission(storage, reader, 0x4, dacl)).rejects.toMatchObject({ code: 'AccessDenied' });
    await expect(getHandlePermission(storage, reader, 0x4)).rejects.toMatchObject({ code: 'AccessDenied' });
  });
});

describe('A rename through a handle', () => {
  const to = (path: string, replaces = false) => ({ path, replaces, ignoresReadOnly: false });

  it('moves the file; the handle goes on', async () => {
    const { storage, open, directory, names } = await openWorld();
    await directory('d');
    const handle = await open('f');
    await renameThroughHandle(storage, handle, to('d/G'));
    expect(await names('d')).toEqual(['.', '..', 'G']);
    expect(await readHandlePath(storage, handle)).toEqual(['d', 'G']);
    await renameThroughHandle(storage, handle, to('d/g'));
    expect(await names('d', 'g')).toEqual(['g']);
  });

  it('replaces a file only if asked to, and never one that is open, a directory, or a file that is read-only', async () => {
    const { storage, open, directory, names } = await openWorld();
    await directory('d');
    const handle = await open('f');
    const other = await open('g');
    await expect(renameThroughHandle(storage, handle, to('g'))).rejects.toMatchObject({
      code: 'ResourceAlreadyExists',
    });
    await expect(renameThroughHandle(storage, handle, to('g', true))).rejects.toMatchObject({ code: 'AccessDenied' });
    await expect(renameThroughHandle(storage, handle, to('d', true))).rejects.toMatchObject({ code: 'AccessDenied' });
    await setHandleProperties(storage, other, { attributes: 1 });
    await closeHandle(storage, other);
    await expect(renameThroughHandle(storage, handle, to('g', true))).rejects.toMatchObject({
      code: 'ReadOnlyAttribute',
    });
    await renameThroughHandle(storage, handle, { ...to('g', true), ignoresReadOnly: true });
    expect(await names('')).toEqual(['.', '..', 'd', 'g']);
  });

  it('is refused while the directory of the new name is open to be deleted', async () => {
    const { storage, open, directory } = await openWorld();
    await directory('d');
    const held = await open('d');
    const handle = await open('f');
    await expect(renameThroughHandle(storage, handle, to('d/f'))).rejects.toMatchObject({ code: 'SharingViolation' });
    await closeHandle(storage, held);
    await renameThroughHandle(storage, handle, to('d/f'));
  });

  it('is refused for a directory while something below it is open, and into itself', async () => {
    const { storage, open, directory } = await openWorld();
    await directory('d');
    const handle = await open('d');
    const below = await open('d/f');
    await expect(renameThroughHandle(storage, handle, to('e'))).rejects.toMatchObject({ code: 'AccessDenied' });
    await closeHandle(storage, below);
    await expect(renameThroughHandle(storage, handle, to('d/e'))).rejects.toMatchObject({ code: 'InvalidInput' });
    await renameThroughHandle(storage, handle, to('e'));
  });

  it('needs the right to delete; an open of attributes alone, which shares nothing, does not stand in its way', async () => {
    const { storage, open } = await openWorld();
    const handle = await open('f');
    await expect(
      renameThroughHandle(storage, await open('f', { rights: RIGHTS.readData }), to('g')),
    ).rejects.toMatchObject({ code: 'AccessDenied' });
    await closeHandle(storage, handle);
    const own = await open('f', { rights: RIGHTS.delete });
    await open('f', { rights: RIGHTS.readAttributes, shareMode: 0 });
    await renameThroughHandle(storage, own, to('g'));
  });
});

describe('A directory through a handle', () => {
  it('lists what matches, in order, with its own entries first, and goes on after any name', async () => {
    const { storage, open, names } = await openWorld();
    for (const name of ['b.txt', 'A.txt', 'c.md', 'Ä.txt']) {
      await createFile(storage, {
        ...{ share: SHARE, path: name, leaseId: undefined, length: 0, content: {}, metadata: [], smb: {} },
      });
    }
    expect(await names('')).toEqual(['.', '..', 'A.txt', 'b.txt', 'c.md', 'Ä.txt']);
    expect(await names('', '*.txt')).toEqual(['A.txt', 'b.txt', 'Ä.txt']);
    expect(await names('', 'a.TXT')).toEqual(['A.txt']);
    expect(await names('', 'x')).toEqual([]);
    const found: string[] = [];
    const input = { pattern: parsePattern('*'), after: 'A.txt', dotsSent: 2 };
    await listThroughHandle(storage, await open(''), input, ({ name }) => found.push(name) < 2);
    expect(found).toEqual(['b.txt', 'c.md']);
  });

  it('shows every entry once, however few are taken at a time', async () => {
    const { storage, open } = await openWorld();
    const expected = Array.from({ length: 600 }, (_, i) => `f${String(i).padStart(4, '0')}`);
    await Promise.all(expected.map((name) => open(name)));
    const handle = await open('');
    const seen: string[] = [];
    for (let after: string | undefined; ; after = seen.at(-1)) {
      let taken = 0;
      const input = { pattern: parsePattern('f*'), after, dotsSent: 2 };
      await listThroughHandle(storage, handle, input, ({ name }) => seen.push(name) > 0 && ++taken < 97);
      if (taken === 0) break;
    }
    expect(seen).toEqual(expected);
  });
});

describe('A copy between handles', () => {
  it('copies a range, within one file too, and nothing of a range that the source does not have', async () => {
    const { storage, open, restBytes } = await openWorld();
    const [source, target] = [await open('f'), await open('g')];
    await writeRange(storage, source, { from: 0, bytes: Buffer.from('0123456789'), mode });
    const copy = (from: number, to: number, length: number, into = target) =>
      copyRange({ storage, handle: source }, { storage, handle: into }, { from, to, length, mode });
    expect(await copy(2, 1, 4)).toBe(true);
    expect(await restBytes('g')).toEqual(Buffer.from('\x002345'));
    expect(await copy(0, 2, 5, source)).toBe(true);
    expect(String(await restBytes('f'))).toBe('0101234789');
    expect(await copy(8, 0, 3)).toBe(false);
    expect(await restBytes('g')).toEqual(Buffer.from('\x002345'));
  });

  it('shares the chunks of long ranges, each of which stays as it is when the other file changes', async () => {
    const { storage, open, restBytes } = await openWorld();
    const [source, target] = [await open('f'), await open('g')];
    const bytes = Buffer.alloc(3 << 20, 'some text ');
    for (let from = 0; from < bytes.length; from += 1 << 20)
      await writeRange(storage, source, { from, bytes: bytes.subarray(from, from + (1 << 20)), mode });
    const chunks = async () => {
      const range = keysUnder([storage.account, 'k']);
      return (await storage.partition.read((at) => at.scan(range, { limit: 100 }))).length;
    };
    const before = await chunks();
    for (let from = 0; from < bytes.length; from += 256 << 10) {
      const input = { from, to: from, length: 256 << 10, mode } as const;
      expect(await copyRange({ storage, handle: source }, { storage, handle: target }, input)).toBe(true);
    }
    expect(await chunks()).toBe(before);
    expect((await restBytes('g')).equals(bytes)).toBe(true);
    await writeRange(storage, source, { from: 0, bytes: Buffer.alloc(100_000, 'x'), mode });
    await setEndOfFile(storage, source, { end: 0, mode });
    expect((await restBytes('g')).equals(bytes)).toBe(true);
  });

  it('is that of plain bytes, whatever was written, copied and cut before', async () => {
    const place = fc.nat(300_000);
    const step = fc.record({
      kind: fc.constantFrom('write', 'copy', 'cut'),
      ...{ from: place, to: place, length: fc.integer({ min: 1, max: 100_000 }) },
      ...{ source: fc.nat(1), target: fc.nat(1), byte: fc.integer({ min: 1, max: 255 }) },
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const { storage, open, restBytes } = await openWorld();
        const handles = [await open('f'), await open('g')];
        const models = [Buffer.alloc(0), Buffer.alloc(0)];
        const put = (file: number, at: number, part: Buffer) => {
          const next = Buffer.alloc(Math.max(models[file]!.length, at + part.length));
          models[file]!.copy(next);
          part.copy(next, at);
          models[file] = next;
        };
        for (const { kind, from, to, length, source, target, byte } of steps) {
          const handle = handles[target]!;
          if (kind === 'cut') {
            await setEndOfFile(storage, handle, { end: to, mode });
            models[target] = Buffer.concat([models[target]!, Buffer.alloc(to)]).subarray(0, to);
          } else if (kind === 'write') {
            const bytes = Buffer.alloc(length, byte);
            await writeRange(storage, handle, { from: to, bytes, mode });
            put(target, to, bytes);
          } else {
            const input = { from, to, length, mode } as const;
            const isThere = from + length <= models[source]!.length;
            const isCopied = await copyRange({ storage, handle: handles[source]! }, { storage, handle }, input);
            expect(isCopied).toBe(isThere);
            if (isThere) put(target, to, Buffer.from(models[source]!.subarray(from, from + length)));
          }
        }
        for (const [file, name] of ['f', 'g'].entries())
          expect((await restBytes(name)).equals(models[file]!)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });
});
