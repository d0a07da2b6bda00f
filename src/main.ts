/** The composition root: the only file that names the engines. Also what `import { start } from 'holdfast'` gives. */
import { existsSync } from 'node:fs';
import { openHashers } from './base/hashing.ts';
import { type Log, openLog } from './base/log.ts';
import { TICKS_PER_SECOND, ticksOf } from './base/time.ts';
import { type Config, configOf, StartError, type StartOptions } from './config.ts';
import { createChunkChecker } from './content/chunk-check.ts';
import { startCollector } from './content/collector.ts';
import { openEpoch } from './content/epochs.ts';
import { createReads } from './content/reads.ts';
import { createContentStore } from './content/store.ts';
import { extentsIn, formatOf, openDataFolder, rowsIn } from './data-folder.ts';
import type { Extents } from './extents/extents.ts';
import { openLocalExtents } from './extents/local.ts';
import { openMemoryExtents } from './extents/memory.ts';
import { openLmdb } from './partition/lmdb.ts';
import { isNew, looksSound } from './partition/lmdb-damage.ts';
import { readLmdb } from './partition/lmdb-reads.ts';
import { openMemory } from './partition/memory.ts';
import type { Partition } from './partition/partition.ts';
import { openPartition } from './partition/transact.ts';
import { blobOperations } from './rest/blob/operations.ts';
import { createRestServer, type OwnEndpoint } from './rest/server.ts';
import { openAccounts } from './services/accounts.ts';
import { emptyAccount } from './services/blob/reset.ts';
import { type CheckProgress, type CheckReport, check as checkStore } from './services/check.ts';
import { commonErrors, raising } from './services/errors.ts';
import type { Storage } from './services/storage.ts';
import { startSweeper } from './services/sweeper.ts';

export type { Account, LogOptions, StartOptions } from './config.ts';
export { StartError } from './config.ts';

export interface HoldfastServer {
  /** For the first account, as every SDK takes it. */
  readonly connectionString: string;
  /** With the name of the first account. */
  readonly blobUrl: string;
  /** Finishes the running requests, for up to ten seconds, and closes everything. */
  stop(): Promise<void>;
  /** Removes all containers and settings. Only in memory or with a test clock. */
  reset(): Promise<void>;
  readonly clock: {
    /** Moves the server's time forward. Only in memory or with a test clock. */
    advance(seconds: number): Promise<void>;
  };
}

const fail = raising(commonErrors);

export async function start(options: StartOptions = {}): Promise<HoldfastServer> {
  const config = configOf(options);
  const log = logOf(config);
  const { partition, storages, closeStore } = await openStore(config, log, () => {
    process.exitCode = 1;
    void stop();
  });

  let stopped: Promise<void> | undefined;
  const mayTest = config.testClock || config.location === undefined;
  async function reset(): Promise<void> {
    if (!mayTest) throw notForTests('Emptying the server');
    for (const storage of storages.values()) await emptyAccount(storage);
  }
  async function advance(seconds: number): Promise<void> {
    if (!mayTest) throw notForTests('Moving the clock');
    if (!(seconds >= 0) || seconds > 1e9)
      throw fail('OutOfRangeInput', undefined, 'seconds must be a number from 0 to 1e9.');
    await partition.clock.advance(BigInt(Math.round(seconds * 1e7)));
    // Something may have become due.
    for (const { sweeper } of storages.values()) sweeper.wake();
  }

  const rest = createRestServer({
    table: blobOperations,
    accounts: config.accounts,
    context: (account) => storages.get(account)!,
    log,
    now: () => partition.clock.now(),
    own: ownEndpoints(reset, advance),
    isReady: () => stopped === undefined,
    keepAliveSeconds: config.blobKeepAliveSeconds,
  });
  function stop(): Promise<void> {
    stopped ??= (async () => {
      await rest.close();
      await closeStore();
    })();
    return stopped;
  }
  let port: number;
  try {
    port = await rest.listen(config.blobPort, config.blobHost);
  } catch (error) {
    await closeStore();
    throw error;
  }
  const { name, keys } = config.accounts[0]!;
  const blobUrl = `http://${reachable(config.blobHost)}:${port}/${name}`;
  log.info({ blobUrl, location: config.location ?? 'memory' }, 'listening');
  return {
    blobUrl,
    connectionString: `DefaultEndpointsProtocol=http;AccountName=${name};AccountKey=${keys[0]};BlobEndpoint=${blobUrl};`,
    stop,
    reset,
    clock: { advance },
  };
}

export interface CheckResult extends CheckReport {
  /** What the user should know, though nothing is wrong. */
  readonly notes: readonly string[];
}

/** Looks at all rows and bytes of a folder; a server may work on it meanwhile. */
export async function check(location: string, onProgress?: (progress: CheckProgress) => void): Promise<CheckResult> {
  if (formatOf(location) === undefined) throw new StartError(`There is no data of Holdfast in ${location}.`);
  if (!looksSound(rowsIn(location))) throw new StartError(`The rows in ${location} are missing or damaged.`);
  const engine = readLmdb(rowsIn(location));
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
  const extents = existsSync(extentsIn(location))
    ? await openLocalExtents({ folder: extentsIn(location), epoch: 0n, onDamage })
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

function logOf({ log }: Config): Log {
  try {
    return openLog(log);
  } catch (error) {
    throw new StartError(
      `Cannot write the log ${log.file} (${(error as Error).message}): choose another file by --debug.`,
    );
  }
}

interface Store {
  readonly partition: Partition;
  /** By the name of the account. */
  readonly storages: ReadonlyMap<string, Storage>;
  closeStore(): Promise<void>;
}

async function openStore(config: Config, log: Log, onLost: () => void): Promise<Store> {
  const closing: (() => unknown)[] = [];
  async function closeStore(): Promise<void> {
    for (const close of closing.splice(0).reverse()) await close();
  }
  try {
    const partition = await openRows(config, log, onLost, closing);
    closing.push(() => partition.close());
    const epoch = await openEpoch(partition);
    const extents = await openBytes(config, log, epoch);
    closing.push(() => extents.close());
    const accounts = await openAccounts(
      partition,
      config.accounts.map(({ name }) => name),
    );
    const hashers = openHashers();
    closing.push(() => hashers.close());
    const reads = createReads();
    const content = createContentStore({ partition, extents, epoch, reads, hashers });
    const { heldExtents } = content;
    const sweeper = startSweeper({
      ...{ partition, content, accounts: accounts.values(), reads, epoch },
      onFailure: (error) => log.warn({ err: error }, 'sweeping failed'),
    });
    closing.push(() => sweeper.stop());
    const collector = startCollector({
      ...{ partition, extents, epoch, reads, heldExtents },
      onFailure: (error) => log.warn({ err: error }, 'collecting failed'),
      onDamage: (error) => log.error({ err: error }, 'damaged'),
    });
    closing.push(() => collector.stop());
    sweeper.wake();
    const storages = new Map<string, Storage>();
    for (const [name, account] of accounts) storages.set(name, { partition, account, content, sweeper });
    return { partition, storages, closeStore };
  } catch (error) {
    await closeStore();
    throw error;
  }
}

async function openRows(config: Config, log: Log, onLost: () => void, closing: (() => unknown)[]): Promise<Partition> {
  if (config.location === undefined) return openPartition(openMemory());
  const folder = openDataFolder(config.location, () => {
    log.error('this server no longer holds its data folder, another may have taken it: it stops');
    onLost();
  });
  closing.push(folder.release);
  if (folder.warning) log.warn(folder.warning);
  if (!isNew(folder.rows) && !looksSound(folder.rows)) {
    throw new StartError(
      `The rows in ${config.location} are damaged: restore a copy, or choose another folder by --location.`,
    );
  }
  return openPartition(await openLmdb({ location: folder.rows }));
}

function openBytes({ location }: Config, log: Log, epoch: bigint): Extents | Promise<Extents> {
  if (location === undefined) return openMemoryExtents({ epoch });
  const onDamage = (error: Error) => log.error({ err: error }, 'damaged');
  return openLocalExtents({ folder: extentsIn(location), epoch, onDamage });
}

function ownEndpoints(
  reset: () => Promise<void>,
  advance: (seconds: number) => Promise<void>,
): Record<string, OwnEndpoint> {
  return {
    'POST /_holdfast/reset': async () => {
      await reset();
      return { status: 204 };
    },
    'POST /_holdfast/clock/advance': async ({ seconds }) => {
      await advance(Number(seconds || Number.NaN));
      return { status: 204 };
    },
  };
}

function notForTests(what: string) {
  return fail(
    'AuthorizationFailure',
    undefined,
    `${what} needs a server that was started with --test-clock or in memory.`,
  );
}

/** A host that clients can connect to, where the server listens on all of them. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
