/** The blocks of a blob as it is. Its content never changes, so they can be looked up before the transaction that uses them, in slices. */
import { nextSlice } from '../../base/time-slices.ts';
import { idOf, type Piece } from '../../content/rows.ts';
import type { Snapshot } from '../../partition/partition.ts';
import type { BlockChoice } from '../../rules/block-list.ts';
import type { Storage } from '../common/storage.ts';
import { findBlob } from './blob-record.ts';
import { containerIdAt } from './rows.ts';

export interface Committed {
  /** Of the content that was looked at; undefined: there was none. */
  readonly contentId: string | undefined;
  readonly pieces: ReadonlyMap<string, Piece>;
  /** It has no other pieces than these. */
  readonly isAll: boolean;
}

export const NONE_COMMITTED: Committed = { contentId: undefined, pieces: new Map(), isAll: true };

const NOTED_AT_ONCE = 5_000;

interface Wanted {
  container: string;
  blob: string;
  blocks: readonly BlockChoice[];
}

/** Those of its blocks that the list may mean. */
export function findCommitted(storage: Storage, list: Wanted): Promise<Committed> {
  return storage.partition.read((at) => committedAt(at, storage, list));
}

export async function committedAt(
  at: Snapshot,
  storage: Storage,
  { container, blob, blocks }: Wanted,
): Promise<Committed> {
  const { account, content } = storage;
  const wanted = new Set<string>();
  for (const [at, { source, id }] of blocks.entries()) {
    if (source !== 'Uncommitted') wanted.add(id);
    if (at % NOTED_AT_ONCE === NOTED_AT_ONCE - 1) await nextSlice();
  }
  const pieces = new Map<string, Piece>();
  const head = await findBlob(at, account, await containerIdAt(at, storage, container), blob);
  if (head?.contentId === undefined) return NONE_COMMITTED;
  let from = 0;
  let others = 0;
  while (wanted.size > 0) {
    const found = await content.piecesFrom(at, account, idOf(head.contentId), from);
    if (found.pieces.length === 0) break;
    from = found.offset;
    for (const piece of found.pieces) {
      from += piece.length;
      if (piece.label !== undefined && wanted.delete(piece.label)) pieces.set(piece.label, piece);
      else others++;
    }
    await nextSlice();
  }
  return { contentId: head.contentId, pieces, isAll: others === 0 && from === head.length };
}
