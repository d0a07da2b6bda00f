/** The time of the last write as an open shows it: when writes through a handle show theirs, and what the close stores. */
import type { Storage } from '../common/storage.ts';
import { handleQueueKey, requireHandle } from './handles.ts';
import { updateNode } from './namespace.ts';
import type { Handle } from './open-rows.ts';

export {
  afterFlush,
  afterWrite,
  type LastWriteChange,
  NO_WRITES,
  shownLastWrite,
  type WriteTimes,
  writeShownByClose,
} from '../../rules/file/write-times.ts';

/**
 * The close of a file that was written after the time of the first write had shown is its last write.
 * @param stored by that write; if another time is stored, a client has set it, and it stays
 */
export async function noteCloseAfterWrites(
  storage: Storage,
  handle: Handle,
  { stored, keepsChange }: { readonly stored: bigint; readonly keepsChange: boolean },
): Promise<void> {
  await storage.partition.transact(handleQueueKey(storage.account, handle), async (tx) => {
    const { share, node } = await requireHandle(tx, storage, handle);
    if (node.times.lastWrite !== stored) return;
    const times = { ...node.times, lastWrite: tx.now, ...(!keepsChange && { change: tx.now }) };
    await updateNode(tx, share, node, { times });
  });
}
