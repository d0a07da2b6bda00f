/** A process that can be killed before or after any of its commits. */
import type { Partition } from '../../src/partition/partition.ts';

export class Killed extends Error {}

/** Where the process ends: before or after its n-th commit from now on. */
export interface Kill {
  commits: number;
  readonly isAfter: boolean;
}

/** A killed process commits nothing more: what its code would do about the error never happens. */
export function killable(partition: Partition, kill: () => Kill | undefined): Partition {
  return {
    ...partition,
    async transact(queueKey, fn) {
      const at = kill();
      if (at && (at.commits < 0 || (at.commits-- === 0 && !at.isAfter))) throw new Killed();
      const result = await partition.transact(queueKey, fn);
      if (at && at.commits < 0) throw new Killed();
      return result;
    },
  };
}
