import { describe, expect, it } from 'vitest';
import { openMemory } from '../../partition/memory/engine.ts';
import { type Commit, type Outcome, Unavailable } from '../../partition/partition.ts';
import { openPartition } from '../../partition/transact.ts';
import { createReads } from '../gc/active-reads.ts';
import { epochKey } from '../rows.ts';
import { checkEpoch, livingEpochs } from './epochs.ts';
import { join } from './members.ts';

const SILENCE = 160_000_000n;

function newStore() {
  const world = { inject: undefined as ((commit: Commit) => Outcome | undefined) | undefined };
  const engine = openMemory({ inject: (commit) => world.inject?.(commit) });
  const partition = openPartition(engine);
  return Object.assign(world, {
    partition,
    async join() {
      const own = openPartition(engine);
      const reads = createReads();
      const deaths: string[] = [];
      const failures: unknown[] = [];
      const member = await join({
        ...{ partition: own, reads, everyMilliseconds: 1 << 30 },
        onDeath: () => deaths.push('dead'),
        onFailure: (error) => failures.push(error),
      });
      return Object.assign(member, { partition: own, deaths, failures });
    },
    living: async () => [...(await partition.read(livingEpochs))],
    silence: () => partition.clock.advance(SILENCE),
  });
}

async function beatAll(members: readonly { beat(): Promise<void> }[], rounds = 1): Promise<void> {
  for (let i = 0; i < rounds; i++) for (const member of members) await member.beat();
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
    expect(members.map((member) => member.isElected())).toEqual([true, false, false]);
    await members[0]!.leave();
    await beatAll(members.slice(1));
    expect(members.slice(1).map((member) => member.isElected())).toEqual([true, false]);
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
    await two.beat();
    expect(two.deaths).toEqual(['dead']);
    expect([two.isDead(), two.isCurrent(), two.isElected()]).toEqual([true, false, false]);
    expect(() => two.reads.begin()).toThrow(Unavailable);
    await two.beat();
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
    store.inject = ({ bodies }) => {
      const writes = bodies.flatMap((body) => body.writes);
      if (beating || !writes.some(({ kind, key }) => kind === 'remove' && key === epochKey(two.epoch)))
        return undefined;
      beating = two.beat();
      return 'conflict';
    };
    await one.beat();
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
    const mark = one.horizon.next();
    await beatAll([one, two], 4);
    expect(one.horizon.oldest()).toBeGreaterThanOrEqual(mark);
    expect(one.deaths).toEqual([]);
  });
});

describe('What members know of the reads of all', () => {
  it('passes a moment once all have beaten who had no read then', async () => {
    const store = newStore();
    const members = [await store.join(), await store.join(), await store.join()];
    const [one] = members;
    const mark = one!.horizon.next();
    let hasPassed = false;
    const passing = one!.horizon.ended(mark).then(() => {
      hasPassed = true;
    });
    await beatAll(members);
    expect(one!.horizon.oldest()).toBeLessThan(mark);
    expect(hasPassed).toBe(false);
    await beatAll(members, 2);
    expect(one!.horizon.oldest()).toBeGreaterThanOrEqual(mark);
    await passing;
  });

  it('waits for a read of any of them that began before, and for none that began later', async () => {
    const store = newStore();
    const members = [await store.join(), await store.join(), await store.join()];
    const [one, two, three] = members;
    await beatAll(members, 3);
    const early = two!.reads.begin();
    const mark = one!.horizon.next();
    await beatAll(members, 10);
    const late = [two!.reads.begin(), three!.reads.begin()];
    expect(one!.horizon.oldest()).toBeLessThan(mark);
    const later = one!.horizon.next();
    early.end();
    await beatAll(members, 4);
    expect(one!.horizon.oldest()).toBeGreaterThanOrEqual(mark);
    expect(one!.horizon.oldest()).toBeLessThan(later);
    for (const read of late) read.end();
    await beatAll(members, 4);
    expect(one!.horizon.oldest()).toBeGreaterThanOrEqual(later);
  });

  it('waits for a read that begins while the beat is on its way, which may have seen what the beat does not', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await beatAll([one, two], 3);
    const mark = one.horizon.next();
    // The view of the mark is taken, and the read has begun before; only the next beat of its process can tell.
    const read: { end(): void }[] = [];
    store.inject = () => {
      if (read.length === 0) read.push(two.reads.begin());
      return undefined;
    };
    await two.beat();
    store.inject = undefined;
    await one.beat();
    await beatAll([two, one], 6);
    expect(one.horizon.oldest()).toBeLessThan(mark);
    read[0]!.end();
    await beatAll([two, one], 4);
    expect(one.horizon.oldest()).toBeGreaterThanOrEqual(mark);
  });

  it('waits for nobody who joined later, and for nobody who is dead', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await beatAll([one, two], 3);
    two.reads.begin();
    const mark = one.horizon.next();
    await one.beat();
    const three = await store.join();
    three.reads.begin();
    await beatAll([one, three], 10);
    expect(one.horizon.oldest()).toBeLessThan(mark);
    await store.silence();
    await beatAll([one, three], 2);
    expect(one.horizon.oldest()).toBeGreaterThanOrEqual(mark);
  });

  it('counts a moment from the next look on, not from one that is under way', async () => {
    const store = newStore();
    const [one, two] = [await store.join(), await store.join()];
    await beatAll([one, two], 3);
    const beating = one.beat();
    await new Promise(setImmediate);
    const mark = one.horizon.next();
    await beating;
    const after = one.horizon.next();
    expect(mark).toBeLessThanOrEqual(after);
    const read = two.reads.begin();
    await beatAll([two, one], 6);
    const reached = one.horizon.oldest();
    read.end();
    await beatAll([two, one], 4);
    expect(one.horizon.oldest()).toBeGreaterThan(reached);
  });
});
