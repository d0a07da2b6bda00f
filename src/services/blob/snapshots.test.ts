import { describe, expect, it } from 'vitest';
import { ACCOUNT, CONTAINER, openWorld } from '../../../test/support/blob-storage.ts';
import type { Storage } from '../common/storage.ts';
import { deleteBlob } from './blobs.ts';
import { encodeMark, markKey, snapshotKey } from './old-rows.ts';
import { blobKey } from './rows.ts';
import { snapshotBlob } from './snapshots.ts';

const base = { container: 'box', blob: 'blob', conditions: {}, leaseId: undefined };

async function open() {
  const world = await openWorld();
  await world.putContainer();
  await world.putInline('blob');
  const { partition, store } = world;
  const storage: Storage = { partition, account: ACCOUNT, content: store, sweeper: { wake: () => {} } };
  return { world, storage, take: () => snapshotBlob(storage, { ...base, metadata: [] }) };
}

describe('The stamp of a snapshot', () => {
  it('is later than all that are deleted, and not that of another one, whatever the clocks of other processes say', async () => {
    const { world, take } = await open();
    const { snapshot: first } = await take();
    const ahead = first + 10_000_000_000n;
    await world.act((tx) => tx.put(markKey(ACCOUNT, CONTAINER, 'blob'), encodeMark({ upTo: ahead })));
    await world.act(async (tx) => {
      const row = await tx.get(snapshotKey(ACCOUNT, CONTAINER, 'blob', first));
      tx.put(snapshotKey(ACCOUNT, CONTAINER, 'blob', ahead + 1n), row!.value);
    });
    expect((await take()).snapshot).toBe(ahead + 2n);
    await world.stop();
  });

  it('is that of another server, if the snapshot is imported and nothing has that stamp', async () => {
    const { world, storage, take } = await open();
    const { snapshot: now } = await take();
    const taken = now - 10_000_000_000n;
    const imported = () => snapshotBlob(storage, { ...base, metadata: [], taken });
    expect((await imported()).snapshot).toBe(taken);
    expect((await imported()).snapshot).toBe(taken + 1n);
    await deleteBlob(storage, { ...base, snapshots: 'only' });
    expect((await imported()).snapshot).toBeGreaterThan(now);
    await world.stop();
  });

  it('is deleted with all others although it is ahead of the clock', async () => {
    const { world, storage, take } = await open();
    const { snapshot: first } = await take();
    await world.act(async (tx) => {
      const row = await tx.get(snapshotKey(ACCOUNT, CONTAINER, 'blob', first));
      tx.put(snapshotKey(ACCOUNT, CONTAINER, 'blob', first + 10_000_000_000n), row!.value);
    });
    await deleteBlob(storage, { ...base, snapshots: 'only' });
    await deleteBlob(storage, base);
    await world.sweep();
    expect((await world.kinds()).v).toBeUndefined();
    await world.stop();
  });

  it('costs one commit of a few rows to delete, however many there are', async () => {
    const { world, storage, take } = await open();
    for (let i = 0; i < 300; i++) await take();
    let rows = 0;
    const { partition } = storage;
    const counted: Storage['partition'] = {
      ...partition,
      transact: (key, fn) =>
        partition.transact(key, (tx) => {
          const count = <Name extends 'put' | 'remove'>(name: Name): (typeof tx)[Name] =>
            ((...given: [never, never]) => {
              rows++;
              tx[name](...given);
            }) as (typeof tx)[Name];
          return fn(
            new Proxy(tx, { get: (on, name) => (name === 'put' || name === 'remove' ? count(name) : bound(on, name)) }),
          );
        }),
    };
    await deleteBlob({ ...storage, partition: counted }, { ...base, snapshots: 'include' });
    expect(rows).toBeGreaterThan(0);
    expect(rows).toBeLessThanOrEqual(5);
    await world.sweep();
    expect(Object.keys(await world.kinds()).sort()).toEqual(['n', 'p']);
    await world.stop();
  });
});

describe('A snapshot that is taken between what a delete has read and its commit', () => {
  it.each(['none', 'a deleted one', 'one'])('is seen, where there was %s before', async (before) => {
    const { world, storage, take } = await open();
    let last = before === 'none' ? 1n : (await take()).snapshot;
    if (before === 'a deleted one') await deleteBlob(storage, { ...base, snapshots: 'only' });
    last += 10_000_000_000n;
    // By another process, whose transactions wait for none of this one.
    const takenElsewhere = once(() =>
      world.act(async (tx) => {
        const row = await tx.get(blobKey(ACCOUNT, CONTAINER, 'blob'));
        tx.put(snapshotKey(ACCOUNT, CONTAINER, 'blob', last), row!.value);
      }),
    );
    const { partition } = storage;
    const interrupted: Storage['partition'] = {
      ...partition,
      transact: (key, fn) =>
        partition.transact(key, async (tx) => {
          const value = await fn(tx);
          await takenElsewhere();
          return value;
        }),
    };
    const snapshots = before === 'one' ? ('include' as const) : undefined;
    const removed = deleteBlob({ ...storage, partition: interrupted }, { ...base, snapshots });
    if (snapshots === undefined) await expect(removed).rejects.toMatchObject({ code: 'SnapshotsPresent' });
    else await removed;
    await world.sweep();
    expect((await world.kinds()).v).toBe(snapshots === undefined ? 1 : undefined);
    await world.stop();
  });
});

function once(act: () => Promise<void>): () => Promise<void> {
  let isDone = false;
  return async () => {
    if (isDone) return;
    isDone = true;
    await act();
  };
}

function bound(on: object, name: string | symbol): unknown {
  const value = Reflect.get(on, name, on);
  return typeof value === 'function' ? value.bind(on) : value;
}
