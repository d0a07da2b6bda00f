import { encodeKey, type Key } from '../../partition/keys.ts';
import type { Row } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { CorsRule } from '../../rules/cors.ts';
import { checkNotRemoved } from './account-rows.ts';
import { commonErrors, errorFactory } from './errors.ts';
import type { AccountId, Storage } from './storage.ts';

const fail = errorFactory(commonErrors);

/** Which requests are logged, how, and for how many days; without days for ever. */
export interface Logging {
  readonly version: string;
  readonly read: boolean;
  readonly write: boolean;
  readonly delete: boolean;
  readonly days?: number | undefined;
}

export interface Metrics {
  readonly enabled: boolean;
  /** Whether each operation is counted for itself, too. It is said of what is enabled only. */
  readonly perApi?: boolean | undefined;
  readonly days?: number | undefined;
}

/** All that can be set so far; everything else is off. */
export interface ServiceProperties {
  readonly logging?: Logging;
  readonly hourMetrics?: Metrics;
  readonly minuteMetrics?: Metrics;
  readonly cors?: readonly CorsRule[];
  readonly defaultServiceVersion?: string;
}

type OptionalFields<T> = { readonly [Part in keyof T]?: T[Part] | undefined };

/** What a caller wants; an absent part stays as it is. Of what cannot be had, whether it is to be switched on. */
export interface RequestedProperties extends OptionalFields<ServiceProperties> {
  readonly deleteRetention?: boolean | undefined;
  readonly staticWebsite?: boolean | undefined;
}

export const NO_LOGGING: Logging = { version: '1.0', read: false, write: false, delete: false };
export const NO_METRICS: Metrics = { enabled: false };

export const servicePropertiesKey = (account: AccountId, service: string): Key => encodeKey([account, 's', service]);

export async function getServiceProperties(storage: Storage, service: string): Promise<ServiceProperties> {
  const row = await storage.partition.read((at) => at.get(servicePropertiesKey(storage.account, service)));
  return row ? decodeServiceProperties(row) : {};
}

/** The first versions kept of the logging its version only, because it could not be switched on. */
export function decodeServiceProperties(row: Row): ServiceProperties {
  const { loggingVersion, ...set } = decodeValue<ServiceProperties & { loggingVersion?: string }>(row);
  return loggingVersion === undefined ? set : { logging: { ...NO_LOGGING, version: loggingVersion }, ...set };
}

export async function getCorsRules(storage: Storage, service: string): Promise<readonly CorsRule[]> {
  return (await getServiceProperties(storage, service)).cors ?? [];
}

/** The version of requests that name none. */
export async function getDefaultVersion(storage: Storage, service: string): Promise<string | undefined> {
  return (await getServiceProperties(storage, service)).defaultServiceVersion;
}

/** A setting that would have no effect is refused, not stored. */
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

function definedChanges({ deleteRetention: _, staticWebsite: __, ...parts }: RequestedProperties): ServiceProperties {
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined));
}

function findUnsupported(wanted: RequestedProperties): string | undefined {
  if (wanted.deleteRetention) return 'DeleteRetentionPolicy';
  if (wanted.staticWebsite) return 'StaticWebsite';
  return undefined;
}
