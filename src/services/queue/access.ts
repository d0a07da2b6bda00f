/** Access settings of a queue, for authorization. */
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import { decodeQueue, nameKey, type QueueId, readProperties } from './rows.ts';

/** What authorizes requests without the account's key. Anonymous requests are never authorized. */
export interface QueueAccess {
  readonly id: QueueId;
  readonly level: undefined;
  readonly policies: readonly AccessPolicy[];
}

/** Undefined: there is no such queue. */
export function queueAccess({ partition, account }: Storage, queue: string): Promise<QueueAccess | undefined> {
  return partition.read(async (at) => {
    const name = await at.get(nameKey(account, queue));
    if (!name) return undefined;
    const found = decodeQueue(account, name);
    const { policies } = await readProperties(at, found);
    return { id: found.id, level: undefined, policies };
  });
}
