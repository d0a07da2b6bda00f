/** The rows that containers, queues and tables share: a name row that holds the id, and properties with metadata under that id. */
import { encodeKey, type Key, keyPrefix, prefixEnd, type Range } from '../../partition/keys.ts';
import type { Row } from '../../partition/partition.ts';
import { decodeBytes, encodeBytes } from '../../partition/values.ts';
import { metadataFault } from '../../rules/names.ts';
import { commonErrors, errorFactory } from './errors.ts';
import type { AccountId } from './storage.ts';

export const serviceNames = ['blob', 'queue', 'table', 'file'] as const;
export type ServiceName = (typeof serviceNames)[number];

export const nameKey = (account: AccountId, service: ServiceName, name: string): Key =>
  encodeKey([account, 'n', service, name]);
/** The prefix of the keys of all names with this prefix. */
export const nameKeyPrefix = (account: AccountId, service: ServiceName, prefix: string): Key =>
  keyPrefix([account, 'n', service], prefix);
export const namesIn = (account: AccountId, service: ServiceName): Range => {
  const from = nameKeyPrefix(account, service, '');
  return { from, to: prefixEnd(from) };
};
export const propertiesKey = (account: AccountId, service: ServiceName, id: bigint): Key =>
  encodeKey([account, 'p', service, id]);

const ID_BYTES = 8;

/** Read with every request, hence not JSON: eight bytes for the id, and after them whatever else the service keeps with a name. */
export function encodeName(id: bigint, more: Uint8Array = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(ID_BYTES + more.length);
  bytes.writeBigUInt64BE(id);
  bytes.set(more, ID_BYTES);
  return encodeBytes(bytes);
}

export function decodeName(row: Pick<Row, 'value'>): bigint {
  return decodeBytes(row).readBigUInt64BE();
}

export function bytesAfterId(row: Pick<Row, 'value'>): Buffer {
  return decodeBytes(row).subarray(ID_BYTES);
}

export type Metadata = Readonly<Record<string, string>>;

/** Metadata as it was sent: a name may occur twice. */
export type SentMetadata = readonly (readonly [name: string, value: string])[];

const fail = errorFactory(commonErrors);

export function parseMetadata(sent: SentMetadata): Metadata {
  const fault = metadataFault(sent);
  if (fault) throw fail(fault);
  return Object.fromEntries(sent);
}
