/** The read of a blob's bytes from extents, whatever kind of content it has. */
import type { ContentRead } from '../../content/content.ts';
import { parseId } from '../../content/rows.ts';
import type { Key } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import { type Blob, changesInPlace } from './rows.ts';

/** False: the content changes in place, and the read takes more than one lookup. */
export async function planBlobRead(
  at: Snapshot,
  { account, content }: Pick<Storage, 'account' | 'content'>,
  blob: Blob,
  read: ContentRead,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<boolean> {
  const id = parseId(blob.contentId!);
  if (!changesInPlace(blob)) {
    await read.plan(at, account, id, from, to);
    return true;
  }
  const map = await content.ranges.read(at, account, id);
  const { generation } = blob;
  const { isComplete } = await read.planRanges(at, account, map, generation, from, to);
  // An older state does not change, and its release waits for this read.
  return isComplete || generation !== undefined;
}

export interface PlannedRead {
  readonly blob: Blob;
  readonly from: number;
  readonly to: number;
  /** False: the read has to be held. */
  readonly isPlanned: boolean;
}

/**
 * Looks at a blob and plans the read of its bytes; if one lookup is not enough, its state is held. That state is released when the read ends;
 * before that, nothing of it is removed or changed, in no process.
 * @param look finds and permits; in a transaction its plan is not used
 */
export async function planOrHold<Found extends PlannedRead>(
  storage: Pick<Storage, 'partition' | 'account' | 'content' | 'sweeper'>,
  queueKey: Key,
  read: ContentRead,
  look: (at: Snapshot, plan: typeof planBlobRead) => Promise<Found>,
): Promise<Found> {
  for (;;) {
    const found = await storage.partition.read((at) => look(at, planBlobRead));
    if (found.isPlanned) return found;
    const held = await hold(storage, queueKey, read, (tx) => look(tx, async () => false));
    // Otherwise another blob took its place between the two looks.
    if (held) return held;
  }
}

async function hold<Found extends PlannedRead>(
  { partition, account, content, sweeper }: Pick<Storage, 'partition' | 'account' | 'content' | 'sweeper'>,
  queueKey: Key,
  read: ContentRead,
  look: (tx: Transaction) => Promise<Found>,
): Promise<Found | undefined> {
  const { ranges } = content;
  const readId = content.newId();
  const { value } = await partition.transact(queueKey, async (tx) => {
    const found = await look(tx);
    if (found.isPlanned || !changesInPlace(found.blob)) return undefined;
    const map = await ranges.read(tx, account, parseId(found.blob.contentId!));
    return { found, map, held: await ranges.holdForRead(tx, account, map, readId) };
  });
  if (!value) return undefined;
  const { found, map, held } = value;
  read.onEnd(() => void release());
  await partition.read((at) => read.planRanges(at, account, map, held.gen, found.from, found.to));
  return found;

  async function release(): Promise<void> {
    try {
      await ranges.releaseRead(account, held);
      sweeper.wake();
    } catch {
      // The next release of a read tries again, and so does the sweeper after the end of this process.
    }
  }
}
