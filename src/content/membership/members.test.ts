import { describe, expect, it } from 'vitest';
import { openMemory } from '../../partition/memory/engine.ts';
import { type Commit, type Outcome, Unavailable } from '../../partition/partition.ts';
import { openPartition } from '../../partition/transact.ts';
import { createActiveReads } from '../gc/active-reads.ts';
import { epochKey } from '../rows.ts';
import { activeEpochs, checkEpoch } from './epochs.ts';
import { joinMembership } from './members.ts';

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
      const deaths: string[] = [];
      const failures: unknown[] = [];
      const member = await joinMembership({
        ...{ partition: own, reads, everyMilliseconds: 1 << 30 },
        onEvicted: () => deaths.push('dead'),
        onFailure: (error) => failures.push(error),
      });
      return Object.assign(member, { partition: own, deaths, failures });
    },
    living: async () => [...(await partition.read(activeEpochs))],
    silence: () => partition.clock.advance(SILENCE),
  });
}

async function beatAll(members: readonly { heartbeat(): Promise<void> }[], rounds = 1): Promise<void> {
  for (let i = 0; i < rounds; i++) for (const member of members) await member.heartbeat();
}

describe('Members of a store', () => {
  it('have epochs of their own, also where stamps are equal and an epoch is gone at once', async () => {
    const store = newStore();
    const stamp = store.partition.clock.now();
    const epochs: bigint[] = [];
    for (let i = 0; i < 5; i++) {
      const member = await store.join();
      epochs.push(member.epoch);
      if (i % 2) await member.leave();
    }
    expect(new Set(epochs).size).toBe(5);
    expect([...epochs].sort()).toEqual(epochs);
    expect(epochs[0]).toBeGreaterThanOrEqual(stamp);
    expect(await store.living()).toEqual([epochs[0], epochs[2], epochs[4]]);
  });

  it('elect the one that was there first, and the next when it is gone', async () => {
    const store = newStore();
    const members = [await store.join(), await store.join(), await store.join()];
    await beatAll(members);
    expect(members.map((member) => member.isLeader())).toEqual([true, false, false]);
    await members[0]!.leave();
    await beatAll(members.slice(1));
    expect(members.slice(1).map((member) => member.isLeader())).toEqual([true, false]);
  });

  it('are declared dead when their beats stop for 15 seconds: then their commits fail, and they hear of it', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    const commit = () => two.partition.transact(epochKey(1n), (tx) => checkEpoch(tx, two.epoch));
    await beatAll([one], 7);
    await store.silence();
    await commit();
    await beatAll([one], 3);
    expect(await store.living()).toEqual([one.epoch]);
    await expect(commit()).rejects.toThrow(Unavailable);
    expect(two.deaths).toEqual([]);
    await two.heartbeat();
    expect(two.deaths).toEqual(['dead']);
    expect([two.isEvicted(), two.isCurrent(), two.isLeader()]).toEqual([true, false, false]);
    expect(() => two.reads.begin()).toThrow(Unavailable);
    await two.heartbeat();
    expect(two.deaths).toEqual(['dead']);
    expect(await store.living()).toEqual([one.epoch]);
  });

  it('live on when the clock was moved, or the store gave no answers for long', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await beatAll([one, two], 3);
    await store.silence();
    await beatAll([one], 7);
    await beatAll([two]);
    await store.silence();
    await beatAll([one], 7);
    expect(await store.living()).toEqual([one.epoch, two.epoch]);
  });

  it('live on when they beat slowly by the count of another, but not by the clock', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await beatAll([one], 30);
    expect(await store.living()).toEqual([one.epoch, two.epoch]);
    expect(two.deaths).toEqual([]);
  });

  it('live on when they beat while they are about to be declared dead', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await beatAll([one], 9);
    await store.silence();
    let beating: Promise<void> | undefined;
    store.inject = ({ writeSets }) => {
      const writes = writeSets.flatMap((body) => body.writes);
      if (beating || !writes.some(({ kind, key }) => kind === 'remove' && key === epochKey(two.epoch)))
        return undefined;
      beating = two.heartbeat();
      return 'conflict';
    };
    await one.heartbeat();
    expect(beating).toBeDefined();
    await beating;
    await beatAll([one, two], 3);
    expect(await store.living()).toEqual([one.epoch, two.epoch]);
  });

  it('pass over beats that fail or of which nobody can say whether they happened', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    store.inject = () => 'unknown';
    await beatAll([one, two], 2);
    expect(one.failures).toHaveLength(2);
    store.inject = undefined;
    const mark = one.lowWatermark.next();
    await beatAll([one, two], 4);
    expect(one.lowWatermark.oldest()).toBeGreaterThanOrEqual(mark);
    expect(one.deaths).toEqual([]);
  });
});

describe('What members know of the reads of all', () => {
  it('passes a moment once all have beaten who had no read then', async () => {
    const store = newStore();
    const members = [await store.join(), await store.join(), await store.join()];
    const [one] = members;
    const mark = one!.lowWatermark.next();
    let hasPassed = false;
    const passing = one!.lowWatermark.whenReached(mark).then(() => {
      hasPassed = true;
    });
    await beatAll(members);
    expect(one!.lowWatermark.oldest()).toBeLessThan(mark);
    expect(hasPassed).toBe(false);
    await beatAll(members, 2);
    expect(one!.lowWatermark.oldest()).toBeGreaterThanOrEqual(mark);
    await passing;
  });

  it('waits for a read of any of them that began before, and for none that began later', async () => {
    const store = newStore();
    const members = [await store.join(), await store.join(), await store.join()];
    const [one, two, three] = members;
    await beatAll(members, 3);
    const early = two!.reads.begin();
    const mark = one!.lowWatermark.next();
    await beatAll(members, 10);
    const late = [two!.reads.begin(), three!.reads.begin()];
    expect(one!.lowWatermark.oldest()).toBeLessThan(mark);
    const later = one!.lowWatermark.next();
    early.end();
    await beatAll(members, 4);
    expect(one!.lowWatermark.oldest()).toBeGreaterThanOrEqual(mark);
    expect(one!.lowWatermark.oldest()).toBeLessThan(later);
    for (const read of late) read.end();
    await beatAll(members, 4);
    expect(one!.lowWatermark.oldest()).toBeGreaterThanOrEqual(later);
  });

  it('waits for a read that begins while the beat is on its way, which may have seen what the beat does not', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await beatAll([one, two], 3);
    const mark = one.lowWatermark.next();
    // The view of the mark is taken, and the read has begun before; only the next beat of its process can tell.
    const read: { end(): void }[] = [];
    store.inject = () => {
      if (read.length === 0) read.push(two.reads.begin());
      return undefined;
    };
    await two.heartbeat();
    store.inject = undefined;
    await one.heartbeat();
    await beatAll([two, one], 6);
    expect(one.lowWatermark.oldest()).toBeLessThan(mark);
    read[0]!.end();
    await beatAll([two, one], 4);
    expect(one.lowWatermark.oldest()).toBeGreaterThanOrEqual(mark);
  });

  it('waits for nobody who joined later, and for nobody who is dead', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await beatAll([one, two], 3);
    two.reads.begin();
    const mark = one.lowWatermark.next();
    await one.heartbeat();
    const three = await store.join();
    three.reads.begin();
    await beatAll([one, three], 10);
    expect(one.lowWatermark.oldest()).toBeLessThan(mark);
    await store.silence();
    await beatAll([one, three], 2);
    expect(one.lowWatermark.oldest()).toBeGreaterThanOrEqual(mark);
  });

  it('counts a moment from the next look on, not from one that is under way', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await beatAll([one, two], 3);
    const beating = one.heartbeat();
    await new Promise(setImmediate);
    const mark = one.lowWatermark.next();
    await beating;
    const after = one.lowWatermark.next();
    expect(mark).toBeLessThanOrEqual(after);
    const read = two.reads.begin();
    await beatAll([two, one], 6);
    const reached = one.lowWatermark.oldest();
    read.end();
    await beatAll([two, one], 4);
    expect(one.lowWatermark.oldest()).toBeGreaterThan(reached);
  });
});
