import { describe, expect, it, vi } from 'vitest';
import { watchedHashers } from '../../test/support/content-store.ts';
import { silentLog } from '../base/log.ts';
import { activeEpochs } from '../content/membership/epochs.ts';
import { ownerKey } from '../content/membership/owner-rows.ts';
import { epochKey } from '../content/rows.ts';
import { makeMemoryFiles } from '../extents/memory.ts';
import { openSlotted } from '../extents/slotted-extents.ts';
import { encodeKey } from '../partition/keys.ts';
import { openMemory } from '../partition/memory/engine.ts';
import { Unavailable } from '../partition/partition.ts';
import { openPartition } from '../partition/transact.ts';
import { openAccounts } from '../services/accounts/accounts.ts';
import { openServerMembership, type ServerMembershipOptions } from './incarnations.ts';

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
    activeEpochs: async () => [...(await partition.read(activeEpochs))],
    async evict(epoch: bigint) {
      await partition.transact(epochKey(epoch), async (tx) => tx.remove(epochKey(epoch)));
    },
  };
}

describe('A process that shares a store', () => {
  it('tells those who hold volatile rows of their loss, which its heartbeats notice, and of an eviction', async () => {
    const store = await newStore();
    const membership = await openServerMembership(store.options(true));
    const lost = vi.fn();
    membership.onOwnerLost(lost);
    const { owner } = membership.current;
    const { epoch, version } = owner.claim;
    await store.partition.transact(ownerKey(epoch), async (tx) => tx.remove(ownerKey(epoch)));
    await vi.waitFor(() => expect(lost).toHaveBeenCalledTimes(1), 5_000);
    await vi.waitFor(() => expect(owner.claim.version).not.toBe(version), 5_000);
    await store.evict(epoch);
    await vi.waitFor(() => expect(lost).toHaveBeenCalledTimes(2), 5_000);
    await vi.waitFor(() => expect(membership.current.owner).not.toBe(owner), 5_000);
    const { epoch: next } = membership.current.owner.claim;
    await store.partition.transact(ownerKey(next), async (tx) => tx.remove(ownerKey(next)));
    await vi.waitFor(() => expect(lost).toHaveBeenCalledTimes(3), 5_000);
    await membership.close();
  });

  it('has a new incarnation after an eviction, and uploads of the old one fail', async () => {
    const store = await newStore();
    const membership = await openServerMembership(store.options(true));
    const first = membership.current;
    const [epoch] = await store.activeEpochs();
    let openGate = () => {};
    const gate = new Promise<void>((resolve) => {
      openGate = resolve;
    });
    const upload = first.content.upload(7n, sent(gate), BYTES.length, WANTS);
    const uploaded = await first.content.upload(7n, sent(), BYTES.length, WANTS);
    await store.evict(epoch!);
    await vi.waitFor(() => expect(membership.current).not.toBe(first), 5_000);
    expect(membership.current.isCurrent()).toBe(true);
    expect(first.isCurrent()).toBe(false);
    openGate();
    await expect(upload).rejects.toThrow(Unavailable);
    const late = store.partition.transact(encodeKey(['test']), (tx) => first.content.commitUpload(tx, 7n, uploaded));
    await expect(late).rejects.toThrow(Unavailable);
    expect(() => first.content.beginRead()).toThrow(Unavailable);
    const again = await membership.current.content.upload(7n, sent(), BYTES.length, WANTS);
    await store.partition.transact(encodeKey(['test']), (tx) => membership.current.content.commitUpload(tx, 7n, again));
    expect(store.warnings).toEqual([expect.stringContaining('declared this process dead')]);
    await membership.close();
    expect(await store.activeEpochs()).toEqual([]);
  });

  it('tries again until it can rejoin', async () => {
    const store = await newStore();
    const membership = await openServerMembership(failing(store.options(true), (call) => call === 2));
    const first = membership.current;
    await store.evict((await store.activeEpochs())[0]!);
    await vi.waitFor(() => expect(membership.current).not.toBe(first), 5_000);
    expect(store.warnings).toContain('cannot begin anew');
    expect(await store.activeEpochs()).toHaveLength(1);
    await membership.close();
  });

  it('closes even while it cannot rejoin', async () => {
    const store = await newStore();
    const membership = await openServerMembership(failing(store.options(true), (call) => call > 1));
    await store.evict((await store.activeEpochs())[0]!);
    await vi.waitFor(() => expect(store.warnings).toContain('cannot begin anew'), 5_000);
    await membership.close();
    expect(await store.activeEpochs()).toEqual([]);
  });

  it('closes even when the store gives no answers', async () => {
    const store = await newStore();
    const { partition, ...rest } = store.options(true);
    let isDown = false;
    const membership = await openServerMembership({
      ...rest,
      partition: {
        ...partition,
        transact: (...given) => (isDown ? Promise.reject(new Unavailable('no answer')) : partition.transact(...given)),
      },
    });
    isDown = true;
    await membership.close();
    expect(store.warnings).toContain('leaving failed');
  });

  it('logs one warning when heartbeats begin to fail, however long they do, and one when they succeed again', async () => {
    const store = await newStore();
    const { partition, ...rest } = store.options(true);
    let isDown = false;
    let refused = 0;
    const membership = await openServerMembership({
      ...rest,
      partition: {
        ...partition,
        transact: (...given) =>
          isDown && ++refused ? Promise.reject(new Unavailable('no')) : partition.transact(...given),
      },
    });
    const logged = ['a beat failed', 'beats come through again'];
    for (const outages of [1, 2]) {
      refused = 0;
      isDown = true;
      await vi.waitFor(() => expect(refused).toBeGreaterThan(5), 5_000);
      expect(store.warnings).toEqual([...logged, ...logged].slice(0, 2 * outages - 1));
      isDown = false;
      await vi.waitFor(() => expect(store.warnings).toHaveLength(2 * outages), 5_000);
    }
    expect(store.warnings).toEqual([...logged, ...logged]);
    await membership.close();
  });

  it('learns with its heartbeats of accounts that other processes have added', async () => {
    const store = await newStore();
    const options = store.options(true);
    const membership = await openServerMembership(options);
    const other = await openAccounts(store.partition, undefined, { isShared: true });
    await other.add('mine');
    await vi.waitFor(() => expect(options.accounts.find('mine')).toBeDefined(), 5_000);
    await membership.close();
  });
});

describe('A process that owns its store', () => {
  it('fences the process before it, and is never evicted', async () => {
    const store = await newStore();
    const memberships = [
      await openServerMembership(store.options(false)),
      await openServerMembership(store.options(false)),
    ] as const;
    expect(await store.activeEpochs()).toHaveLength(1);
    const uploaded = await memberships[0].current.content.upload(7n, sent(), BYTES.length, WANTS);
    const late = store.partition.transact(encodeKey(['test']), (tx) =>
      memberships[0].current.content.commitUpload(tx, 7n, uploaded),
    );
    await expect(late).rejects.toThrow(Unavailable);
    for (const each of memberships) await each.close();
    expect(store.warnings).toEqual([]);
  });
});

/** `openExtents` throws in the calls that `fails` names, counted from 1. */
function failing(options: ServerMembershipOptions, fails: (call: number) => boolean): ServerMembershipOptions {
  let calls = 0;
  return {
    ...options,
    openExtents(...given) {
      if (fails(++calls)) throw new Error('planted');
      return options.openExtents(...given);
    },
  };
}
