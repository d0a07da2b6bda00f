import { describe, expect, it } from 'vitest';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { ALL_RIGHTS } from '../../rules/file/access-mask.ts';
import { ALL } from '../../rules/file/share-mode.ts';
import { setHandleProperties, viewHandle } from './handle-properties.ts';
import { writeRange } from './handle-ranges.ts';
import { openNode } from './open-node.ts';
import { noteCloseAfterWrites } from './write-times.ts';

async function openFile() {
  const { storage } = await openShare();
  const { handle } = await openNode(storage, {
    ...{ share: SHARE, path: 'f', disposition: 'create', kind: 'file', rights: ALL_RIGHTS, shareMode: ALL },
    ...{ deletesOnClose: false, smb: {}, client: { session: '1', ip: '192.0.2.1:445' } },
  });
  const times = async () => (await viewHandle(storage, handle)).node.times;
  const write = async (keepsChange = false) => {
    await storage.partition.clock.advance(TICKS_PER_SECOND);
    return (await writeRange(storage, handle, { from: 0, bytes: Buffer.from('x'), mode: 'now', keepsChange }))!;
  };
  return { storage, handle, times, write };
}

describe('A write', () => {
  it('tells the time of the last write before it and its own', async () => {
    const { times, write } = await openFile();
    const before = (await times()).lastWrite;
    const change = await write();
    expect(change).toEqual({ before, stored: (await times()).lastWrite });
    expect(change.stored).toBeGreaterThanOrEqual(before + TICKS_PER_SECOND);
  });

  it('leaves the change time alone that a client has set', async () => {
    const { storage, handle, times, write } = await openFile();
    await setHandleProperties(storage, handle, { times: { change: 700_000_000_000_000_000n } });
    await write(true);
    expect(await times()).toMatchObject({ change: 700_000_000_000_000_000n });
    await write();
    expect((await times()).change).toBe((await times()).lastWrite);
  });
});

describe('The close after writes whose time did not show', () => {
  it('is the last write, and the last change unless that was set', async () => {
    const { storage, handle, times, write } = await openFile();
    const { stored } = await write();
    await storage.partition.clock.advance(TICKS_PER_SECOND);
    await noteCloseAfterWrites(storage, handle, { stored, keepsChange: true });
    const kept = await times();
    expect(kept.lastWrite).toBeGreaterThanOrEqual(stored + TICKS_PER_SECOND);
    expect(kept.change).toBe(stored);
    await noteCloseAfterWrites(storage, handle, { stored: kept.lastWrite, keepsChange: false });
    expect((await times()).change).toBe((await times()).lastWrite);
  });

  it('leaves a time alone that was set meanwhile', async () => {
    const { storage, handle, times, write } = await openFile();
    const { stored } = await write();
    await setHandleProperties(storage, handle, { times: { lastWrite: 700_000_000_000_000_000n } });
    await noteCloseAfterWrites(storage, handle, { stored, keepsChange: false });
    expect((await times()).lastWrite).toBe(700_000_000_000_000_000n);
  });
});
