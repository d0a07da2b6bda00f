import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { serve } from '../support/disposable-servers.ts';
import { newLoopDisk, noLoopDisk } from '../support/loop-disk.mjs';
import { checkFolder } from '../support/server-process.mjs';
import { crash } from './rounds.mjs';

const ROUNDS = 4;
const DISK_MEGABYTES = 2_048;
const LARGE = Buffer.alloc(1 << 20, 'large');

describe('A server whose machine loses its power', () => {
  let reason: string | undefined;
  beforeAll(async () => {
    reason = await noLoopDisk();
  });
  beforeEach(({ skip }) => skip(reason !== undefined, reason));

  it('just after the first acknowledged writes starts again, and has them', { timeout: 60_000 }, async () => {
    const disk = await newDisk();
    const server = await serve(disk.location);
    expect((await server.client.createContainer('one')).status).toBe(201);
    expect((await server.client.putBlob('one/small', Buffer.from('small'))).status).toBe(201);
    expect((await server.client.putBlob('one/large', LARGE)).status).toBe(201);
    await disk.cutPower(server);

    const { client } = await serve(disk.location);
    expect((await client.getBlob('one/small')).body.toString()).toBe('small');
    expect((await client.getBlob('one/large')).body.equals(LARGE)).toBe(true);
    expect(await checkFolder(disk.location)).toMatchObject({ code: 0 });
  });

  it('at a random moment has every acknowledged write and nothing half-written', { timeout: 180_000 }, async () => {
    const { location, cutPower } = await newDisk();
    const seed = Date.now() % 2 ** 31;
    console.log(`npm run test:crash -- --power-cuts --rounds ${ROUNDS} --seed ${seed}`);
    const { faults, rounds, acknowledged } = await crash({ location, rounds: ROUNDS, seed, end: cutPower });
    expect(faults).toEqual([]);
    expect(rounds).toBe(ROUNDS);
    expect(acknowledged).toBeGreaterThan(0);
  });
});

async function newDisk() {
  const disk = await newLoopDisk(DISK_MEGABYTES);
  onTestFinished(disk.remove);
  return disk;
}
