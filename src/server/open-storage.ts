/** Opens content, accounts, sweeper and analytics on an open partition: the only file that knows the implementations of extents. */
import { existsSync } from 'node:fs';
import { createFailureLog } from '../base/failure-log.ts';
import { type Log, openLog } from '../base/log.ts';
import { TICKS_PER_SECOND, ticksFromUnix } from '../base/time.ts';
import { createChunkChecker } from '../content/chunk-check.ts';
import type { Extents } from '../extents/extents.ts';
import { openLocalExtents } from '../extents/local.ts';
import { openMemoryExtents } from '../extents/memory.ts';
import { openHashPool } from '../hashing/hash-pool.ts';
import type { Partition } from '../partition/partition.ts';
import { openPartition } from '../partition/transact.ts';
import { createRemoteSources } from '../rest/outgoing/remote-client.ts';
import { type AccountDirectory, type KnownAccount, openAccounts } from '../services/accounts/accounts.ts';
import { type Analytics, startAnalytics } from '../services/analytics/analytics.ts';
import { HeldLeases } from '../services/common/held-leases.ts';
import type { CopyQueue, Granted, Storage } from '../services/common/storage.ts';
import { type CheckReport, check as checkStore } from '../services/maintenance/check.ts';
import { CloseStack } from './close-stack.ts';
import { type Config, developmentAccount, resolveConfig } from './config.ts';
import { certificatesPath, extentsPath, readClockLead } from './data-directory.ts';
import { type Incarnation, openServerMembership } from './incarnations.ts';
import { type OwnedPartition, openOwnedPartition, openReadOnlyEngine } from './open-partition.ts';
import type { CheckProgress, CheckResult, Where } from './public.ts';
import { localSources } from './services.ts';
import { claimExtents } from './shared-extents.ts';
import type { ServerCertificate } from './tls/certificate.ts';

/** The open partition and extents, with everything that works on them. */
export interface OpenedStorage {
  readonly partition: Partition;
  readonly accounts: AccountDirectory;
  readonly sweeper: Storage['sweeper'];
  readonly analytics: Analytics;
  /** Whether the other members of a shared store have seen a recent heartbeat of this process. */
  isCurrent(): boolean;
  /** For monitoring. */
  readonly heldLeases: HeldLeases;
  readonly extentsUsage: Incarnation['extentsUsage'];
  readonly storageFor: (account: KnownAccount, granted?: Granted) => Storage;
  /** @param listener drops what was opened through storages from here, whose volatile rows are gone */
  onOwnerLost(listener: () => void): void;
  /** Made for https: 'auto'. */
  readonly certificate: ServerCertificate | undefined;
  closeStorage(): Promise<void>;
}

/** Takes over the rows, and closes them if it fails. */
export async function openStorage(rows: OwnedPartition, config: Config, log: Log): Promise<OpenedStorage> {
  const { partition } = rows;
  const opened = new CloseStack();
  opened.push(rows.close);
  try {
    // After the rows are open: their lock on the data folder keeps other processes from writing a certificate.
    const certificate = config.https === 'auto' ? await selfSignedCertificate(config) : undefined;
    const isShared = config.shared !== undefined;
    if (config.shared) await claimExtents(partition, config.shared.extents);
    const accountSources = { environment: config.accounts, developmentKeys: developmentAccount.keys };
    const accounts = await openAccounts(partition, accountSources, { isShared });
    const hashers = openHashPool();
    opened.push(() => hashers.close());
    const openExtents = (epoch: bigint, onCorruption: (error: Error) => void) =>
      openConfiguredExtents(config, epoch, onCorruption);
    const remote = createRemoteSources({ origins: new Set(config.copyFrom) });
    const membership = await openServerMembership({ partition, openExtents, hashers, accounts, remote, isShared, log });
    opened.push(() => membership.close());
    const sweeper = { wake: () => membership.current.sweeper.wake() };
    const heldLeases = new HeldLeases();
    const extentsUsage = () => membership.current.extentsUsage();
    const copies: CopyQueue = {
      start: (key) => membership.current.copies.start(key),
      wake: () => membership.current.copies.wake(),
    };
    const settings = { refresh: () => analytics.refresh() };
    const storageFor = ({ id: account }: Pick<KnownAccount, 'id'>, granted?: Granted): Storage => {
      const { rehydrationSeconds } = config;
      return {
        partition,
        account,
        content: membership.current.content,
        owner: membership.current.owner,
        sweeper,
        copies,
        remote,
        sources: localSources,
        granted,
        settings,
        heldLeases,
        rehydrationSeconds,
      };
    };
    const analyticsFailures = createFailureLog(log, { begins: 'analytics failed', isOver: 'analytics works again' });
    const analytics = await startAnalytics({
      ...{ partition, date: rows.date, storageOf: storageFor, accounts: () => accounts.list() },
      onFailure: analyticsFailures.failed,
      onWorked: analyticsFailures.succeeded,
      onDropped: (what, count) => log.warn({ count }, `${what} were dropped: there were too many to keep in memory`),
    });
    opened.push(() => analytics.stop());
    const isCurrent = () => membership.current.isCurrent();
    const onOwnerLost = (listener: () => void) => membership.onOwnerLost(listener);
    const closeStorage = () => opened.close();
    const monitored = { heldLeases, extentsUsage };
    const forServices = { sweeper, analytics, storageFor, onOwnerLost };
    return { partition, accounts, isCurrent, ...monitored, ...forServices, certificate, closeStorage };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function selfSignedCertificate({ location, endpoints }: Config): Promise<ServerCertificate> {
  const { ensureSelfSignedCertificate } = await import('./tls/self-signed.ts');
  return ensureSelfSignedCertificate({
    folder: location === undefined ? undefined : certificatesPath(location),
    hosts: endpoints.map(({ host }) => host),
    now: new Date(),
  });
}

function openConfiguredExtents(
  { location, shared, memoryBytesMax }: Config,
  epoch: bigint,
  onCorruption: (error: Error) => void,
): Extents | Promise<Extents> {
  if (shared) return openLocalExtents({ folder: shared.extents, epoch, onCorruption });
  if (location === undefined) return openMemoryExtents({ epoch, bytesMax: memoryBytesMax });
  return openLocalExtents({ folder: extentsPath(location), epoch, onCorruption });
}

/** Opens the accounts for a command: of a folder that no server uses, or of a store that servers share. */
export async function withAccounts<T>(
  where: string | { readonly partition: string },
  work: (accounts: AccountDirectory) => Promise<T>,
): Promise<T> {
  const isShared = typeof where !== 'string';
  const log = openLog({ level: 'silent', format: 'text', file: undefined });
  const rows = await openOwnedPartition(isShared ? { shared: where } : resolveConfig({ location: where }), log);
  try {
    return await work(await openAccounts(rows.partition, undefined, { isShared }));
  } finally {
    await rows.close();
  }
}

/** Reads and verifies all rows and bytes; servers may write meanwhile. */
export async function check(where: Where, onProgress?: (progress: CheckProgress) => void): Promise<CheckResult> {
  const engine = await openReadOnlyEngine(where);
  const folder = typeof where === 'string' ? extentsPath(where) : where.extents;
  const partition = openPartition(engine);
  let corruption: Error | undefined;
  const onCorruption = (error: Error) => {
    corruption = error;
  };
  const takeError = () => {
    const last = corruption;
    corruption = undefined;
    return last;
  };
  // A check never writes, so no extents get the epoch 0.
  const extents = existsSync(folder)
    ? await openLocalExtents({ folder, epoch: 0n, onCorruption })
    : openMemoryExtents({ epoch: 0n });
  try {
    const report = await checkStore(partition, createChunkChecker(partition, extents, takeError), onProgress);
    const lead = typeof where === 'string' ? readClockLead(where) : 0n;
    const ahead = engine.clock.now() - lead - ticksFromUnix(Date.now());
    const notes = [describeCounts(report)];
    if (ahead > 2n * TICKS_PER_SECOND)
      notes.push(`Its time is ${ahead / TICKS_PER_SECOND} s ahead of this machine's clock.`);
    return { ...report, notes };
  } finally {
    await extents.close();
    await partition.close();
  }
}

function describeCounts(report: CheckReport): string {
  const { rows, containers, blobs, bytes, queues, messages, tables, entities, shares, files } = report;
  const counts = [
    plural(containers, 'container'),
    `${plural(blobs, 'blob')} with ${plural(bytes, 'byte')}`,
    `${plural(queues, 'queue')} with ${plural(messages, 'message')}`,
    `${plural(tables, 'table')} with ${entities === 1 ? '1 entity' : `${entities} entities`}`,
    `${plural(shares, 'share')} with ${plural(files, 'file')}`,
  ];
  return `${plural(rows, 'row')}: ${counts.join(', ')}.`;
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
