/** Opens what a configuration names: the only file that knows the engines. */
import { existsSync } from 'node:fs';
import { openHashers } from './base/hashing.ts';
import { type Log, openLog } from './base/log.ts';
import { createOutage } from './base/outage.ts';
import { TICKS_PER_SECOND, ticksOf } from './base/time.ts';
import type { ServerCertificate } from './certificate.ts';
import { type Config, configOf, developmentAccount, StartError } from './config.ts';
import { createChunkChecker } from './content/chunk-check.ts';
import { certificatesIn, extentsIn, formatOf, openDataFolder, rowsIn } from './data-folder.ts';
import type { Extents } from './extents/extents.ts';
import { openLocalExtents } from './extents/local.ts';
import { openMemoryExtents } from './extents/memory.ts';
import { openLives } from './lives.ts';
import { ownCertificate } from './own-certificate.ts';
import { openLmdb } from './partition/lmdb.ts';
import { DamagedRows, looksSound } from './partition/lmdb-damage.ts';
import { readLmdb } from './partition/lmdb-reads.ts';
import { openMemory } from './partition/memory.ts';
import type { Engine, Outcome, Partition } from './partition/partition.ts';
import { openPartition } from './partition/transact.ts';
import { type AccountDirectory, type KnownAccount, openAccounts } from './services/accounts.ts';
import { type Analytics, startAnalytics } from './services/analytics/analytics.ts';
import { type CheckProgress, type CheckReport, check as checkStore } from './services/check.ts';
import type { Granted, Storage } from './services/storage.ts';
import { claimExtents } from './shared-extents.ts';

/** Rows and bytes, with all that works on them. */
export interface Store {
  readonly partition: Partition;
  readonly accounts: AccountDirectory;
  readonly sweeper: Storage['sweeper'];
  readonly analytics: Analytics;
  /** Whether others that share the store know that this process lives. */
  isCurrent(): boolean;
  readonly storageOf: (account: KnownAccount, granted?: Granted) => Storage;
  /** Made for https: 'auto'. */
  readonly certificate: ServerCertificate | undefined;
  closeStore(): Promise<void>;
}

export async function openStore(config: Config, log: Log, onLost: () => void): Promise<Store> {
  const closing: (() => unknown)[] = [];
  async function closeStore(): Promise<void> {
    for (const close of closing.splice(0).reverse()) await close();
  }
  try {
    const partition = await openRows(config, log, onLost, closing);
    closing.push(() => partition.close());
    // Here, because the lock of the folder is ours now.
    const certificate = config.https === 'auto' ? keptCertificate(config) : undefined;
    const isShared = config.shared !== undefined;
    if (config.shared) await claimExtents(partition, config.shared.extents);
    const serves = { environment: config.accounts, developmentKeys: developmentAccount.keys };
    const accounts = await openAccounts(partition, serves, { isShared });
    const hashers = openHashers();
    closing.push(() => hashers.close());
    const openExtents = (epoch: bigint, onDamage: (error: Error) => void) => openBytes(config, epoch, onDamage);
    const lives = await openLives({ partition, openExtents, hashers, accounts, isShared, log });
    closing.push(() => lives.close());
    const sweeper = { wake: () => lives.current().sweeper.wake() };
    const settings = { changed: () => analytics.changed() };
    const storageOf = ({ id: account }: Pick<KnownAccount, 'id'>, granted?: Granted): Storage => {
      return { partition, account, content: lives.current().content, sweeper, granted, settings };
    };
    const writing = createOutage(log, { begins: 'analytics failed', isOver: 'analytics works again' });
    const analytics = await startAnalytics({
      ...{ partition, storageOf, accounts: accounts.list },
      onFailure: writing.failed,
      onWorked: writing.worked,
      onDropped: (what, count) => log.warn({ count }, `${what} were dropped: there were too many to keep in memory`),
    });
    closing.push(() => analytics.stop());
    const isCurrent = () => lives.current().isCurrent();
    return { partition, accounts, sweeper, analytics, isCurrent, storageOf, certificate, closeStore };
  } catch (error) {
    await closeStore();
    throw error;
  }
}

async function openRows(config: Config, log: Log, onLost: () => void, closing: (() => unknown)[]): Promise<Partition> {
  if (config.shared) {
    const resolved = (outcome: Outcome) =>
      log.warn({ outcome }, 'a connection was lost in a commit, which was looked up');
    return openPartition(await openShared(config.shared.partition, resolved));
  }
  if (config.location === undefined) return openPartition(openMemory());
  const folder = openDataFolder(config.location, () => {
    log.error('this server no longer holds its data folder, another may have taken it: it stops');
    onLost();
  });
  closing.push(folder.release);
  if (folder.warning) log.warn(folder.warning);
  try {
    return openPartition(await openLmdb({ location: folder.rows }));
  } catch (error) {
    if (!(error instanceof DamagedRows)) throw error;
    throw new StartError(
      `The rows in ${config.location} are damaged: restore a copy, or choose another folder by --location.`,
    );
  }
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

function keptCertificate({ location, endpoints }: Config): ServerCertificate {
  return ownCertificate({
    folder: location === undefined ? undefined : certificatesIn(location),
    hosts: endpoints.map(({ host }) => host),
    now: new Date(),
  });
}

function openBytes(
  { location, shared, memoryBytesMax }: Config,
  epoch: bigint,
  onDamage: (error: Error) => void,
): Extents | Promise<Extents> {
  if (shared) return openLocalExtents({ folder: shared.extents, epoch, onDamage });
  if (location === undefined) return openMemoryExtents({ epoch, bytesMax: memoryBytesMax });
  return openLocalExtents({ folder: extentsIn(location), epoch, onDamage });
}

/** What a command does with the accounts of a folder that no server uses, or of a store that any number of them may. */
export async function withAccounts<T>(
  where: string | { readonly partition: string },
  work: (accounts: AccountDirectory) => Promise<T>,
): Promise<T> {
  const isShared = typeof where !== 'string';
  const closing: (() => unknown)[] = [];
  try {
    const log = openLog({ level: 'silent', format: 'text', file: undefined });
    const partition = isShared
      ? openPartition(await openShared(where.partition))
      : await openRows(configOf({ location: where }), log, () => process.exit(1), closing);
    closing.push(() => partition.close());
    return await work(await openAccounts(partition, undefined, { isShared }));
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

export interface CheckResult extends CheckReport {
  /** What the user should know, though nothing is wrong. */
  readonly notes: readonly string[];
}

/** A folder, or what several processes share. */
export type Where = string | { readonly partition: string; readonly extents: string };

/** Looks at all rows and bytes; servers may work on them meanwhile. */
export async function check(where: Where, onProgress?: (progress: CheckProgress) => void): Promise<CheckResult> {
  const engine = typeof where === 'string' ? rowsOf(where) : await openShared(where.partition);
  const folder = typeof where === 'string' ? extentsIn(where) : where.extents;
  const partition = openPartition(engine);
  // It never writes, so that no process has the epoch 0.
  let damage: Error | undefined;
  const onDamage = (error: Error) => {
    damage = error;
  };
  const heard = () => {
    const last = damage;
    damage = undefined;
    return last;
  };
  const extents = existsSync(folder)
    ? await openLocalExtents({ folder, epoch: 0n, onDamage })
    : openMemoryExtents({ epoch: 0n });
  try {
    const report = await checkStore(partition, createChunkChecker(partition, extents, heard), onProgress);
    const ahead = engine.clock.now() - ticksOf(Date.now());
    const { rows, containers, blobs, bytes } = report;
    const notes = [`${rows} rows: ${containers} containers, ${blobs} blobs with ${bytes} bytes.`];
    if (ahead > 2n * TICKS_PER_SECOND)
      notes.push(`Its time is ${ahead / TICKS_PER_SECOND} s ahead of this machine's clock.`);
    return { ...report, notes };
  } finally {
    await extents.close();
    await partition.close();
  }
}

function rowsOf(location: string): Engine {
  if (formatOf(location) === undefined) throw new StartError(`There is no data of Holdfast in ${location}.`);
  if (!looksSound(rowsIn(location))) {
    throw new StartError(
      `The rows in ${location} are missing or damaged: after a power cut, start the server on it first.`,
    );
  }
  return readLmdb(rowsIn(location));
}
