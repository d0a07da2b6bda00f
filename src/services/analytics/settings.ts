/** The accounts that have Storage Analytics switched on, and how. */
import type { Partition } from '../../partition/partition.ts';
import { type ServiceName, serviceNames } from '../common/names.ts';
import { decodeServiceProperties, type ServiceProperties, servicePropertiesKey } from '../common/service-properties.ts';
import type { AccountId } from '../common/storage.ts';

export interface AnalysedAccount {
  readonly id: AccountId;
  readonly name: string;
}

export interface AnalyticsSettings {
  readonly account: AnalysedAccount;
  readonly services: { readonly [Service in ServiceName]?: ServiceProperties };
}

const SLICE = 100;

/** By account name; without accounts that have nothing switched on and no retention. */
export async function readSettings(
  partition: Partition,
  accounts: readonly AnalysedAccount[],
): Promise<ReadonlyMap<string, AnalyticsSettings>> {
  const found = new Map<string, AnalyticsSettings>();
  for (let at = 0; at < accounts.length; at += SLICE) {
    for (const one of await readSlice(partition, accounts.slice(at, at + SLICE))) found.set(one.account.name, one);
  }
  return found;
}

async function readSlice(partition: Partition, accounts: readonly AnalysedAccount[]): Promise<AnalyticsSettings[]> {
  const keys = accounts.flatMap(({ id }) => serviceNames.map((service) => servicePropertiesKey(id, service)));
  const rows = await partition.read((at) => at.getMany(keys));
  return accounts.flatMap((account, i) => {
    const services: { [Service in ServiceName]?: ServiceProperties } = {};
    for (const [j, service] of serviceNames.entries()) {
      const row = rows[i * serviceNames.length + j];
      const properties = row && decodeServiceProperties(row);
      if (properties && (isOn(properties) || hasRetention(properties))) services[service] = properties;
    }
    return Object.keys(services).length === 0 ? [] : [{ account, services }];
  });
}

export function isOn({ logging, hourMetrics, minuteMetrics }: ServiceProperties): boolean {
  const logs = logging !== undefined && (logging.read || logging.write || logging.delete);
  return logs || hourMetrics?.enabled === true || minuteMetrics?.enabled === true;
}

function hasRetention({ logging, hourMetrics, minuteMetrics }: ServiceProperties): boolean {
  return [logging, hourMetrics, minuteMetrics].some((part) => part?.days !== undefined);
}
