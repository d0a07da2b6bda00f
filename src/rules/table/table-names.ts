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

const METRICS_TABLE = /^\$metrics(?:hour|minute)primarytransactions(?:blob|queue|table)$/i;

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
