/** Opens the storage engine that a configuration names (LMDB, memory, PostgreSQL): the only file that knows the engines. */
import { endProcess } from '../base/end-process.ts';
import type { Log } from '../base/log.ts';
import { TICKS_PER_SECOND } from '../base/time.ts';
import { dateOf, wallClock } from '../partition/clock.ts';
import { CorruptionError, hasValidHeader } from '../partition/lmdb/corruption.ts';
import { openLmdb } from '../partition/lmdb/engine.ts';
import { openLmdbReadOnly } from '../partition/lmdb/read-only.ts';
import { openMemory } from '../partition/memory/engine.ts';
import { type Engine, type Instant, type Outcome, type Partition, Unavailable } from '../partition/partition.ts';
import { openPartition } from '../partition/transact.ts';
import { type Config, StartError } from './config.ts';
import { openDataDirectory, readSupportedFormat, rowsPath } from './data-directory.ts';

/** A partition that this process writes and has to close. */
export interface OwnedPartition {
  readonly partition: Partition;
  /** The date that clients see: the time of the store minus the lead that `clock --set-back` left. */
  date(): Instant;
  close(): Promise<void>;
}

const DAY_TICKS = 86_400n * TICKS_PER_SECOND;

type SharedPartition = Pick<NonNullable<Config['shared']>, 'partition'>;

export async function openOwnedPartition(
  { shared, location }: { readonly shared?: SharedPartition | undefined; readonly location?: string | undefined },
  log: Log,
): Promise<OwnedPartition> {
  if (shared) {
    const resolved = (outcome: Outcome) =>
      log.warn({ outcome }, 'a connection was lost in a commit, which was looked up');
    return ownedPartitionOn(await openPostgresEngine(shared.partition, resolved));
  }
  if (location === undefined) return ownedPartitionOn(openMemory());
  const folder = openDataDirectory(location, () => {
    log.error(
      'the lock of the data folder is gone, and another process may have taken the folder: this one ends at once',
    );
    // A clean close would write into a folder that may belong to another process now.
    endProcess();
  });
  for (const warning of folder.warnings) log.warn(warning);
  try {
    const engine = await openLmdb({
      location: folder.rows,
      wall: wallClock(folder.lead),
      beforeWrite: folder.checkLock,
    });
    const { close, ...rows } = ownedPartitionOn(engine, folder.lead);
    const ahead = rows.date() - wallClock()();
    if (ahead > DAY_TICKS)
      log.warn(`the time of the data is ${ahead / DAY_TICKS} days ahead of this machine's clock: see holdfast clock`);
    return { ...rows, close: () => close().finally(folder.release) };
  } catch (error) {
    folder.release();
    throw asStartError(error, location);
  }
}

function asStartError(error: unknown, location: string): unknown {
  if (error instanceof Unavailable) return new StartError(error.message);
  if (!(error instanceof CorruptionError)) return error;
  return new StartError(
    `The rows in ${location} are damaged (${error.message}): restore a copy, or choose another folder by --location.`,
  );
}

function ownedPartitionOn(engine: Engine, lead = 0n): OwnedPartition {
  const partition = openPartition(engine);
  return { partition, date: dateOf(partition.clock, lead), close: () => partition.close() };
}

/** For reads only, of a folder or of a shared store; servers may write meanwhile. */
export async function openReadOnlyEngine(where: string | SharedPartition): Promise<Engine> {
  if (typeof where !== 'string') return openPostgresEngine(where.partition);
  if (readSupportedFormat(where) === undefined) throw new StartError(`There is no data of Holdfast in ${where}.`);
  if (!hasValidHeader(rowsPath(where))) {
    throw new StartError(`The rows in ${where} are missing or damaged: restore a copy.`);
  }
  try {
    return openLmdbReadOnly(rowsPath(where));
  } catch (error) {
    throw asStartError(error, where);
  }
}

async function openPostgresEngine(url: string, onResolved: (outcome: Outcome) => void = () => {}): Promise<Engine> {
  const { openPostgres, CannotOpen } = await loadPostgresEngine();
  try {
    return await openPostgres({ url, onResolved });
  } catch (error) {
    if (error instanceof CannotOpen) throw new StartError(error.message);
    throw error;
  }
}

/** Loaded on demand: most servers do not use PostgreSQL, and its client is an optional package. */
async function loadPostgresEngine() {
  try {
    return await import('../partition/postgres/engine.ts');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
    if (!isMissing || !/'pg'/.test(message)) throw error;
    throw new StartError('Rows in PostgreSQL need its client, which is not installed: npm install pg');
  }
}
