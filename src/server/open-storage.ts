/** What works on the rows and bytes that a configuration names: the only file that knows the engines of bytes. */
import { existsSync } from 'node:fs';
import { createOutage } from '../base/failure-log.ts';
import { type Log, openLog } from '../base/log.ts';
import { TICKS_PER_SECOND, ticksOf } from '../base/time.ts';
import { createChunkChecker } from '../content/chunk-check.ts';
import type { Extents } from '../extents/extents.ts';
import { openLocalExtents } from '../extents/local.ts';
import { openMemoryExtents } from '../extents/memory.ts';
import { openHashers } from '../hashing/hash-pool.ts';
import type { Partition } from '../partition/partition.ts';
import { openPartition } from '../partition/transact.ts';
import { type AccountDirectory, type KnownAccount, openAccounts } from '../services/accounts/accounts.ts';
import { type Analytics, startAnalytics } from '../services/analytics/analytics.ts';
import type { Granted, Storage } from '../services/common/storage.ts';
import { type CheckProgress, type CheckReport, check as checkStore } from '../services/maintenance/check.ts';
import { type Config, configOf, developmentAccount } from './config.ts';
import { certificatesIn, extentsIn, leadOf } from './data-directory.ts';
import { openLives } from './membership.ts';
import { type OwnRows, openRows, readRows } from './open-partition.ts';
import { claimExtents } from './shared-extents.ts';
import type { ServerCertificate } from './tls/certificate.ts';

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

/** Takes the rows over, and closes them if it fails. */
export async function openStore(rows: OwnRows, config: Config, log: Log): Promise<Store> {
  const { partition } = rows;
  const closing: (() => unknown)[] = [rows.close];
  async function closeStore(): Promise<void> {
    for (const close of closing.splice(0).reverse()) await close();
  }
  try {
    // Here, because the lock of the folder is ours now.
    const certificate = config.https === 'auto' ? await keptCertificate(config) : undefined;
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
      ...{ partition, date: rows.date, storageOf, accounts: accounts.list },
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

async function keptCertificate({ location, endpoints }: Config): Promise<ServerCertificate> {
  const { ownCertificate } = await import('./tls/self-signed.ts');
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
  const log = openLog({ level: 'silent', format: 'text', file: undefined });
  const rows = await openRows(isShared ? { shared: where } : configOf({ location: where }), log);
  try {
    return await work(await openAccounts(rows.partition, undefined, { isShared }));
  } finally {
    await rows.close();
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
  const engine = await readRows(where);
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
    const lead = typeof where === 'string' ? leadOf(where) : 0n;
    const ahead = engine.clock.now() - lead - ticksOf(Date.now());
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
