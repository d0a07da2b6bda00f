import { describe, expect, it } from 'vitest';
import { encodeKey } from '../../partition/keys.ts';
import { openMemory } from '../../partition/memory/engine.ts';
import { Unavailable } from '../../partition/partition.ts';
import { openPartition } from '../../partition/transact.ts';
import { epochsIn } from '../rows.ts';
import { checkEpoch, takeOverEpoch } from './epochs.ts';

describe('An epoch', () => {
  it('is never given twice, and evicts those before it', async () => {
    const partition = openPartition(openMemory());
    const epochs = [];
    for (let i = 0; i < 5; i++) epochs.push(await takeOverEpoch(partition));
    expect(new Set(epochs).size).toBe(5);
    expect(await partition.read((at) => at.scan(epochsIn(), { limit: 10 }))).toHaveLength(1);
    const check = (epoch: bigint) => partition.transact(encodeKey(['x']), (tx) => checkEpoch(tx, epoch));
    for (const epoch of epochs.slice(0, -1)) await expect(check(epoch)).rejects.toThrow(Unavailable);
    await check(epochs.at(-1)!);
  });

  it('fails a commit whose epoch was removed after its transaction function had checked it', async () => {
    const partition = openPartition(openMemory());
    const epoch = await takeOverEpoch(partition);
    let runs = 0;
    const late = partition.transact(encodeKey(['x']), async (tx) => {
      await checkEpoch(tx, epoch);
      if (runs++ === 0) await takeOverEpoch(partition);
      tx.put(encodeKey(['x']), Buffer.from('late'));
    });
    await expect(late).rejects.toThrow(Unavailable);
    expect(await partition.read((at) => at.get(encodeKey(['x'])))).toBeUndefined();
  });
});
