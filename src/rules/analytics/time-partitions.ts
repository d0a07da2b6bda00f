/** Where logs and metrics of an instant lie: their names begin with its hour, or its minute. */
import { formatIso7, TICKS_PER_SECOND } from '../../base/time.ts';

const HOUR = 3600n * TICKS_PER_SECOND;
const DAY = 24n * HOUR;

/** 20261116T0900, or 20261116T0931: the partition of the metrics. */
export function metricsPartition(instant: bigint, span: 'hour' | 'minute'): string {
  const text = formatIso7(instant);
  return `${text.slice(0, 10).replaceAll('-', '')}T${text.slice(11, 13)}${span === 'hour' ? '00' : text.slice(14, 16)}`;
}

/** blob/2026/11/16/0900/: the beginning of the names of an hour's logs. */
export function logFolder(service: string, instant: bigint): string {
  const text = formatIso7(instant);
  return `${service}/${text.slice(0, 10).replaceAll('-', '/')}/${text.slice(11, 13)}00/`;
}

/** What began before is not kept. */
export function retentionStart(now: bigint, days: number): bigint {
  return now - BigInt(days) * DAY;
}
