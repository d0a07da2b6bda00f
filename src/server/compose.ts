/** Puts a server together, on rows that are open. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Log } from '../base/log.ts';
import { accountEndpoints } from '../rest/admin/account-endpoints.ts';
import { certificateEndpoint } from '../rest/admin/certificate-endpoint.ts';
import { testEndpoints } from '../rest/admin/test-endpoints.ts';
import { createBodyMemory } from '../rest/http/byte-budget.ts';
import { createRestServer } from '../rest/http/server.ts';
import { developmentRule } from '../rules/cors.ts';
import { commonErrors, raising } from '../services/common/errors.ts';
import type { ServiceName } from '../services/common/names.ts';
import { corsRulesOf, defaultVersionOf } from '../services/common/service-properties.ts';
import { emptyAccount } from '../services/maintenance/reset.ts';
import { type Admin, removeAdmin, writeAdmin } from './admin-file.ts';
import { CannotListen, type Config, dataOf, developmentAccount } from './config.ts';
import { connectionStringOf, originOf } from './endpoints.ts';
import type { OwnRows } from './open-partition.ts';
import { openStore } from './open-storage.ts';
import { fronts } from './services.ts';
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

const fail = raising(commonErrors);

export interface Ground {
  readonly config: Config;
  readonly log: Log;
  readonly rows: OwnRows;
  /** The user's own. */
  readonly given: ServerCertificate | undefined;
}

/** Closes the rows when it stops, or fails. */
export async function serveOn({ config, log, rows, given }: Ground): Promise<HoldfastServer> {
  const store = await openStore(rows, config, log);
  const { partition, accounts, sweeper, analytics, storageOf, closeStore, certificate = given } = store;
  for (const warning of certificate?.warnings ?? []) log.warn(warning);

  let stopped: Promise<void> | undefined;
  const token = randomBytes(32).toString('base64url');
  const mayTest = config.testClock || config.inMemory;
  // A store that is shared is open to commands without this process.
  const adminFolder = config.shared ? undefined : config.location;
  async function reset(): Promise<void> {
    if (!mayTest) throw notForTests('Emptying the server');
    for (const account of accounts.list()) await emptyAccount(storageOf(account));
    await analytics.reset();
  }
  async function advance(seconds: number): Promise<void> {
    if (!mayTest) throw notForTests('Moving the clock');
    if (!(seconds >= 0) || seconds > 1e9)
      throw fail('OutOfRangeInput', undefined, 'seconds must be a number from 0 to 1e9.');
    await partition.clock.advance(BigInt(Math.round(seconds * 1e7)));
    // Something may have become due.
    sweeper.wake();
    await analytics.settle();
  }

  const ownRules = config.cors.length > 0 ? [developmentRule(config.cors)] : [];
  const common = {
    accounts,
    context: storageOf,
    log,
    memory: createBodyMemory(config.bodyBytesMax),
    analytics,
    now: rows.date,
    own: {
      ...testEndpoints({ reset, advance, forAll: config.testClock }),
      ...accountEndpoints({ accounts, token, onRemoved: sweeper.wake }),
      ...certificateEndpoint(certificate?.authority?.certificate),
    },
    tls: certificate?.tls,
    loose: config.looseMode,
    pathStyleOnly: config.pathStyleOnly,
    hostNames: hostNamesOf(config),
    oauth: config.oauth,
    isReady: () => stopped === undefined && !partition.isBroken() && store.isCurrent(),
  };
  const servers = config.endpoints.map((endpoint) => {
    const { service, keepAliveSeconds } = endpoint;
    const rest = createRestServer({
      ...common,
      ...fronts[service],
      defaultVersion: (storage) => defaultVersionOf(storage, service),
      corsRules: async (storage) => [...ownRules, ...(await corsRulesOf(storage, service))],
      keepAliveSeconds,
    });
    return { endpoint, rest };
  });
  function stop(): Promise<void> {
    stopped ??= (async () => {
      if (adminFolder !== undefined) removeAdmin(adminFolder, token);
      await Promise.all(servers.map(({ rest }) => rest.close()));
      await closeStore();
    })();
    return stopped;
  }
  const origins: { [Service in ServiceName]?: string } = {};
  for (const { endpoint, rest } of servers) {
    const { service, host, port } = endpoint;
    try {
      origins[service] = originOf(certificate ? 'https' : 'http', host, await rest.listen(port, host));
    } catch (error) {
      await Promise.all(servers.map((server) => server.rest.close(0)));
      await closeStore();
      throw new CannotListen(endpoint, error as NodeJS.ErrnoException);
    }
  }
  if (adminFolder !== undefined) leaveAdmin(adminFolder, { url: Object.values(origins)[0]!, origins, token }, log);
  const first = accounts.find((config.accounts?.[0] ?? developmentAccount).name) ?? accounts.list()[0];
  const urlOf = (service: ServiceName) => (origins[service] ? `${origins[service]}/${first?.name ?? ''}` : '');
  const urls = { blobUrl: urlOf('blob'), queueUrl: urlOf('queue'), tableUrl: urlOf('table') };
  log.info({ ...urls, location: config.inMemory ? 'memory' : dataOf(config) }, 'listening');
  return {
    ...urls,
    connectionString: connectionStringOf(first, origins),
    authority: certificate?.authority,
    stop,
    reset,
    clock: { advance },
  };
}

/** Those that were given, and those that the machine has anyway. */
function hostNamesOf({ allowedHosts, endpoints }: Config): readonly string[] {
  return [...allowedHosts, ...[hostname(), ...endpoints.map(({ host }) => host)].map((name) => name.toLowerCase())];
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
