import { describe, expect, it, vi } from 'vitest';
import { watchedHashers } from '../../test/support/content-store.ts';
import { silentLog } from '../base/log.ts';
import { activeEpochs } from '../content/membership/epochs.ts';
import { epochKey } from '../content/rows.ts';
import { makeMemoryFiles } from '../extents/memory.ts';
import { openSlotted } from '../extents/slotted-extents.ts';
import { encodeKey } from '../partition/keys.ts';
import { openMemory } from '../partition/memory/engine.ts';
import { Unavailable } from '../partition/partition.ts';
import { openPartition } from '../partition/transact.ts';
import { openAccounts } from '../services/accounts/accounts.ts';
import { openServerMembership, type ServerMembershipOptions } from './membership.ts';

const BYTES = Buffer.alloc(100_000, 'x');
const WANTS = { md5: false };

async function* sent(gate?: Promise<void>) {
  yield BYTES.subarray(0, 50_000);
  await gate;
  yield BYTES.subarray(50_000);
}

async function newStore() {
  const engine = openMemory();
  const partition = openPartition(engine);
  const files = makeMemoryFiles();
  const accounts = await openAccounts(partition, { developmentKeys: ['a2V5'] }, { isShared: true });
  const warnings: string[] = [];
  const log = {
    ...silentLog,
    isLevelEnabled: () => true,
    warn: (...words: unknown[]) => warnings.push(String(words.at(-1))),
  };
  const options = (isShared: boolean): ServerMembershipOptions => ({
    ...{ partition, accounts, isShared, log: log as never, hashers: watchedHashers() },
    openExtents: (epoch) => openSlotted(files, { epoch }),
    heartbeatMilliseconds: 5,
  });
  return {
    partition,
    warnings,
    options,
    living: async () => [...(await partition.read(activeEpochs))],
    async bury(epoch: bigint) {
      await partition.transact(epochKey(epoch), async (tx) => tx.remove(epochKey(epoch)));
    },
  };
}

describe('A process that shares a store', () => {
  it('has another life once it was declared dead, and its uploads of before fail', async () => {
    const store = await newStore();
    const lives = await openServerMembership(store.options(true));
    const first = lives.current();
    const [epoch] = await store.living();
    let go = () => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const upload = first.content.upload(7n, sent(gate), BYTES.length, WANTS);
    const taken = await first.content.upload(7n, sent(), BYTES.length, WANTS);
    await store.bury(epoch!);
    await vi.waitFor(() => expect(lives.current()).not.toBe(first), 5_000);
    expect(lives.current().isCurrent()).toBe(true);
    expect(first.isCurrent()).toBe(false);
    go();
    await expect(upload).rejects.toThrow(Unavailable);
    const late = store.partition.transact(encodeKey(['test']), (tx) => first.content.commitUpload(tx, 7n, taken));
    await expect(late).rejects.toThrow(Unavailable);
    expect(() => first.content.beginRead()).toThrow(Unavailable);
    const again = await lives.current().content.upload(7n, sent(), BYTES.length, WANTS);
    await store.partition.transact(encodeKey(['test']), (tx) => lives.current().content.commitUpload(tx, 7n, again));
    expect(store.warnings).toEqual([expect.stringContaining('declared this process dead')]);
    await lives.close();
    expect(await store.living()).toEqual([]);
  });

  it('tries again until it can begin anew', async () => {
    const store = await newStore();
    const lives = await openServerMembership(failing(store.options(true), (opened) => opened === 2));
    const first = lives.current();
    await store.bury((await store.living())[0]!);
    await vi.waitFor(() => expect(lives.current()).not.toBe(first), 5_000);
    expect(store.warnings).toContain('cannot begin anew');
    expect(await store.living()).toHaveLength(1);
    await lives.close();
  });

  it('ends also while it cannot begin anew', async () => {
    const store = await newStore();
    const lives = await openServerMembership(failing(store.options(true), (opened) => opened > 1));
    await store.bury((await store.living())[0]!);
    await vi.waitFor(() => expect(store.warnings).toContain('cannot begin anew'), 5_000);
    await lives.close();
    expect(await store.living()).toEqual([]);
  });

  it('ends also when the store gives no answers', async () => {
    const store = await newStore();
    const { partition, ...rest } = store.options(true);
    let isDown = false;
    const lives = await openServerMembership({
      ...rest,
      partition: {
        ...partition,
        transact: (...given) => (isDown ? Promise.reject(new Unavailable('no answer')) : partition.transact(...given)),
      },
    });
    isDown = true;
    await lives.close();
    expect(store.warnings).toContain('leaving failed');
  });

  it('says once that its beats fail, however long they do, and once that they come through again', async () => {
    const store = await newStore();
    const { partition, ...rest } = store.options(true);
    let isDown = false;
    let refused = 0;
    const lives = await openServerMembership({
      ...rest,
      partition: {
        ...partition,
        transact: (...given) =>
          isDown && ++refused ? Promise.reject(new Unavailable('no')) : partition.transact(...given),
      },
    });
    const told = ['a beat failed', 'beats come through again'];
    for (const outages of [1, 2]) {
      refused = 0;
      isDown = true;
      await vi.waitFor(() => expect(refused).toBeGreaterThan(5), 5_000);
      expect(store.warnings).toEqual([...told, ...told].slice(0, 2 * outages - 1));
      isDown = false;
      await vi.waitFor(() => expect(store.warnings).toHaveLength(2 * outages), 5_000);
    }
    expect(store.warnings).toEqual([...told, ...told]);
    await lives.close();
  });

  it('hears with its beats of accounts that others have added', async () => {
    const store = await newStore();
    const options = store.options(true);
    const lives = await openServerMembership(options);
    const other = await openAccounts(store.partition, undefined, { isShared: true });
    await other.add('mine');
    await vi.waitFor(() => expect(options.accounts.find('mine')).toBeDefined(), 5_000);
    await lives.close();
  });
});

describe('A process that owns its store', () => {
  it('declares the one before it dead, and has one life', async () => {
    const store = await newStore();
    const lives = [
      await openServerMembership(store.options(false)),
      await openServerMembership(store.options(false)),
    ] as const;
    expect(await store.living()).toHaveLength(1);
    const taken = await lives[0].current().content.upload(7n, sent(), BYTES.length, WANTS);
    const late = store.partition.transact(encodeKey(['test']), (tx) =>
      lives[0].current().content.commitUpload(tx, 7n, taken),
    );
    await expect(late).rejects.toThrow(Unavailable);
    for (const each of lives) await each.close();
    expect(store.warnings).toEqual([]);
  });
});

/** Extents cannot be opened where `fails` says so, by how often it was tried. */
function failing(options: ServerMembershipOptions, fails: (opened: number) => boolean): ServerMembershipOptions {
  let opened = 0;
  return {
    ...options,
    openExtents(...given) {
      if (fails(++opened)) throw new Error('planted');
      return options.openExtents(...given);
    },
  };
}
