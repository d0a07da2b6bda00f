import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { constants, copyFileSync, existsSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { encodeKey } from '../../src/partition/keys.ts';
import { openLmdb } from '../../src/partition/lmdb/engine.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { newFolder, noMount } from './server.ts';

const writer = fileURLToPath(new URL('../partition/killed.mjs', import.meta.url));
const noLoop = noMount ?? loopFault();
const CUTS = 6;

interface Acknowledged {
  readonly client: number;
  readonly i: number;
}

describe('A disk that loses its power', () => {
  beforeEach(({ skip }) => skip(noLoop !== undefined, noLoop));

  it('has all that was acknowledged, on a real file system', { timeout: 180_000 }, async () => {
    const folder = newFolder();
    const image = join(folder, 'image');
    const rows = join(mountImage(image, folder, 'live'), 'rows');
    mkdirSync(rows);
    const options = JSON.stringify({ checkpointBytes: 300_000 });
    const child = fork(writer, [rows, '', options], { execArgv: [] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const acknowledged: Acknowledged[] = [];
    child.on('message', (message: Acknowledged) => acknowledged.push(message));
    const cuts: { copy: string; kept: Acknowledged[] }[] = [];
    for (let cut = 0; cut < CUTS; cut++) {
      const from = acknowledged.length;
      await expect.poll(() => acknowledged.length, { timeout: 20_000 }).toBeGreaterThan(from + 30 + 40 * cut);
      // What it wrote and did not sync is in memory only; the image has what the disk would have.
      child.kill('SIGSTOP');
      await pause(50);
      const copy = join(folder, `copy-${cut}`);
      copyFileSync(image, copy, constants.COPYFILE_FICLONE);
      cuts.push({ copy, kept: [...acknowledged] });
      child.kill('SIGCONT');
    }
    child.kill('SIGKILL');
    await once(child, 'close');
    for (const [cut, { copy, kept }] of cuts.entries()) {
      const partition = openPartition(
        await openLmdb({ location: join(mountImage(copy, folder, `cut-${cut}`), 'rows') }),
      );
      for (const { client, i } of kept) {
        const keys = ['left', 'right'].map((side) => encodeKey([side, client, i]));
        const found = await partition.read((at) => at.getMany(keys));
        expect(found.every((row) => row?.value.equals(Buffer.alloc(3_000, i)))).toBe(true);
      }
      await partition.close();
    }
  });
});

/** Mounts it, and makes a file system in it first if there is none. */
function mountImage(image: string, folder: string, name: string): string {
  if (!existsSync(image)) {
    writeFileSync(image, '');
    truncateSync(image, 256 << 20);
    expect(spawnSync('mkfs.ext4', ['-q', image]).status).toBe(0);
  }
  const place = join(folder, name);
  mkdirSync(place);
  const { status, stderr } = spawnSync('mount', ['-o', 'loop', image, place]);
  expect(`${status} ${stderr}`).toBe('0 ');
  onTestFinished(() => void spawnSync('umount', ['--lazy', place]));
  return place;
}

function loopFault(): string | undefined {
  const { status } = spawnSync('losetup', ['--find']);
  const hasTools = spawnSync('mkfs.ext4', ['-V']).status === 0;
  return status === 0 && hasTools ? undefined : 'this machine has no loop device, or no mkfs.ext4';
}
