/** The blocks of a blob as it is. Its content never changes, so they can be looked up before the transaction that uses them, in slices. */
import { idOf, type Piece } from '../../content/rows.ts';
import type { Snapshot } from '../../partition/partition.ts';
import type { BlockChoice } from '../../rules/block-list.ts';
import { nextSlice, type Storage } from '../storage.ts';
import { findBlob } from './heads.ts';
import { containerIdAt } from './rows.ts';

export interface Committed {
  /** Of the content that was looked at; undefined: there was none. */
  readonly contentId: string | undefined;
  readonly pieces: ReadonlyMap<string, Piece>;
}

export const NONE_COMMITTED: Committed = { contentId: undefined, pieces: new Map() };

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
  const wanted = new Set(blocks.filter(({ source }) => source !== 'Uncommitted').map(({ id }) => id));
  const pieces = new Map<string, Piece>();
  const head = await findBlob(at, account, await containerIdAt(at, storage, container), blob);
  if (head?.contentId === undefined) return NONE_COMMITTED;
  for (let from = 0; wanted.size > 0; ) {
    const found = await content.piecesFrom(at, account, idOf(head.contentId), from);
    if (found.pieces.length === 0) break;
    from = found.offset;
    for (const piece of found.pieces) {
      from += piece.length;
      if (piece.label !== undefined && wanted.delete(piece.label)) pieces.set(piece.label, piece);
    }
    await nextSlice();
  }
  return { contentId: head.contentId, pieces };
}
