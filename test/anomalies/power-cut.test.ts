import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { encodeKey } from '../../src/partition/keys.ts';
import { openLmdb } from '../../src/partition/lmdb/engine.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { randomOf } from '../crash/random.mjs';
import { cutPower, unconfirmedIn } from './power-cut.ts';
import { newFolder, noStrace } from './server.ts';
import { callsOf } from './trace.ts';

const writer = fileURLToPath(new URL('../partition/killed.mjs', import.meta.url));
const CALLS = 'pwrite64,pwritev,pwritev2,write,writev,lseek,fdatasync,fsync';
const IMAGES = 4;

interface Acknowledged {
  readonly client: number;
  readonly i: number;
}

describe('A power cut', () => {
  beforeEach(({ skip }) => skip(noStrace !== undefined, noStrace));

  // The last of them lie behind several bases, in files that are used for the second time.
  it.each([1, 60, 1_500, 4_000])(
    'after %i commits loses none of them, whatever the disk had not confirmed',
    async (count) => {
      const folder = newFolder();
      const rows = join(folder, 'rows');
      mkdirSync(rows);
      const acknowledged = await writeUntil(count, rows, join(folder, 'trace'));
      const unconfirmed = unconfirmedIn(callsOf(readFileSync(join(folder, 'trace'), 'utf8')), rows);
      expect(unconfirmed.filter(({ file }) => file === 'data.mdb').length).toBeGreaterThan(0);

      const seed = Date.now();
      const random = randomOf(seed);
      for (let image = 0; image < IMAGES; image++) {
        const cut = join(folder, 'cut');
        cpSync(rows, cut, { recursive: true });
        cutPower(cut, unconfirmed, random);
        expect({ seed, image, faults: await faultsIn(cut, acknowledged) }).toEqual({ seed, image, faults: [] });
        rmSync(cut, { recursive: true });
      }
    },
    120_000,
  );
});

async function writeUntil(count: number, rows: string, trace: string): Promise<Acknowledged[]> {
  const strace = ['-D', '-f', '-qq', '-yy', '-s', '0', '-o', trace, '-e', `trace=${CALLS}`];
  const child = spawn('strace', [...strace, process.execPath, writer, rows], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const acknowledged: Acknowledged[] = [];
  child.on('message', (message: Acknowledged) => {
    if (acknowledged.push(message) === count) child.kill('SIGKILL');
  });
  await once(child, 'close');
  return acknowledged;
}

/** Opened twice: what the first has made of it must be what the second finds. */
async function faultsIn(rows: string, acknowledged: readonly Acknowledged[]): Promise<string[]> {
  const faults: string[] = [];
  for (const life of ['first', 'second']) {
    const partition = openPartition(await openLmdb({ location: rows }));
    for (const { client, i } of acknowledged) {
      const found = await partition.read((at) =>
        at.getMany(['left', 'right'].map((side) => encodeKey([side, client, i]))),
      );
      const isWhole = found.every(
        (row) => row?.value.equals(Buffer.alloc(3_000, i)) && row.version === found[0]!.version,
      );
      if (!isWhole) faults.push(`${life} life: commit ${i} of client ${client}`);
    }
    await partition.transact(encodeKey(['next']), async (tx) => tx.put(encodeKey(['next', life]), Buffer.from('x')));
    await partition.close();
  }
  return faults;
}
