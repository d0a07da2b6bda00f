/** Copy Blob of a blob whose content changes in place: the copy gets a content of its own, of the same chunks. */
import type { HeldRead, RangeMap } from '../../content/ranges/range-maps.ts';
import { formatId, parseId } from '../../content/rows.ts';
import { OutcomeUnknown, type Transaction } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import { type Blob, changesInPlace, txQueueKey } from './rows.ts';

/** The source as one commit found it, and a copy of its content, which no blob record names yet. */
export interface ForkedSource {
  readonly blob: Blob;
  readonly contentId: string;
  /** In the transaction that names the copy. */
  finish(tx: Transaction): Promise<void>;
}

/** One state of the source. */
interface SourceState {
  readonly blob: Blob;
  readonly map: RangeMap;
  readonly gen: number;
  /** Undefined: an older state, whose release waits for running reads. */
  readonly held: HeldRead | undefined;
}

/**
 * Writes to the source go on while its pages are copied.
 * @param look finds and permits the source
 * @returns undefined: the content of the source does not change in place any more
 */
export async function withForkedSource<T>(
  storage: Storage,
  source: { readonly container: string; readonly item: string },
  look: (tx: Transaction) => Promise<{ readonly blob: Blob }>,
  use: (forked: ForkedSource) => Promise<T>,
): Promise<T | undefined> {
  const { account, content, partition, sweeper } = storage;
  const { ranges } = content;
  const readId = content.newId();
  const read = content.beginRead();
  let state: SourceState | undefined;
  try {
    const queueKey = txQueueKey(account, source.container, source.item);
    const { value } = await partition.transact(queueKey, async (tx): Promise<SourceState | undefined> => {
      const { blob } = await look(tx);
      if (!changesInPlace(blob)) return undefined;
      const map = await ranges.read(tx, account, parseId(blob.contentId!));
      if (blob.generation !== undefined) return { blob, map, gen: blob.generation, held: undefined };
      const held = await ranges.holdForRead(tx, account, map, readId);
      return { blob, map, gen: held.gen, held };
    });
    state = value;
    return state && (await useFork(storage, state, use));
  } finally {
    read.end();
    if (state?.held) await ranges.releaseRead(account, state.held);
    sweeper.wake();
  }
}

async function useFork<T>(
  { account, content: { ranges, newId } }: Storage,
  { blob, map, gen }: SourceState,
  use: (forked: ForkedSource) => Promise<T>,
): Promise<T> {
  const copy = newId();
  const pendingKey = await ranges.fork(account, copy, { map, gen, length: blob.length });
  try {
    const finish = (tx: Transaction) => ranges.finishFork(tx, account, copy, pendingKey);
    return await use({ blob, contentId: formatId(copy), finish });
  } catch (error) {
    // After a commit of unknown outcome a record may name the copy.
    if (!(error instanceof OutcomeUnknown)) await ranges.abandonFork(copy, pendingKey);
    throw error;
  }
}
