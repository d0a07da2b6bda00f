import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { encodeKey } from '../../src/partition/keys.ts';
import { openLmdb } from '../../src/partition/lmdb/engine.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { newFolder, noStrace } from '../support/disposable-servers.ts';
import { randomOf } from '../support/random.mjs';
import { cutPower, TRACED, unconfirmedIn } from './power-cut.ts';
import { callsOf } from './strace.ts';

const writer = fileURLToPath(new URL('../partition/killed.mjs', import.meta.url));
const IMAGES = 4;
const KILLS_MAX = 30;

interface Acknowledged {
  readonly client: number;
  readonly i: number;
}

describe('A power cut', () => {
  beforeEach(({ skip }) => skip(noStrace !== undefined, noStrace));

  // With a checkpoint for every few commits, the kill hits most often while one is written.
  it.each([
    { count: 1, checkpointBytes: 8 << 20, kills: 1 },
    { count: 60, checkpointBytes: 8 << 20, kills: 2 },
    { count: 4_000, checkpointBytes: 8 << 20, kills: 1 },
    { count: 150, checkpointBytes: 40_000, kills: 6 },
    { count: 300, checkpointBytes: 400_000, kills: 6 },
  ])(
    'after $count commits, with a checkpoint every $checkpointBytes bytes, loses none of them',
    {
      timeout: 240_000,
    },
    async ({ count, checkpointBytes, kills }) => {
      const seed = Date.now();
      const random = randomOf(seed);
      const hit = new Set<string>();
      // Whether a kill hits a checkpoint is chance: as often as it takes.
      const isEnough = (kill: number) => kill >= kills && (kills <= 2 || hit.has('data.mdb') || kill >= KILLS_MAX);
      for (let kill = 0; !isEnough(kill); kill++) {
        const folder = newFolder();
        const rows = join(folder, 'rows');
        mkdirSync(rows);
        const acknowledged = await writeUntil(
          count + random.below(count),
          rows,
          join(folder, 'trace'),
          checkpointBytes,
        );
        const unconfirmed = unconfirmedIn(callsOf(readFileSync(join(folder, 'trace'), 'utf8')), rows);
        for (const { file } of unconfirmed) hit.add(file);
        for (let image = 0; image < IMAGES; image++) {
          const cut = join(folder, 'cut');
          cpSync(rows, cut, { recursive: true });
          cutPower(cut, unconfirmed, random);
          expect({ seed, kill, faults: await faultsIn(cut, acknowledged) }).toEqual({ seed, kill, faults: [] });
          rmSync(cut, { recursive: true });
        }
      }
      if (kills > 2) expect([...hit]).toContain('data.mdb');
    },
  );
});

async function writeUntil(
  count: number,
  rows: string,
  trace: string,
  checkpointBytes: number,
): Promise<Acknowledged[]> {
  // Long enough that the lengths of all pieces are printed that LMDB writes at once.
  const strace = ['-D', '-f', '-qq', '-yy', '-s', '128', '-o', trace, '-e', `trace=${TRACED}`];
  const options = JSON.stringify({ checkpointBytes, checkpointRowsPerTransaction: 10 });
  const child = spawn('strace', [...strace, process.execPath, writer, rows, '', options], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const acknowledged: Acknowledged[] = [];
  child.on('message', (message: Acknowledged) => {
    if (acknowledged.push(message) === count) child.kill('SIGKILL');
  });
  await once(child, 'close');
  return acknowledged;
}

/** Opened twice: the second recovery must find what the first has left. */
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
