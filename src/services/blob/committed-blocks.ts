/** The blocks of a blob as it is. Its content never changes, so they can be looked up before the transaction that uses them, in slices. */
import { nextSlice } from '../../base/time-slices.ts';
import { parseId, type Segment } from '../../content/rows.ts';
import type { Snapshot } from '../../partition/partition.ts';
import type { BlockChoice } from '../../rules/block-list.ts';
import type { Storage } from '../common/storage.ts';
import { findBlob } from './blob-record.ts';
import { readContainerId } from './rows.ts';

export interface CommittedBlocks {
  /** Of the content that was looked at; undefined: there was none. */
  readonly contentId: string | undefined;
  readonly pieces: ReadonlyMap<string, Segment>;
  /** It has no other pieces than these. */
  readonly isComplete: boolean;
}

export const NONE_COMMITTED: CommittedBlocks = { contentId: undefined, pieces: new Map(), isComplete: true };

const SLICE_BLOCKS = 5_000;

interface Wanted {
  container: string;
  blob: string;
  blocks: readonly BlockChoice[];
}

/** Those of its blocks that the list may mean. */
export function findCommitted(storage: Storage, list: Wanted): Promise<CommittedBlocks> {
  return storage.partition.read((at) => readCommitted(at, storage, list));
}

export async function readCommitted(
  at: Snapshot,
  storage: Storage,
  { container, blob, blocks }: Wanted,
): Promise<CommittedBlocks> {
  const { account, content } = storage;
  const wanted = new Set<string>();
  for (const [at, { source, id }] of blocks.entries()) {
    if (source !== 'Uncommitted') wanted.add(id);
    if (at % SLICE_BLOCKS === SLICE_BLOCKS - 1) await nextSlice();
  }
  const pieces = new Map<string, Segment>();
  const head = await findBlob(at, account, await readContainerId(at, storage, container), blob);
  if (head?.contentId === undefined) return NONE_COMMITTED;
  let from = 0;
  let others = 0;
  while (wanted.size > 0) {
    const found = await content.segmentsFrom(at, account, parseId(head.contentId), from);
    if (found.segments.length === 0) break;
    from = found.offset;
    for (const piece of found.segments) {
      from += piece.length;
      if (piece.label !== undefined && wanted.delete(piece.label)) pieces.set(piece.label, piece);
      else others++;
    }
    await nextSlice();
  }
  return { contentId: head.contentId, pieces, isComplete: others === 0 && from === head.length };
}
