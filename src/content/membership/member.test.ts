import { describe, expect, it } from 'vitest';
import { openMemory } from '../../partition/memory/engine.ts';
import { type Commit, type Outcome, Unavailable } from '../../partition/partition.ts';
import { openPartition } from '../../partition/transact.ts';
import { createActiveReads } from '../gc/active-reads.ts';
import { epochKey } from '../rows.ts';
import { activeEpochs, checkEpoch } from './epochs.ts';
import { joinMembership } from './member.ts';

const SILENCE = 160_000_000n;

function newStore() {
  const world = { inject: undefined as ((commit: Commit) => Outcome | undefined) | undefined };
  const engine = openMemory({ inject: (commit) => world.inject?.(commit) });
  const partition = openPartition(engine);
  return Object.assign(world, {
    partition,
    async join() {
      const own = openPartition(engine);
      const reads = createActiveReads();
      const evictions: string[] = [];
      const failures: unknown[] = [];
      const member = await joinMembership({
        ...{ partition: own, reads, everyMilliseconds: 1 << 30 },
        onEvicted: () => evictions.push('evicted'),
        onFailure: (error) => failures.push(error),
      });
      return Object.assign(member, { partition: own, evictions, failures });
    },
    epochs: async () => [...(await partition.read(activeEpochs))],
    silence: () => partition.clock.advance(SILENCE),
  });
}

async function heartbeatAll(members: readonly { heartbeat(): Promise<void> }[], rounds = 1): Promise<void> {
  for (let i = 0; i < rounds; i++) for (const member of members) await member.heartbeat();
}

describe('Members of a store', () => {
  it('have epochs of their own, also where timestamps are equal and an epoch is removed at once', async () => {
    const store = newStore();
    const timestamp = store.partition.clock.now();
    const epochs: bigint[] = [];
    for (let i = 0; i < 5; i++) {
      const member = await store.join();
      epochs.push(member.epoch);
      if (i % 2) await member.leave();
    }
    expect(new Set(epochs).size).toBe(5);
    expect([...epochs].sort()).toEqual(epochs);
    expect(epochs[0]).toBeGreaterThanOrEqual(timestamp);
    expect(await store.epochs()).toEqual([epochs[0], epochs[2], epochs[4]]);
  });

  it('are led by the one that joined first, and by the next one when that leaves', async () => {
    const store = newStore();
    const members = [await store.join(), await store.join(), await store.join()];
    await heartbeatAll(members);
    expect(members.map((member) => member.isLeader())).toEqual([true, false, false]);
    await members[0]!.leave();
    await heartbeatAll(members.slice(1));
    expect(members.slice(1).map((member) => member.isLeader())).toEqual([true, false]);
  });

  it('are evicted when their heartbeats stop for 15 seconds: then their commits fail, and they notice it', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    const commit = () => two.partition.transact(epochKey(1n), (tx) => checkEpoch(tx, two.epoch));
    await heartbeatAll([one], 7);
    await store.silence();
    await commit();
    await heartbeatAll([one], 3);
    expect(await store.epochs()).toEqual([one.epoch]);
    await expect(commit()).rejects.toThrow(Unavailable);
    expect(two.evictions).toEqual([]);
    await two.heartbeat();
    expect(two.evictions).toEqual(['evicted']);
    expect([two.isEvicted(), two.isCurrent(), two.isLeader()]).toEqual([true, false, false]);
    expect(() => two.reads.begin()).toThrow(Unavailable);
    await two.heartbeat();
    expect(two.evictions).toEqual(['evicted']);
    expect(await store.epochs()).toEqual([one.epoch]);
  });

  it('stay when the clock was moved, or the store gave no answers for long', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await heartbeatAll([one, two], 3);
    await store.silence();
    await heartbeatAll([one], 7);
    await heartbeatAll([two]);
    await store.silence();
    await heartbeatAll([one], 7);
    expect(await store.epochs()).toEqual([one.epoch, two.epoch]);
  });

  it('stay when their heartbeats are slow compared with those of another, but not by the clock', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await heartbeatAll([one], 30);
    expect(await store.epochs()).toEqual([one.epoch, two.epoch]);
    expect(two.evictions).toEqual([]);
  });

  it('stay when they send a heartbeat while they are about to be evicted', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await heartbeatAll([one], 9);
    await store.silence();
    let sending: Promise<void> | undefined;
    store.inject = ({ writeSets }) => {
      const writes = writeSets.flatMap((writeSet) => writeSet.writes);
      if (sending || !writes.some(({ kind, key }) => kind === 'remove' && key === epochKey(two.epoch)))
        return undefined;
      sending = two.heartbeat();
      return 'conflict';
    };
    await one.heartbeat();
    expect(sending).toBeDefined();
    await sending;
    await heartbeatAll([one, two], 3);
    expect(await store.epochs()).toEqual([one.epoch, two.epoch]);
  });

  it('continue after heartbeats that fail or whose outcome is unknown', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    store.inject = () => 'unknown';
    await heartbeatAll([one, two], 2);
    expect(one.failures).toHaveLength(2);
    store.inject = undefined;
    const threshold = one.lowWatermark.next();
    await heartbeatAll([one, two], 4);
    expect(one.lowWatermark.oldest()).toBeGreaterThanOrEqual(threshold);
    expect(one.evictions).toEqual([]);
  });
});

describe('The low watermark of the reads of all members', () => {
  it('passes a number once all members without a read have sent heartbeats', async () => {
    const store = newStore();
    const members = [await store.join(), await store.join(), await store.join()];
    const [one] = members;
    const threshold = one!.lowWatermark.next();
    let isReached = false;
    const reaching = one!.lowWatermark.whenReached(threshold).then(() => {
      isReached = true;
    });
    await heartbeatAll(members);
    expect(one!.lowWatermark.oldest()).toBeLessThan(threshold);
    expect(isReached).toBe(false);
    await heartbeatAll(members, 2);
    expect(one!.lowWatermark.oldest()).toBeGreaterThanOrEqual(threshold);
    await reaching;
  });

  it('waits for a read of any member that began before, and for none that began later', async () => {
    const store = newStore();
    const members = [await store.join(), await store.join(), await store.join()];
    const [one, two, three] = members;
    await heartbeatAll(members, 3);
    const early = two!.reads.begin();
    const threshold = one!.lowWatermark.next();
    await heartbeatAll(members, 10);
    const late = [two!.reads.begin(), three!.reads.begin()];
    expect(one!.lowWatermark.oldest()).toBeLessThan(threshold);
    const later = one!.lowWatermark.next();
    early.end();
    await heartbeatAll(members, 4);
    expect(one!.lowWatermark.oldest()).toBeGreaterThanOrEqual(threshold);
    expect(one!.lowWatermark.oldest()).toBeLessThan(later);
    for (const read of late) read.end();
    await heartbeatAll(members, 4);
    expect(one!.lowWatermark.oldest()).toBeGreaterThanOrEqual(later);
  });

  it('waits for a read that begins during a heartbeat, as its snapshot may be older than the heartbeat', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await heartbeatAll([one, two], 3);
    const threshold = one.lowWatermark.next();
    // The read begins before the view of the threshold is taken; only the next heartbeat of its process tells.
    const read: { end(): void }[] = [];
    store.inject = () => {
      if (read.length === 0) read.push(two.reads.begin());
      return undefined;
    };
    await two.heartbeat();
    store.inject = undefined;
    await one.heartbeat();
    await heartbeatAll([two, one], 6);
    expect(one.lowWatermark.oldest()).toBeLessThan(threshold);
    read[0]!.end();
    await heartbeatAll([two, one], 4);
    expect(one.lowWatermark.oldest()).toBeGreaterThanOrEqual(threshold);
  });

  it('waits neither for members that joined later, nor for evicted ones', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await heartbeatAll([one, two], 3);
    two.reads.begin();
    const threshold = one.lowWatermark.next();
    await one.heartbeat();
    const three = await store.join();
    three.reads.begin();
    await heartbeatAll([one, three], 10);
    expect(one.lowWatermark.oldest()).toBeLessThan(threshold);
    await store.silence();
    await heartbeatAll([one, three], 2);
    expect(one.lowWatermark.oldest()).toBeGreaterThanOrEqual(threshold);
  });

  it('counts from the next view on, not from one that is under way', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await heartbeatAll([one, two], 3);
    const sending = one.heartbeat();
    await new Promise(setImmediate);
    const threshold = one.lowWatermark.next();
    await sending;
    const after = one.lowWatermark.next();
    expect(threshold).toBeLessThanOrEqual(after);
    const read = two.reads.begin();
    await heartbeatAll([two, one], 6);
    const reached = one.lowWatermark.oldest();
    read.end();
    await heartbeatAll([two, one], 4);
    expect(one.lowWatermark.oldest()).toBeGreaterThan(reached);
  });
});
