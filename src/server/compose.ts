/** Puts a server together, on rows that are open. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Log } from '../base/log.ts';
import { accountEndpoints } from '../rest/admin/account-endpoints.ts';
import { certificateEndpoint } from '../rest/admin/management-endpoints.ts';
import { testEndpoints } from '../rest/admin/test-endpoints.ts';
import { ByteBudget } from '../rest/http/byte-budget.ts';
import { createRestServer } from '../rest/http/server.ts';
import { developmentRule } from '../rules/cors.ts';
import { commonErrors, errorFactory } from '../services/common/errors.ts';
import type { ServiceName } from '../services/common/names.ts';
import { getCorsRules, getDefaultVersion } from '../services/common/service-properties.ts';
import { emptyAccount } from '../services/maintenance/reset.ts';
import { type AdminFile, removeAdminFile, writeAdminFile } from './admin-file.ts';
import { CannotListen, type Config, describeDataLocation, developmentAccount } from './config.ts';
import { formatConnectionString, formatOrigin } from './endpoints.ts';
import type { OwnedPartition } from './open-partition.ts';
import { openStorage } from './open-storage.ts';
import { serviceDefinitions } from './services.ts';
import type { Authority, ServerCertificate } from './tls/certificate.ts';

export interface HoldfastServer {
  /** For the first account, as every SDK takes it; empty if there is none. */
  readonly connectionString: string;
  /** With the name of the first account; empty if the service is not served. */
  readonly blobUrl: string;
  readonly queueUrl: string;
  readonly tableUrl: string;
  /** With https: 'auto', whom clients have to trust. */
  readonly authority: Authority | undefined;
  /** Finishes the running requests, for up to ten seconds, and closes everything. */
  stop(): Promise<void>;
  /** Removes all containers, queues, tables and settings. Only in memory or with a test clock. */
  reset(): Promise<void>;
  readonly clock: {
    /** Moves the server's time forward. Only in memory or with a test clock. */
    advance(seconds: number): Promise<void>;
  };
}

const fail = errorFactory(commonErrors);

export interface ServerParts {
  readonly config: Config;
  readonly log: Log;
  readonly rows: OwnedPartition;
  /** The user's own. */
  readonly givenCertificate: ServerCertificate | undefined;
}

/** Closes the rows when it stops, or fails. */
export async function composeServer({ config, log, rows, givenCertificate }: ServerParts): Promise<HoldfastServer> {
  const store = await openStorage(rows, config, log);
  const { partition, accounts, sweeper, analytics, storageOf, closeStorage, certificate = givenCertificate } = store;
  for (const warning of certificate?.warnings ?? []) log.warn(warning);

  let stopped: Promise<void> | undefined;
  const token = randomBytes(32).toString('base64url');
  const allowsTestControls = config.testClock || config.inMemory;
  // A store that is shared is open to commands without this process.
  const adminFolder = config.shared ? undefined : config.location;
  async function reset(): Promise<void> {
    if (!allowsTestControls) throw testControlsRefused('Emptying the server');
    for (const account of accounts.list()) await emptyAccount(storageOf(account));
    await analytics.reset();
  }
  async function advance(seconds: number): Promise<void> {
    if (!allowsTestControls) throw testControlsRefused('Moving the clock');
    if (!(seconds >= 0) || seconds > 1e9)
      throw fail('OutOfRangeInput', undefined, 'seconds must be a number from 0 to 1e9.');
    await partition.clock.advance(BigInt(Math.round(seconds * 1e7)));
    // Something may have become due.
    sweeper.wake();
    await analytics.settle();
  }

  const developmentRules = config.cors.length > 0 ? [developmentRule(config.cors)] : [];
  const common = {
    accounts,
    context: storageOf,
    log,
    budget: new ByteBudget(config.bodyBytesMax),
    analytics,
    now: rows.date,
    managementEndpoints: {
      ...testEndpoints({ reset, advance, allowsRemote: config.testClock }),
      ...accountEndpoints({ accounts, token, onRemoved: sweeper.wake }),
      ...certificateEndpoint(certificate?.authority?.certificate),
    },
    tls: certificate?.tls,
    lenient: config.looseMode,
    pathStyleOnly: config.pathStyleOnly,
    hostNames: listHostNames(config),
    oauth: config.oauth,
    isReady: () => stopped === undefined && !partition.isBroken() && store.isCurrent(),
  };
  const servers = config.endpoints.map((endpoint) => {
    const { service, keepAliveSeconds } = endpoint;
    const rest = createRestServer({
      ...common,
      ...serviceDefinitions[service],
      defaultVersion: (storage) => getDefaultVersion(storage, service),
      corsRules: async (storage) => [...developmentRules, ...(await getCorsRules(storage, service))],
      keepAliveSeconds,
    });
    return { endpoint, rest };
  });
  function stop(): Promise<void> {
    stopped ??= (async () => {
      if (adminFolder !== undefined) removeAdminFile(adminFolder, token);
      await Promise.all(servers.map(({ rest }) => rest.close()));
      await closeStorage();
    })();
    return stopped;
  }
  const origins: { [Service in ServiceName]?: string } = {};
  for (const { endpoint, rest } of servers) {
    const { service, host, port } = endpoint;
    try {
      origins[service] = formatOrigin(certificate ? 'https' : 'http', host, await rest.listen(port, host));
    } catch (error) {
      await Promise.all(servers.map((server) => server.rest.close(0)));
      await closeStorage();
      throw new CannotListen(endpoint, error as NodeJS.ErrnoException);
    }
  }
  if (adminFolder !== undefined)
    tryWriteAdminFile(adminFolder, { url: Object.values(origins)[0]!, origins, token }, log);
  const firstAccount = accounts.find((config.accounts?.[0] ?? developmentAccount).name) ?? accounts.list()[0];
  const serviceUrl = (service: ServiceName) =>
    origins[service] ? `${origins[service]}/${firstAccount?.name ?? ''}` : '';
  const urls = { blobUrl: serviceUrl('blob'), queueUrl: serviceUrl('queue'), tableUrl: serviceUrl('table') };
  log.info({ ...urls, location: config.inMemory ? 'memory' : describeDataLocation(config) }, 'listening');
  return {
    ...urls,
    connectionString: formatConnectionString(firstAccount, origins),
    authority: certificate?.authority,
    stop,
    reset,
    clock: { advance },
  };
}

/** Those that were given, and those that the machine has anyway. */
function listHostNames({ allowedHosts, endpoints }: Config): readonly string[] {
  return [...allowedHosts, ...[hostname(), ...endpoints.map(({ host }) => host)].map((name) => name.toLowerCase())];
}

/** A server that cannot write into its folder can still serve. */
function tryWriteAdminFile(location: string, admin: AdminFile, log: Log): void {
  try {
    writeAdminFile(location, admin);
  } catch (error) {
    log.warn({ err: error }, 'commands will not find this server');
  }
}

function testControlsRefused(what: string) {
  return fail(
    'AuthorizationFailure',
    undefined,
    `${what} needs a server that was started with --test-clock or in memory.`,
  );
}
