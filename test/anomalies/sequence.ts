/** Runs test/partition/sequence.mjs, under strace if wanted, and reads the rows that it has left. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { encodeKey } from '../../src/partition/keys.ts';
import { type LmdbOptions, openLmdb } from '../../src/partition/lmdb/engine.ts';
import { openPartition } from '../../src/partition/transact.ts';

export interface Ended {
  readonly i: number;
  readonly error?: string;
  readonly isBroken?: boolean;
}

interface Options extends Partial<LmdbOptions> {
  readonly location: string;
  readonly from: number;
  readonly to: number;
  readonly strace?: readonly string[];
  /** How it ends, once it has no more to do. */
  readonly end: 'close' | 'kill';
}

const program = fileURLToPath(new URL('../partition/sequence.mjs', import.meta.url));

/** How its commits ended, in their order. */
export async function runSequence({ location, from, to, strace, end, ...options }: Options): Promise<Ended[]> {
  const words = [process.execPath, program, location, String(from), String(to), JSON.stringify(options)];
  const [file, ...rest] = strace ? ['strace', '-D', '-f', '-qq', '-yy', '-s', '128', ...strace, ...words] : words;
  const child = spawn(file!, rest, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const ended: Ended[] = [];
  child.on('message', (message: Ended | 'over') => {
    if (message !== 'over') ended.push(message);
    else if (end === 'kill') child.kill('SIGKILL');
    else child.send('close');
  });
  await once(child, 'close');
  return ended;
}

export const committed = (ended: readonly Ended[]): number[] =>
  ended.filter(({ error }) => error === undefined).map(({ i }) => i);

/** The rows that are not stored as they were written. Opened twice: recovery must be repeatable. */
export async function missingIn(location: string, rows: readonly number[]): Promise<number[]> {
  const missing: number[] = [];
  for (let life = 0; life < 2; life++) {
    const partition = openPartition(await openLmdb({ location }));
    for (const i of rows) {
      const row = await partition.read((at) => at.get(encodeKey(['row', i])));
      if (!row?.value.equals(Buffer.alloc(3_000, i))) missing.push(i);
    }
    const next = encodeKey(['next', life]);
    await partition.transact(next, async (tx) => tx.put(next, Buffer.from('x')));
    await partition.close();
  }
  return missing;
}
