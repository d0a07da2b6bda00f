/** The number of messages in each queue, for monitoring: bounded work, however many queues and messages there are. */
import { decodeKeySuffix } from '../../partition/keys.ts';
import { namesIn } from '../common/names.ts';
import { nextSlice, type Storage } from '../common/storage.ts';
import { readMessageEstimate } from './message-rows.ts';
import { decodeQueue, nameKeyPrefix } from './rows.ts';

export interface QueueDepth {
  readonly queue: string;
  readonly messages: number;
}

/** The first queues by name. An expired message may count until the end of its hour. */
export async function readQueueDepths(
  { account, partition }: Pick<Storage, 'account' | 'partition'>,
  queuesMax: number,
): Promise<readonly QueueDepth[]> {
  return partition.read(async (at) => {
    const start = nameKeyPrefix(account, '');
    const depths: QueueDepth[] = [];
    for (const row of await at.scan(namesIn(account, 'queue'), { limit: queuesMax })) {
      const messages = await readMessageEstimate(at, decodeQueue(account, row));
      depths.push({ queue: decodeKeySuffix(row.key, start), messages });
      await nextSlice();
    }
    return depths;
  });
}
