import { encodeKey } from '../partition/keys.ts';
import { decodeValue, encodeValue } from '../partition/values.ts';
import { commonErrors, raising } from './errors.ts';
import type { Storage } from './storage.ts';

const fail = raising(commonErrors);

/** What a caller wants to be switched on; an absent part stays as it is. */
export interface WantedProperties {
  readonly logging?: boolean | undefined;
  readonly hourMetrics?: boolean | undefined;
  readonly minuteMetrics?: boolean | undefined;
  readonly corsRules?: number | undefined;
  readonly deleteRetention?: boolean | undefined;
  readonly staticWebsite?: boolean | undefined;
  readonly defaultServiceVersion?: string | undefined;
}

/** All that can be set so far; everything else is off. */
export interface ServiceProperties {
  readonly defaultServiceVersion?: string | undefined;
}

const keyOf = ({ account }: Storage, service: string) => encodeKey([account, 's', service]);

export async function getServiceProperties(storage: Storage, service: string): Promise<ServiceProperties> {
  const row = await storage.partition.read((at) => at.get(keyOf(storage, service)));
  return row ? decodeValue<ServiceProperties>(row) : {};
}

/** A setting that would have no effect is refused, not stored. */
export async function setServiceProperties(storage: Storage, service: string, wanted: WantedProperties): Promise<void> {
  const missing = unbuilt(wanted);
  if (missing) throw fail('NotImplemented', undefined, `${missing} cannot be switched on in this server yet.`);
  const { defaultServiceVersion } = wanted;
  if (defaultServiceVersion === undefined) return;
  const key = keyOf(storage, service);
  await storage.partition.transact(key, async (tx) => {
    tx.put(key, encodeValue({ defaultServiceVersion }));
  });
}

function unbuilt(wanted: WantedProperties): string | undefined {
  if (wanted.logging) return 'Logging';
  if (wanted.hourMetrics) return 'HourMetrics';
  if (wanted.minuteMetrics) return 'MinuteMetrics';
  if (wanted.corsRules) return 'Cors';
  if (wanted.deleteRetention) return 'DeleteRetentionPolicy';
  if (wanted.staticWebsite) return 'StaticWebsite';
  return undefined;
}
