/** Puts a server together. Also what `import { start } from 'holdfast'` gives. */
import { randomBytes } from 'node:crypto';
import { connectionStringOf, originOf } from './addresses.ts';
import { type Admin, removeAdmin, writeAdmin } from './admin-file.ts';
import { type Log, openLog } from './base/log.ts';
import { type Authority, readCertificate } from './certificate.ts';
import { type Config, configOf, dataOf, developmentAccount, StartError, type StartOptions } from './config.ts';
import { accountEndpoints } from './rest/admin/accounts.ts';
import { certificateEndpoint } from './rest/admin/certificate.ts';
import { testEndpoints } from './rest/admin/test-endpoints.ts';
import { blobOperations } from './rest/blob/operations.ts';
import { createRestServer } from './rest/server.ts';
import { developmentRule } from './rules/cors.ts';
import { containerAccess } from './services/blob/access.ts';
import { commonErrors, raising } from './services/errors.ts';
import { emptyAccount } from './services/reset.ts';
import { corsRulesOf, defaultVersionOf } from './services/service-properties.ts';
import { openStore } from './store.ts';

export type { Authority } from './certificate.ts';
export type { Account, CertificateFiles, LogOptions, StartOptions } from './config.ts';
export { StartError } from './config.ts';
export { type CheckResult, check, type Where, withAccounts } from './store.ts';

export interface HoldfastServer {
  /** For the first account, as every SDK takes it; empty if there is none. */
  readonly connectionString: string;
  /** With the name of the first account. */
  readonly blobUrl: string;
  /** With https: 'auto', whom clients have to trust. */
  readonly authority: Authority | undefined;
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
  const given = typeof config.https === 'object' ? readCertificate(config.https, new Date()) : undefined;
  const store = await openStore(config, log, () => {
    process.exitCode = 1;
    void stop();
  });
  const { partition, accounts, sweeper, storageOf, closeStore, certificate = given } = store;
  for (const warning of certificate?.warnings ?? []) log.warn(warning);

  let stopped: Promise<void> | undefined;
  const token = randomBytes(32).toString('base64url');
  const mayTest = config.testClock || config.inMemory;
  // A store that is shared is open to commands without this process.
  const adminFolder = config.shared ? undefined : config.location;
  async function reset(): Promise<void> {
    if (!mayTest) throw notForTests('Emptying the server');
    for (const account of accounts.list()) await emptyAccount(storageOf(account));
  }
  async function advance(seconds: number): Promise<void> {
    if (!mayTest) throw notForTests('Moving the clock');
    if (!(seconds >= 0) || seconds > 1e9)
      throw fail('OutOfRangeInput', undefined, 'seconds must be a number from 0 to 1e9.');
    await partition.clock.advance(BigInt(Math.round(seconds * 1e7)));
    // Something may have become due.
    sweeper.wake();
  }

  const ownRules = config.cors.length > 0 ? [developmentRule(config.cors)] : [];
  const rest = createRestServer({
    table: blobOperations,
    service: 'b',
    accounts,
    context: storageOf,
    access: containerAccess,
    defaultVersion: (storage) => defaultVersionOf(storage, 'blob'),
    corsRules: async (storage) => [...ownRules, ...(await corsRulesOf(storage, 'blob'))],
    log,
    now: () => partition.clock.now(),
    own: {
      ...testEndpoints({ reset, advance, forAll: config.testClock }),
      ...accountEndpoints({ accounts, token, onRemoved: sweeper.wake }),
      ...certificateEndpoint(certificate?.authority?.certificate),
    },
    tls: certificate?.tls,
    loose: config.looseMode,
    pathStyleOnly: config.pathStyleOnly,
    oauth: config.oauth,
    isReady: () => stopped === undefined && !partition.isBroken() && store.isCurrent(),
    keepAliveSeconds: config.blobKeepAliveSeconds,
  });
  function stop(): Promise<void> {
    stopped ??= (async () => {
      if (adminFolder !== undefined) removeAdmin(adminFolder, token);
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
  const origin = originOf(certificate ? 'https' : 'http', config.blobHost, port);
  if (adminFolder !== undefined) leaveAdmin(adminFolder, { url: origin, token }, log);
  const first = accounts.find((config.accounts?.[0] ?? developmentAccount).name) ?? accounts.list()[0];
  const blobUrl = `${origin}/${first?.name ?? ''}`;
  log.info({ blobUrl, location: config.inMemory ? 'memory' : dataOf(config) }, 'listening');
  return {
    blobUrl,
    connectionString: connectionStringOf(first, origin),
    authority: certificate?.authority,
    stop,
    reset,
    clock: { advance },
  };
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

/** A server that cannot write into its folder can still serve. */
function leaveAdmin(location: string, admin: Admin, log: Log): void {
  try {
    writeAdmin(location, admin);
  } catch (error) {
    log.warn({ err: error }, 'commands will not find this server');
  }
}

function notForTests(what: string) {
  return fail(
    'AuthorizationFailure',
    undefined,
    `${what} needs a server that was started with --test-clock or in memory.`,
  );
}
