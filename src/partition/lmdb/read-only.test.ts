import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bytes, key, put } from '../conformance/harness.ts';
import { openPartition } from '../transact.ts';
import { openLmdb } from './engine.ts';
import { openFiles, readMeta } from './files.ts';
import { segmentFile } from './wal.ts';

const program = fileURLToPath(new URL('../../../test/partition/reader.mjs', import.meta.url));

interface Seen {
  readonly left: string;
  readonly right: string;
  readonly rows: number;
}

async function open(checkpointBytes: number) {
  const location = mkdtempSync(join(tmpdir(), 'holdfast-reader-'));
  const partition = openPartition(await openLmdb({ location, checkpointBytes, checkpointRowsPerTransaction: 2 }));
  onTestFinished(async () => {
    await partition.close();
    rmSync(location, { recursive: true, force: true });
  });
  return { location, partition };
}

async function startReader(location: string) {
  const child = fork(program, [location], { execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
  return { child, look: (hold = false) => ask(child, hold) };
}

async function ask(child: ChildProcess, hold: boolean): Promise<Seen> {
  child.send({ hold });
  const [seen] = (await once(child, 'message')) as [Seen];
  return seen;
}

describe('A process that only reads', () => {
  it('sees one committed state with all that was acknowledged before, also while checkpoints run', async () => {
    const { location, partition } = await open(3_000);
    await put(partition, key('row', 'first'), 1);
    const reader = await startReader(location);
    expect(await reader.look()).toMatchObject({ rows: 1 });
    let acknowledged = 0;
    let isOver = false;
    const writing = (async () => {
      for (let i = 1; !isOver; i++) {
        await partition.transact(key('anchor'), async (tx) => {
          for (const side of ['left', 'right']) tx.put(key(side), bytes(i));
          tx.put(key('row', i % 100), Buffer.alloc(500, i));
        });
        acknowledged = i;
      }
    })();
    for (let looks = 0; looks < 60; looks++) {
      const before = acknowledged;
      const { left, right, rows } = await reader.look();
      expect(right).toBe(left);
      expect(Number(left === 'undefined' ? 0 : left)).toBeGreaterThanOrEqual(before);
      expect(rows).toBeGreaterThanOrEqual(Math.min(before, 99) + 1);
    }
    isOver = true;
    await writing;
  });

  it('sees what is written after a pause', async () => {
    const { location, partition } = await open(1 << 20);
    await put(partition, key('row', 1), 1);
    // As if that had been long ago.
    for (const slot of [0, 1]) utimesSync(segmentFile(location, slot), 1_000, 1_000);
    const reader = await startReader(location);
    expect(await reader.look()).toMatchObject({ rows: 1 });
    expect(await reader.look()).toMatchObject({ rows: 1 });
    for (let i = 2; i < 20; i++) {
      await put(partition, key('row', i), i);
      expect(await reader.look()).toMatchObject({ rows: i });
    }
  });

  it('and is killed leaves no pages pinned', async () => {
    const { location, partition } = await open(2_000);
    // Opened first, here and by the checkpoint thread: opening removes stale reader slots.
    const { environment, meta } = openFiles(location);
    const readers = (): string[] => (environment as unknown as { readerList(): string }).readerList().split(/\s+/);
    await put(partition, key('row'), 'x'.repeat(3_000));
    await expect.poll(() => readMeta(meta, 'applied'), { timeout: 30_000 }).toBeGreaterThan(0n);
    const reader = await startReader(location);
    await reader.look(true);
    const pid = String(reader.child.pid);
    expect(readers()).toContain(pid);
    reader.child.kill('SIGKILL');
    await once(reader.child, 'close');
    await expect
      .poll(async () => {
        await put(partition, key('row'), 'x'.repeat(3_000));
        return readers();
      })
      .not.toContain(pid);
  });
});
