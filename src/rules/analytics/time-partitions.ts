/** Partitions of logs and metrics by hour or minute. */
import { formatIso7, TICKS_PER_SECOND } from '../../base/time.ts';

const HOUR = 3600n * TICKS_PER_SECOND;
const DAY = 24n * HOUR;

/** PartitionKey of metrics: 20261116T0900, or 20261116T0931. */
export function metricsPartition(instant: bigint, span: 'hour' | 'minute'): string {
  const text = formatIso7(instant);
  return `${text.slice(0, 10).replaceAll('-', '')}T${text.slice(11, 13)}${span === 'hour' ? '00' : text.slice(14, 16)}`;
}

/** Prefix of the names of an hour's logs: blob/2026/11/16/0900/ */
export function logFolder(service: string, instant: bigint): string {
  const text = formatIso7(instant);
  return `${service}/${text.slice(0, 10).replaceAll('-', '/')}/${text.slice(11, 13)}00/`;
}

/** Data that began earlier is not retained. */
export function retentionStart(now: bigint, days: number): bigint {
  return now - BigInt(days) * DAY;
}
