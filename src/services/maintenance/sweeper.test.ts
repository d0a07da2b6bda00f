import { describe, expect, it } from 'vitest';
import { ACCOUNT, CONTAINER, openWorld } from '../../../test/support/blob-storage.ts';
import { startCollector } from '../../content/gc/collector.ts';
import { chunkKey, deletionKey, deletionsIn, formatId } from '../../content/rows.ts';
import { makeMemoryFiles } from '../../extents/memory.ts';
import { openSlotted } from '../../extents/slotted-extents.ts';
import { decodeKey, keysUnder } from '../../partition/keys.ts';
import { encodeValue } from '../../partition/values.ts';
import {
  encodeUncommitted,
  expiryKey,
  scheduleContainerDeletion,
  uncommittedExpiry,
  uncommittedKey,
} from '../blob/rows.ts';
import { encodeDeletion } from '../common/deletions.ts';

const DAY = 24n * 3600n * 10_000_000n;

describe('The sweeper', () => {
  it('removes everything in a deleted container: contents, inline contents and uncommitted blocks', async () => {
    const world = await openWorld();
    for (let i = 0; i < 130; i++) await world.putBlob(`large-${i}`, 2_000);
    for (let i = 0; i < 130; i++) await world.putInline(`small-${i}`);
    for (const blob of ['large-1', 'new']) await world.putUncommitted(blob, 150);
    await world.act((tx) => scheduleContainerDeletion(tx, ACCOUNT, CONTAINER, 'deleted'));
    expect(await world.kinds()).toMatchObject({ b: 260, c: 130, y: 300 });
    await world.sweep();
    expect(await world.kinds()).toEqual({});
    await world.stop();
  });

  it('leaves a content that another blob shares', async () => {
    const world = await openWorld();
    const id = await world.putBlob('one', 5_000);
    await world.act(async (tx) => {
      await world.store.increfContent(tx, ACCOUNT, id);
      scheduleContainerDeletion(tx, ACCOUNT, CONTAINER, 'deleted');
    });
    await world.sweep();
    expect(await world.kinds()).toEqual({ c: 1, m: 1, k: 1, l: 1 });
    await world.stop();
  });

  it('waits with a content for the reads that may have found it, and keeps nothing else waiting', async () => {
    const world = await openWorld();
    const id = await world.putBlob('one', 5_000);
    const read = world.store.beginRead();
    await world.partition.read((at) => read.plan(at, ACCOUNT, id, 0, 5_000));
    await world.act((tx) => world.store.decrefContent(tx, ACCOUNT, id));
    await world.sweep();
    const uncommittedId = await world.putUncommitted('other', 3);
    await world.act((tx) => tx.remove(uncommittedKey(ACCOUNT, CONTAINER, 'other')));
    await world.act((tx) =>
      tx.put(
        deletionKey(ACCOUNT, tx.timestamp, formatId(uncommittedId)),
        encodeDeletion({ kind: 'stage', stage: formatId(uncommittedId) }),
      ),
    );
    await world.sweep();
    expect(await world.kinds()).toMatchObject({ x: 1, m: 1, k: 1 });
    expect((await world.kinds()).y).toBeUndefined();
    let bytes = 0;
    for await (const buffer of read.stream()) bytes += buffer.length;
    expect(bytes).toBe(5_000);
    await new Promise(setImmediate);
    await world.sweeper.idle();
    expect((await world.kinds()).m).toBeUndefined();
    await world.stop();
  });

  it('leaves a pending content alone until it is abandoned or its process is gone', async () => {
    const world = await openWorld();
    const [own, foreign] = [world.store.newId(), { epoch: 1n, number: 1n }];
    const pendingKey = await world.act((tx) => world.store.beginPending(tx, ACCOUNT, own));
    await world.act(async (tx) => {
      const pending = { kind: 'content', content: formatId(foreign), pending: true } as const;
      tx.put(deletionKey(ACCOUNT, tx.timestamp, formatId(foreign)), encodeDeletion(pending));
    });
    await world.sweep();
    const left = await world.partition.read((at) => at.scan(deletionsIn(ACCOUNT), { limit: 10 }));
    expect(left.map(({ key }) => key)).toEqual([pendingKey]);
    await world.act((tx) => world.store.abandonPending(tx, own, pendingKey));
    await world.sweep();
    expect(await world.kinds()).toEqual({});
    await world.stop();
  });

  it('deletes uncommitted blocks seven days after the last Put Block', async () => {
    const world = await openWorld();
    const id = await world.putUncommitted('blob', 3);
    await world.partition.clock.advance(6n * DAY);
    const touched = await world.act(async (tx) => {
      const stored = { ...world.newUncommitted(id, tx.now, 3), due: world.expiries.get('blob')! };
      tx.put(uncommittedKey(ACCOUNT, CONTAINER, 'blob'), encodeUncommitted(stored));
      return tx.now;
    });
    await world.partition.clock.advance(2n * DAY);
    await world.sweep();
    expect(await world.kinds()).toMatchObject({ u: 1, y: 3, w: 1 });
    const expiries = await world.partition.read((at) => at.scan(keysUnder([ACCOUNT, 'w']), { limit: 10 }));
    expect(expiries.map(({ key }) => decodeKey(key)[2])).toEqual([uncommittedExpiry(touched)]);
    await world.partition.clock.advance(5n * DAY);
    await world.sweep();
    expect(await world.kinds()).toEqual({});
    await world.stop();
  });

  it('drops an entry of the expiry index whose uncommitted blocks are gone or replaced', async () => {
    const world = await openWorld();
    await world.putUncommitted('blob', 1);
    await world.act(async (tx) => {
      tx.put(expiryKey(ACCOUNT, 5n, CONTAINER, 'blob'), encodeValue({}));
      tx.put(expiryKey(ACCOUNT, 5n, CONTAINER, 'gone'), encodeValue({}));
    });
    await world.sweep();
    expect(await world.kinds()).toMatchObject({ u: 1, w: 1, y: 1 });
    await world.stop();
  });

  it('goes on with the others when one thing cannot be swept, and says so', async () => {
    const world = await openWorld();
    const [broken, sound] = [await world.putBlob('one', 100), await world.putBlob('two', 100)];
    await world.act(async (tx) => {
      for (const id of [broken, sound]) await world.store.decrefContent(tx, ACCOUNT, id);
      const { segments } = await world.store.segmentsFrom(tx, ACCOUNT, broken, 0);
      tx.remove(chunkKey(ACCOUNT, segments[0]!.chunkRefs[0]!.chunk));
    });
    await world.act((tx) => tx.put(deletionKey(ACCOUNT, 1n, 'of another version'), Buffer.from([99])));
    await world.sweep();
    expect(world.failures).toEqual([expect.stringContaining('format 99'), expect.stringContaining('has no row')]);
    expect(await world.kinds()).toMatchObject({ x: 2, m: 1 });
    await world.stop();
  });

  it('goes on after a kill where it was', async () => {
    const world = await openWorld();
    for (let i = 0; i < 300; i++) await world.putInline(`blob-${i}`);
    await world.act((tx) => scheduleContainerDeletion(tx, ACCOUNT, CONTAINER, 'deleted'));
    world.sweeper.wake();
    await world.sweeper.stop();
    const next = await world.restart();
    next.wake();
    await next.idle();
    expect(await world.kinds()).toEqual({});
    await next.stop();
  });

  it('leaves the counters with which the collector reclaims all bytes', async () => {
    const files = makeMemoryFiles();
    const world = await openWorld((epoch) => openSlotted(files, { epoch, extentBytesMax: 1 << 20 }));
    for (let i = 0; i < 40; i++) await world.putBlob(`blob-${i}`, 200_000);
    await world.act((tx) => scheduleContainerDeletion(tx, ACCOUNT, CONTAINER, 'deleted'));
    await world.sweep();
    const collector = startCollector({
      ...world,
      lowWatermark: world.reads,
      pinnedExtents: world.store.pinnedExtents,
      bounds: { slackBytes: 0, sealBytesMin: 1 },
    });
    collector.wake();
    await collector.idle();
    expect(await files.list()).toEqual([]);
    await collector.stop();
    await world.stop();
  });
});
