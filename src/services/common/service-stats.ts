import type { Instant } from '../../partition/partition.ts';
import type { Storage } from './storage.ts';

export interface ServiceStats {
  readonly status: 'live';
  /** All that was written before is seen at the secondary address. */
  readonly lastSync: Instant;
}

/** Both addresses lead to the same rows: nothing is ever behind. */
export async function getServiceStats({ partition }: Storage): Promise<ServiceStats> {
  return partition.read(async (at) => ({ status: 'live', lastSync: at.now }));
}
