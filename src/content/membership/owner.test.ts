import { describe, expect, it } from 'vitest';
import { encodeKey, prefixEnd, volatileKey } from '../../partition/keys.ts';
import { openMemory } from '../../partition/memory/engine.ts';
import { type Partition, Unavailable } from '../../partition/partition.ts';
import { openPartition } from '../../partition/transact.ts';
import { addEpoch, removeEpoch } from './epochs.ts';
import { Owner } from './owner.ts';
import {
  activeOwners,
  checkOwner,
  forgetOrphaned,
  type OwnerClaim,
  OwnerLost,
  orphanedOwners,
  ownerExists,
} from './owner-rows.ts';

const HELD = volatileKey(['held']);
const VOLATILE = { from: volatileKey([]), to: prefixEnd(volatileKey([])) };

async function newOwner(partition: Partition) {
  const epoch = await addEpoch(partition, () => Buffer.from('heartbeat'));
  const owner = await Owner.claim(partition, epoch);
  const lost: OwnerClaim[] = [];
  owner.onLost((claim) => lost.push(claim));
  return { owner, epoch, lost };
}

const writeUnder = (partition: Partition, claim: OwnerClaim) =>
  partition.transact(HELD, async (tx) => {
    await checkOwner(tx, claim);
    tx.put(HELD, Buffer.from('held'));
  });

/** As a crash of PostgreSQL does. */
const loseVolatileRows = (partition: Partition) =>
  partition.transact(HELD, async (tx) => {
    for (const { key } of await tx.scan(VOLATILE, { limit: 100 })) tx.remove(key);
  });

describe('The owner of volatile rows', () => {
  it('finds its row in every commit that rests on them', async () => {
    const partition = openPartition(openMemory());
    const { owner, epoch } = await newOwner(partition);
    await writeUnder(partition, owner.claim);
    expect(await partition.read((at) => ownerExists(at, epoch))).toBe(true);
    expect([...(await partition.read(activeOwners))]).toEqual([epoch]);
  });

  it('fails to commit once the store has lost the rows, also if they were there when the transaction began', async () => {
    const partition = openPartition(openMemory());
    const { owner } = await newOwner(partition);
    const { claim } = owner;
    let runs = 0;
    const late = partition.transact(encodeKey(['x']), async (tx) => {
      await checkOwner(tx, claim);
      if (runs++ === 0) await loseVolatileRows(partition);
      tx.put(encodeKey(['x']), Buffer.from('late'));
    });
    await expect(late).rejects.toThrow(OwnerLost);
    await expect(writeUnder(partition, claim)).rejects.toThrow(Unavailable);
    expect(await partition.read((at) => at.get(encodeKey(['x'])))).toBeUndefined();
  });

  it('drops what it held before it claims itself again, and revives nothing that rests on the claim before', async () => {
    const partition = openPartition(openMemory());
    const { owner, lost } = await newOwner(partition);
    const { claim } = owner;
    await loseVolatileRows(partition);
    const losing = owner.lose(claim);
    expect(lost).toEqual([claim]);
    expect(() => owner.claim).toThrow(OwnerLost);
    await Promise.all([losing, owner.lose(claim)]);
    await expect(writeUnder(partition, claim)).rejects.toThrow(OwnerLost);
    await writeUnder(partition, owner.claim);
    await owner.lose(claim);
    expect(lost).toHaveLength(1);
  });

  it('notices a loss by itself, and claims itself once the store answers again', async () => {
    let isAway = false;
    const engine = openMemory({
      inject() {
        if (isAway) throw new Unavailable('away');
        return undefined;
      },
    });
    const partition = openPartition(engine);
    const { owner, lost } = await newOwner(partition);
    await owner.verify();
    expect(lost).toEqual([]);
    await loseVolatileRows(partition);
    isAway = true;
    await expect(owner.verify()).rejects.toThrow('away');
    await expect(owner.verify()).rejects.toThrow('away');
    expect(lost).toHaveLength(1);
    isAway = false;
    await owner.verify();
    await writeUnder(partition, owner.claim);
    expect(lost).toHaveLength(1);
  });

  it('is gone with its epoch, and is remembered until what it held was removed', async () => {
    const partition = openPartition(openMemory());
    const { owner, epoch, lost } = await newOwner(partition);
    const { claim } = owner;
    await partition.transact(HELD, async (tx) => removeEpoch(tx, epoch));
    expect(await partition.read((at) => ownerExists(at, epoch))).toBe(false);
    expect(await partition.read(orphanedOwners)).toEqual([epoch]);
    await expect(writeUnder(partition, claim)).rejects.toThrow(OwnerLost);
    await expect(owner.verify()).rejects.toThrow('Another process has taken over');
    await partition.transact(HELD, async (tx) => forgetOrphaned(tx, epoch));
    expect(await partition.read(orphanedOwners)).toEqual([]);
    owner.end();
    await owner.verify();
    expect(lost).toEqual([claim]);
  });
});
