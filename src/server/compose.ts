/** Composition root: builds the services and their HTTP servers on an open partition. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Log } from '../base/log.ts';
import { standardOutput } from '../base/log-output.ts';
import { accountEndpoints } from '../rest/admin/account-endpoints.ts';
import { handleEndpoints } from '../rest/admin/handle-endpoints.ts';
import { certificateEndpoint } from '../rest/admin/management-endpoints.ts';
import { metricsEndpoint } from '../rest/admin/metrics-endpoint.ts';
import { testEndpoints } from '../rest/admin/test-endpoints.ts';
import { ByteBudget } from '../rest/http/byte-budget.ts';
import { ConnectionLimit } from '../rest/http/connection-limit.ts';
import { createRestServer, type RestServer, type RestServerOptions } from '../rest/http/server.ts';
import { createAccessLog } from '../rest/logging/access-log.ts';
import { developmentRule } from '../rules/cors.ts';
import type { KnownAccount } from '../services/accounts/accounts.ts';
import type { ServiceName } from '../services/common/names.ts';
import { getCorsRules, getDefaultVersion } from '../services/common/service-properties.ts';
import type { Storage } from '../services/common/storage.ts';
import { SmbServer } from '../smb/server.ts';
import { removeAdminFile, writeAdminFile } from './admin-file.ts';
import { CannotListen, type Config, describeDataLocation, developmentAccount, type Endpoint } from './config.ts';
import { formatConnectionString, formatOrigin, formatSmbUrl, type Origins } from './endpoints.ts';
import { ServerMetrics } from './metrics.ts';
import { defaultConnectionsMax } from './open-files.ts';
import type { OwnedPartition } from './open-partition.ts';
import { type OpenedStorage, openStorage } from './open-storage.ts';
import type { HoldfastServer } from './public.ts';
import type { SeedPlan } from './seed/seed-plan.ts';
import { serviceDefinitions } from './services.ts';
import { createTestControls, type TestControls } from './test-controls.ts';
import type { ServerCertificate } from './tls/certificate.ts';
import { welcomePage } from './welcome-page.ts';

export interface ServerParts {
  readonly config: Config;
  readonly log: Log;
  readonly rows: OwnedPartition;
  /** The one that the user named. */
  readonly givenCertificate: ServerCertificate | undefined;
  readonly seed?: SeedPlan | undefined;
}

/** Closes the rows when the server stops, or when its start fails. */
export async function composeServer(parts: ServerParts): Promise<HoldfastServer> {
  const { config, log, rows, givenCertificate } = parts;
  const storage = await openStorage(rows, config, log);
  if (parts.seed) await seedStorage(parts.seed, storage, parts);
  const certificate = storage.certificate ?? givenCertificate;
  for (const warning of certificate?.warnings ?? []) log.warn(warning);
  const server = new ComposedServer({ config, log, rows, storage, certificate });
  await server.listen();
  return server.handle();
}

/** Closes the storage if it fails. */
async function seedStorage(plan: SeedPlan, storage: OpenedStorage, { config, log }: ServerParts): Promise<void> {
  try {
    const { applySeed } = await import('./seed/apply-seed.ts');
    const firstAccount = () => findFirstAccount(config, storage);
    log.info(await applySeed(plan, { ...storage, firstAccount }), 'seed applied');
  } catch (error) {
    await storage.closeStorage();
    throw error;
  }
}

/** The account of the connection string. */
function findFirstAccount({ accounts: given }: Config, { accounts }: OpenedStorage): KnownAccount | undefined {
  return accounts.find((given?.[0] ?? developmentAccount).name) ?? accounts.list()[0];
}

interface ComposedParts extends Omit<ServerParts, 'givenCertificate' | 'seed'> {
  readonly storage: OpenedStorage;
  readonly certificate: ServerCertificate | undefined;
}

interface Listener {
  readonly endpoint: Endpoint;
  readonly rest: RestServer;
}

class ComposedServer {
  private readonly parts: ComposedParts;
  private readonly controls: TestControls;
  private readonly metrics: ServerMetrics;
  /** Of this start: it stands in the admin file, so a command that can read the data folder can show it. */
  private readonly token = randomBytes(32).toString('base64url');
  /** Undefined for a shared store, which commands open without this process. */
  private readonly adminFolder: string | undefined;
  private readonly listeners: readonly Listener[];
  /** Undefined: SMB is not served. */
  private readonly smb: SmbServer | undefined;
  /** Where the services listen: complete once `listen` has resolved. */
  private origins: Origins = {};
  private smbUrl = '';
  /** Set by the first stop: from then on the server is not ready. */
  private stopped: Promise<void> | undefined;

  constructor(parts: ComposedParts) {
    const { config, storage } = parts;
    this.parts = parts;
    this.controls = createTestControls({ ...storage, allowed: config.testClock || config.inMemory });
    this.metrics = new ServerMetrics(storage);
    this.adminFolder = config.shared ? undefined : config.location;
    this.listeners = this.createListeners();
    this.smb = this.createSmbServer();
  }

  /** Closes everything if one of the services cannot listen. */
  async listen(): Promise<void> {
    const { certificate, config } = this.parts;
    for (const { endpoint, rest } of this.listeners) {
      const { service, host, port } = endpoint;
      await this.listenOrEnd(endpoint, endpoint.isOptional ?? false, async () => {
        const origin = formatOrigin(certificate ? 'https' : 'http', host, await rest.listen(port, host));
        this.origins = { ...this.origins, [service]: origin };
      });
    }
    if (config.smb && this.smb) {
      const { host, port, isOptional } = config.smb;
      await this.listenOrEnd({ service: 'smb', host, port }, isOptional, async () => {
        this.smbUrl = formatSmbUrl(host, await this.smb!.listen(port, host));
      });
    }
    this.writeAdminFile();
  }

  /** An optional endpoint is one on a default port of files or SMB: if another program has that port, the start goes on without it. */
  private async listenOrEnd(
    endpoint: CannotListen['endpoint'],
    isOptional: boolean,
    listen: () => Promise<void>,
  ): Promise<void> {
    const { service, port } = endpoint;
    try {
      await listen();
    } catch (error) {
      const what = service === 'smb' ? 'SMB' : `the ${service} service`;
      if (isOptional && (error as NodeJS.ErrnoException).code === 'EADDRINUSE') {
        this.parts.log.warn(`Port ${port} is taken: ${what} is not served. --${service}Port names another port.`);
        return;
      }
      await Promise.all([...this.listeners.map((listener) => listener.rest.close(0)), this.smb?.close()]);
      await this.parts.storage.closeStorage();
      throw new CannotListen(endpoint, error as NodeJS.ErrnoException);
    }
  }

  /** Functions that need no `this`: callers may take the object apart. */
  handle(): HoldfastServer {
    const { config, log, storage, certificate } = this.parts;
    const firstAccount = findFirstAccount(config, storage);
    const serviceUrl = (service: ServiceName) =>
      this.origins[service] ? `${this.origins[service]}/${firstAccount?.name ?? ''}` : '';
    const urls = {
      blobUrl: serviceUrl('blob'),
      queueUrl: serviceUrl('queue'),
      tableUrl: serviceUrl('table'),
      fileUrl: serviceUrl('file'),
      smbUrl: this.smbUrl,
    };
    log.debug({ ...urls, location: config.inMemory ? 'memory' : describeDataLocation(config) }, 'listening');
    return {
      ...urls,
      connectionString: formatConnectionString(firstAccount, this.origins),
      authority: certificate?.authority,
      stop: () => this.stop(),
      reset: this.controls.reset,
      setAccount: (name, settings) => storage.accounts.set(name, settings),
      clock: { advance: this.controls.advance },
    };
  }

  private stop(): Promise<void> {
    this.stopped ??= (async () => {
      if (this.adminFolder !== undefined) removeAdminFile(this.adminFolder, this.token);
      await Promise.all([...this.listeners.map(({ rest }) => rest.close()), this.smb?.close()]);
      this.metrics.stop();
      await this.parts.storage.closeStorage();
      standardOutput.flush();
    })();
    return this.stopped;
  }

  private createSmbServer(): SmbServer | undefined {
    const { config, log, rows, storage } = this.parts;
    if (!config.smb) return undefined;
    const smb = new SmbServer({
      accounts: storage.accounts,
      storageFor: storage.storageFor,
      log,
      metrics: this.metrics.smb,
      now: rows.date,
      isEncryptionRequired: config.smb.requiresEncryption,
    });
    storage.onOwnerLost(() => smb.dropOpens('the store has lost the open files'));
    return smb;
  }

  private createListeners(): Listener[] {
    const { config, log, rows, storage, certificate } = this.parts;
    const { accounts, sweeper, analytics, storageFor, partition } = storage;
    const developmentRules = config.cors.length > 0 ? [developmentRule(config.cors)] : [];
    const common = {
      accounts,
      context: storageFor,
      log,
      accessLog: config.log.requests ? createAccessLog(standardOutput, config.log.format) : undefined,
      budget: new ByteBudget(config.bodyBytesMax),
      connectionLimit: new ConnectionLimit(defaultConnectionsMax()),
      analytics,
      now: rows.date,
      managementEndpoints: {
        ...testEndpoints({ ...this.controls, allowsRemote: config.testClock }),
        ...accountEndpoints({ accounts, token: this.token, onRemoved: sweeper.wake }),
        ...handleEndpoints({ accounts, token: this.token, storageFor }),
        ...metricsEndpoint({ format: () => this.metrics.format(), allowsRemote: config.remoteMetrics }),
        ...certificateEndpoint(certificate?.authority?.certificate),
      },
      tls: certificate?.tls,
      lenient: config.looseMode,
      pathStyleOnly: config.pathStyleOnly,
      hostNames: listHostNames(config),
      oauth: config.oauth,
      welcomePage: () =>
        welcomePage({
          origins: this.origins,
          accounts: accounts.list(),
          hasAuthority: certificate?.authority !== undefined,
        }),
      copyOrigins: new Set(config.copyFrom),
      copySources: {
        serviceAt: (port: string) =>
          (['blob', 'file'] as const).find((name) => {
            const origin = this.origins[name];
            return origin !== undefined && new URL(origin).port === port;
          }),
        access: (name, context, container) => serviceDefinitions[name].access(context, container),
      },
      isReady: () => this.stopped === undefined && !partition.isBroken() && storage.isCurrent(),
      // A spread is not checked for unknown properties.
    } satisfies Partial<RestServerOptions<Storage, KnownAccount>>;
    return config.endpoints.map((endpoint) => {
      const { service, keepAliveSeconds } = endpoint;
      const rest = createRestServer({
        ...common,
        ...serviceDefinitions[service],
        defaultVersion: (context) => getDefaultVersion(context, service),
        corsRules: async (context) => [...developmentRules, ...(await getCorsRules(context, service))],
        keepAliveSeconds,
        metrics: this.metrics.requests[service],
      });
      return { endpoint, rest };
    });
  }

  /** A server that cannot write into its folder can still serve. */
  private writeAdminFile(): void {
    const { adminFolder, origins, token } = this;
    if (adminFolder === undefined) return;
    try {
      writeAdminFile(adminFolder, { url: Object.values(origins)[0]!, origins, token });
    } catch (error) {
      this.parts.log.warn({ err: error }, 'commands will not find this server');
    }
  }
}

/** The configured names, and those that the machine has anyway. */
function listHostNames({ allowedHosts, endpoints }: Config): readonly string[] {
  return [...allowedHosts, ...[hostname(), ...endpoints.map(({ host }) => host)].map((name) => name.toLowerCase())];
}
