import { encodeKey } from '../partition/keys.ts';
import { decodeValue, encodeValue } from '../partition/values.ts';
import type { CorsRule } from '../rules/cors.ts';
import { checkAccount } from './account-rows.ts';
import { commonErrors, raising } from './errors.ts';
import type { Storage } from './storage.ts';

const fail = raising(commonErrors);

/** What a caller wants, of most things whether they are to be switched on; an absent part stays as it is. */
export interface WantedProperties {
  readonly logging?: { readonly version: string; readonly on: boolean } | undefined;
  readonly hourMetrics?: boolean | undefined;
  readonly minuteMetrics?: boolean | undefined;
  readonly cors?: readonly CorsRule[] | undefined;
  readonly defaultServiceVersion?: string | undefined;
  readonly deleteRetention?: boolean | undefined;
  readonly staticWebsite?: boolean | undefined;
}

/** All that can be set so far; everything else is off. */
export interface ServiceProperties {
  readonly loggingVersion?: string;
  readonly cors?: readonly CorsRule[];
  readonly defaultServiceVersion?: string;
}

const keyOf = ({ account }: Storage, service: string) => encodeKey([account, 's', service]);

export async function getServiceProperties(storage: Storage, service: string): Promise<ServiceProperties> {
  const row = await storage.partition.read((at) => at.get(keyOf(storage, service)));
  return row ? decodeValue<ServiceProperties>(row) : {};
}

export async function corsRulesOf(storage: Storage, service: string): Promise<readonly CorsRule[]> {
  return (await getServiceProperties(storage, service)).cors ?? [];
}

/** The version of requests that name none. */
export async function defaultVersionOf(storage: Storage, service: string): Promise<string | undefined> {
  return (await getServiceProperties(storage, service)).defaultServiceVersion;
}

/** A setting that would have no effect is refused, not stored. */
export async function setServiceProperties(storage: Storage, service: string, wanted: WantedProperties): Promise<void> {
  const missing = unbuilt(wanted);
  if (missing) throw fail('NotImplemented', undefined, `${missing} cannot be switched on in this server yet.`);
  const changes = changesOf(wanted);
  if (Object.keys(changes).length === 0) return;
  const key = keyOf(storage, service);
  await storage.partition.transact(key, async (tx) => {
    await checkAccount(tx, storage.account);
    const row = await tx.get(key);
    tx.put(key, encodeValue({ ...(row && decodeValue<ServiceProperties>(row)), ...changes }));
  });
}

function changesOf({ logging, cors, defaultServiceVersion }: WantedProperties): ServiceProperties {
  return {
    ...(logging && { loggingVersion: logging.version }),
    ...(cors && { cors }),
    ...(defaultServiceVersion !== undefined && { defaultServiceVersion }),
  };
}

function unbuilt(wanted: WantedProperties): string | undefined {
  if (wanted.logging?.on) return 'Logging';
  if (wanted.hourMetrics) return 'HourMetrics';
  if (wanted.minuteMetrics) return 'MinuteMetrics';
  if (wanted.deleteRetention) return 'DeleteRetentionPolicy';
  if (wanted.staticWebsite) return 'StaticWebsite';
  return undefined;
}
