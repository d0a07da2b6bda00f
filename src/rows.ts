/** Opens the rows that a configuration names: the only file that knows their engines. */
import type { Log } from './base/log.ts';
import { type Config, StartError } from './config.ts';
import { formatOf, openDataFolder, rowsIn } from './data-folder.ts';
import { CorruptionError, hasValidHeader } from './partition/lmdb/corruption.ts';
import { openLmdb } from './partition/lmdb/engine.ts';
import { readLmdb } from './partition/lmdb/read-only.ts';
import { openMemory } from './partition/memory.ts';
import type { Engine, Outcome, Partition } from './partition/partition.ts';
import { openPartition } from './partition/transact.ts';

/** For this process to write; whoever has them closes them. */
export interface OwnRows {
  readonly partition: Partition;
  close(): Promise<void>;
}

type Shared = Pick<NonNullable<Config['shared']>, 'partition'>;

/** `onLost`: another process may have taken the folder. */
export async function openRows(
  { shared, location }: { readonly shared?: Shared | undefined; readonly location?: string | undefined },
  log: Log,
  onLost: () => void,
): Promise<OwnRows> {
  if (shared) {
    const resolved = (outcome: Outcome) =>
      log.warn({ outcome }, 'a connection was lost in a commit, which was looked up');
    return rowsOn(await openShared(shared.partition, resolved));
  }
  if (location === undefined) return rowsOn(openMemory());
  const folder = openDataFolder(location, () => {
    log.error('this server no longer holds its data folder, another may have taken it: it stops');
    onLost();
  });
  if (folder.warning) log.warn(folder.warning);
  try {
    return rowsOn(await openLmdb({ location: folder.rows }), folder.release);
  } catch (error) {
    folder.release();
    if (!(error instanceof CorruptionError)) throw error;
    throw new StartError(
      `The rows in ${location} are damaged (${error.message}): restore a copy, or choose another folder by --location.`,
    );
  }
}

function rowsOn(engine: Engine, release = () => {}): OwnRows {
  const partition = openPartition(engine);
  return {
    partition,
    async close() {
      await partition.close();
      release();
    },
  };
}

/** To look at, whoever works on them meanwhile: of a folder, or of what several processes share. */
export async function readRows(where: string | Shared): Promise<Engine> {
  if (typeof where !== 'string') return openShared(where.partition);
  if (formatOf(where) === undefined) throw new StartError(`There is no data of Holdfast in ${where}.`);
  if (!hasValidHeader(rowsIn(where))) {
    throw new StartError(
      `The rows in ${where} are missing or damaged: after a power cut, start the server on it first.`,
    );
  }
  return readLmdb(rowsIn(where));
}

/** Loaded where it is wanted: most servers do without. */
async function openShared(url: string, resolved: (outcome: Outcome) => void = () => {}): Promise<Engine> {
  const { openPostgres, CannotOpen } = await import('./partition/postgres.ts');
  try {
    return await openPostgres({ url, resolved });
  } catch (error) {
    if (error instanceof CannotOpen) throw new StartError(error.message);
    throw error;
  }
}
