/** Valid names of containers, blobs, queues and tables, and valid metadata. */

export type NameFault = 'InvalidResourceName' | 'InvalidUri' | 'OutOfRangeInput';

/** The container of the service's own logs. */
export const LOGS_CONTAINER = '$logs';
const SYSTEM_CONTAINERS = new Set(['$root', '$web', LOGS_CONTAINER]);
const CONTAINER_NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const CONTAINER_NAME_MIN = 3;
const CONTAINER_NAME_MAX = 63;
/** In UTF-16 units, as .NET counts. */
export const BLOB_NAME_MAX = 1024;
const BLOB_NAME_SEGMENTS_MAX = 254;

/** The length is checked first: a short name with invalid characters is out of range. */
export function containerNameFault(name: string): NameFault | undefined {
  if (name.length < CONTAINER_NAME_MIN || name.length > CONTAINER_NAME_MAX) return 'OutOfRangeInput';
  if (SYSTEM_CONTAINERS.has(name) || CONTAINER_NAME.test(name)) return undefined;
  return 'InvalidResourceName';
}

/** Any text with few enough segments is valid. */
export function blobNameFault(name: string): NameFault | undefined {
  if (name.length < 1 || name.length > BLOB_NAME_MAX) return 'OutOfRangeInput';
  if (name.length < BLOB_NAME_SEGMENTS_MAX) return undefined;
  return name.split('/').length > BLOB_NAME_SEGMENTS_MAX ? 'InvalidUri' : undefined;
}

/** Valid metadata. Names keep their case and are compared without it. */
export type MetadataFault = 'EmptyMetadataKey' | 'InvalidMetadata' | 'MetadataTooLarge';

/** A C# identifier, as far as the name of an HTTP header can be one. */
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
const METADATA_BYTES_MAX = 8 * 1024;

/** Takes pairs as they were sent, so that a repeated name is still repeated. Header text has one byte per character. */
export function metadataFault(pairs: Iterable<readonly [name: string, value: string]>): MetadataFault | undefined {
  const seen = new Set<string>();
  let bytes = 0;
  for (const [name, value] of pairs) {
    if (name === '') return 'EmptyMetadataKey';
    if (!IDENTIFIER.test(name)) return 'InvalidMetadata';
    const folded = name.toLowerCase();
    if (seen.has(folded)) return 'InvalidMetadata';
    seen.add(folded);
    bytes += name.length + value.length;
  }
  return bytes > METADATA_BYTES_MAX ? 'MetadataTooLarge' : undefined;
}

/** The rules for containers, but without names that belong to the service. */
export function queueNameFault(name: string): NameFault | undefined {
  return containerNameFault(name) ?? (name.startsWith('$') ? 'InvalidResourceName' : undefined);
}

/** The rules for queues. */
export const shareNameFault = queueNameFault;

/** Names of tables. */
export type TableNameFault = 'InvalidResourceName' | 'NameOutOfRange' | 'InvalidInput';

const TABLE_NAME = /^[A-Za-z][A-Za-z0-9]*$/;
const TABLE_NAME_MIN = 3;
export const TABLE_NAME_MAX = 63;
/** The entity set of all tables has this name. */
const RESERVED = 'tables';

/** The length is checked first, as for containers. */
export function tableNameFault(name: string): TableNameFault | undefined {
  if (name.length < TABLE_NAME_MIN || name.length > TABLE_NAME_MAX) return 'NameOutOfRange';
  if (!TABLE_NAME.test(name)) return 'InvalidResourceName';
  return foldTableName(name) === RESERVED ? 'InvalidInput' : undefined;
}

const METRICS_TABLE = /^\$metrics(?:hour|minute)primarytransactions(?:blob|queue|table|file)$/i;

/** Tables that the service itself writes: they can be read, and are not listed. */
export function isMetricsTable(name: string): boolean {
  return METRICS_TABLE.test(name);
}

export function metricsTableName(granularity: 'hour' | 'minute', service: string): string {
  const titled = (word: string) => `${word[0]!.toUpperCase()}${word.slice(1)}`;
  return `$Metrics${titled(granularity)}PrimaryTransactions${titled(service)}`;
}

/** Names that differ only in case name one table. */
export function foldTableName(name: string): string {
  return name.toLowerCase();
}
