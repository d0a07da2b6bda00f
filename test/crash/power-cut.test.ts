import { describe, expect, it, onTestFinished } from 'vitest';
import { newLoopDisk, noLoopDisk } from './loop-disk.mjs';
import { crash } from './rounds.mjs';

const ROUNDS = 4;
const DISK_MEGABYTES = 2_048;

describe('A server whose machine loses its power at a random moment', () => {
  it('has every acknowledged write and nothing half-written', { timeout: 180_000 }, async ({ skip }) => {
    const reason = await noLoopDisk();
    skip(reason !== undefined, reason);
    const disk = await newLoopDisk(DISK_MEGABYTES);
    onTestFinished(disk.remove);
    const seed = Date.now() % 2 ** 31;
    console.log(`npm run test:crash -- --power-cuts --rounds ${ROUNDS} --seed ${seed}`);
    const { faults, rounds, acknowledged } = await crash({
      location: disk.location,
      rounds: ROUNDS,
      seed,
      end: disk.cutPower,
    });
    expect(faults).toEqual([]);
    expect(rounds).toBe(ROUNDS);
    expect(acknowledged).toBeGreaterThan(0);
  });
});
