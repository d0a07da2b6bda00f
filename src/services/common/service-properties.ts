/** Get and Set Service Properties, and Get Service Stats, which are the same for all services. */
import { encodeKey, type Key } from '../../partition/keys.ts';
import type { Instant, Row } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { CorsRule } from '../../rules/cors.ts';
import type { DeleteRetention } from '../../rules/soft-delete.ts';
import { checkNotRemoved } from './account-rows.ts';
import { commonErrors, errorFactory } from './errors.ts';
import type { AccountId, Storage } from './storage.ts';

const fail = errorFactory(commonErrors);

/** The requests that are logged, the format, and the days of retention; without days the logs are kept for ever. */
export interface Logging {
  readonly version: string;
  readonly read: boolean;
  readonly write: boolean;
  readonly delete: boolean;
  readonly days?: number | undefined;
}

export interface Metrics {
  readonly enabled: boolean;
  /** Whether each operation is also counted separately. Set only where metrics are enabled. */
  readonly perApi?: boolean | undefined;
  readonly days?: number | undefined;
}

/** The supported settings; everything else is off. */
export interface ServiceProperties {
  readonly logging?: Logging;
  readonly hourMetrics?: Metrics;
  readonly minuteMetrics?: Metrics;
  readonly cors?: readonly CorsRule[];
  readonly defaultServiceVersion?: string;
  readonly deleteRetention?: DeleteRetention;
}

type OptionalFields<T> = { readonly [Part in keyof T]?: T[Part] | undefined };

/** An absent part stays as it is. Of an unsupported part: whether the request switches it on. */
export interface RequestedProperties extends OptionalFields<ServiceProperties> {
  readonly staticWebsite?: boolean | undefined;
  readonly protocolSettings?: boolean | undefined;
}

export const NO_LOGGING: Logging = { version: '1.0', read: false, write: false, delete: false };
export const NO_METRICS: Metrics = { enabled: false };

export const servicePropertiesKey = (account: AccountId, service: string): Key => encodeKey([account, 's', service]);

export async function getServiceProperties(storage: Storage, service: string): Promise<ServiceProperties> {
  const row = await storage.partition.read((at) => at.get(servicePropertiesKey(storage.account, service)));
  return row ? decodeServiceProperties(row) : {};
}

/** Rows of the first versions hold only the version of the logging, which could not be switched on. */
export function decodeServiceProperties(row: Row): ServiceProperties {
  const { loggingVersion, ...set } = decodeValue<ServiceProperties & { loggingVersion?: string }>(row);
  return loggingVersion === undefined ? set : { logging: { ...NO_LOGGING, version: loggingVersion }, ...set };
}

export async function getCorsRules(storage: Storage, service: string): Promise<readonly CorsRule[]> {
  return (await getServiceProperties(storage, service)).cors ?? [];
}

/** The version for requests without x-ms-version. */
export async function getDefaultVersion(storage: Storage, service: string): Promise<string | undefined> {
  return (await getServiceProperties(storage, service)).defaultServiceVersion;
}

/** A setting without effect is refused, not stored. */
export async function setServiceProperties(
  storage: Storage,
  service: string,
  wanted: RequestedProperties,
): Promise<void> {
  const missing = findUnsupported(wanted);
  if (missing) throw fail('NotImplemented', undefined, `${missing} cannot be switched on in this server yet.`);
  const changes = definedChanges(wanted);
  if (Object.keys(changes).length === 0) return;
  const key = servicePropertiesKey(storage.account, service);
  await storage.partition.transact(key, async (tx) => {
    await checkNotRemoved(tx, storage.account);
    const row = await tx.get(key);
    tx.put(key, encodeValue({ ...(row && decodeServiceProperties(row)), ...changes }));
  });
  await storage.settings?.refresh();
}

export interface ServiceStats {
  readonly status: 'live';
  /** All writes before this instant can be read at the secondary address. */
  readonly lastSync: Instant;
}

/** Both addresses read the same rows: the secondary never lags. */
export async function getServiceStats({ partition }: Storage): Promise<ServiceStats> {
  return partition.read(async (at) => ({ status: 'live', lastSync: at.now }));
}

function definedChanges({ staticWebsite: _, protocolSettings: __, ...parts }: RequestedProperties): ServiceProperties {
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined));
}

function findUnsupported(wanted: RequestedProperties): string | undefined {
  if (wanted.staticWebsite) return 'StaticWebsite';
  return wanted.protocolSettings ? 'ProtocolSettings' : undefined;
}
