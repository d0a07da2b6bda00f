import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { newFolder, noStrace } from '../support/disposable-servers.ts';
import { randomOf } from '../support/random.mjs';
import { cutPower, TRACED, unconfirmedIn } from './power-cut.ts';
import { committed, missingIn, runSequence } from './sequence.ts';
import { callsOf } from './strace.ts';

const IMAGES = 4;
const traceTo = (file: string): string[] => ['-o', file, '-e', `trace=${TRACED}`];

/** The kernel marks pages clean whose sync has failed, and still returns them: only another write brings them to the disk. */
describe('After a failed sync', () => {
  beforeEach(({ skip }) => skip(noStrace !== undefined, noStrace));

  it.each(['close', 'kill'] as const)(
    'of the log nothing is called durable, then a %s, a start and a power cut',
    {
      timeout: 60_000,
    },
    async (end) => {
      const { folder, rows } = newRows();
      const traces = [join(folder, 'first'), join(folder, 'second')];
      // strace counts the calls of each thread: fewer than this many are those of the start.
      const inject = ['-e', 'inject=fdatasync:error=EIO:when=6'];
      const strace = [...traceTo(traces[0]!), ...inject];
      const first = await runSequence({ location: rows, from: 0, to: 1_000, strace, end });
      expect(first.at(-2)).toMatchObject({ error: 'OutcomeUnknown', isBroken: true });
      expect(first.at(-1)).toMatchObject({ error: 'Unavailable', isBroken: true });
      expect(committed(first).length).toBe(first.length - 2);

      const second = await runSequence({
        location: rows,
        from: 1_000,
        to: 1_005,
        strace: traceTo(traces[1]!),
        end: 'kill',
      });
      const kept = [...committed(first), ...committed(second)];
      expect(committed(second)).toHaveLength(5);
      await expectKept(folder, rows, traces, kept);
    },
  );

  it.each(['close', 'kill'] as const)(
    'of a checkpoint its segment stays, then a %s, a start and a power cut',
    {
      timeout: 60_000,
    },
    async (end) => {
      const { folder, rows } = newRows();
      const checkpoints = { checkpointBytes: 20_000, checkpointRowsPerTransaction: 2 };
      const before = await runSequence({ location: rows, from: 0, to: 1, end: 'close' });
      const trace = join(folder, 'first');
      const inject = ['-P', join(rows, 'data.mdb'), '-e', 'inject=fdatasync:error=EIO:when=2'];
      const strace = [...traceTo(trace), ...inject];
      const first = await runSequence({ location: rows, from: 1, to: 1_000, strace, end, ...checkpoints });
      expect(first.at(-1)).toMatchObject({ error: 'Unavailable', isBroken: true });
      expect(first.map(({ error }) => error)).not.toContain('OutcomeUnknown');
      await expectKept(folder, rows, [trace], [...committed(before), ...committed(first)]);
    },
  );
});

describe('A kill at any write or sync of the store', () => {
  beforeEach(({ skip }) => skip(noStrace !== undefined, noStrace));

  it('loses nothing, whether the segment is ended, applied, switched from or written over', {
    timeout: 240_000,
  }, async () => {
    const seed = Date.now();
    const random = randomOf(seed);
    let kills = 0;
    for (const file of ['data.mdb', 'wal-0', 'wal-1']) {
      for (const call of file === 'data.mdb' ? ['writev', 'fdatasync', 'pwrite64'] : ['pwrite64', 'fdatasync']) {
        for (let time = 0; time < 3; time++) {
          const { rows } = newRows();
          const first = await runSequence({ location: rows, from: 0, to: 2, end: 'kill' });
          const when = 2 + random.below(8);
          const inject = `inject=${call}:signal=SIGKILL:when=${when}`;
          const strace = ['-o', '/dev/null', '-P', join(rows, file), '-e', `trace=${call}`, '-e', inject];
          const options = {
            location: rows,
            checkpointBytes: 20_000,
            checkpointRowsPerTransaction: 2,
            end: 'close',
          } as const;
          const second = await runSequence({ ...options, from: 2, to: 300, strace });
          if (second.length < 298) kills++;
          const kept = [...committed(first), ...committed(second)];
          expect({ seed, file, call, when, missing: await missingIn(rows, kept) }).toMatchObject({ missing: [] });
        }
      }
    }
    expect(kills).toBeGreaterThan(7);
  });
});

function newRows(): { folder: string; rows: string } {
  const folder = newFolder();
  const rows = join(folder, 'rows');
  mkdirSync(rows);
  return { folder, rows };
}

/** As it is, and as power cuts leave it. */
async function expectKept(folder: string, rows: string, traces: readonly string[], kept: number[]): Promise<void> {
  const calls = callsOf(traces.map((trace) => readFileSync(trace, 'utf8')).join('\n'));
  const unconfirmed = unconfirmedIn(calls, rows);
  const seed = Date.now();
  const random = randomOf(seed);
  for (let image = 0; image <= IMAGES; image++) {
    const cut = join(folder, 'cut');
    cpSync(rows, cut, { recursive: true });
    if (image > 0) cutPower(cut, unconfirmed, random);
    expect({ seed, image, missing: await missingIn(cut, kept) }).toEqual({ seed, image, missing: [] });
    rmSync(cut, { recursive: true });
  }
}
