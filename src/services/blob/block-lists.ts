/** Put Block List: a short list is one commit, a long one is prepared in slices and then swapped in by one. */

import { nextSlice } from '../../base/time-slices.ts';
import { type ContentId, type Part, type Piece, textOf } from '../../content/rows.ts';
import { crc64Base64 } from '../../hashing/hasher.ts';
import { type Transaction, Unavailable } from '../../partition/partition.ts';
import { encodeBytes } from '../../partition/values.ts';
import { type BlockChoice, COMMITTED_BLOCKS_MAX, listsOf, parseBlockId } from '../../rules/block-list.ts';
import { etagOf } from '../../rules/etag.ts';
import type { Storage } from '../common/storage.ts';
import { type BlobInput, checkWrite } from './blobs.ts';
import { mayPut, putHead } from './block-blobs.ts';
import { blockKeyOf } from './blocks.ts';
import { type Committed, committedAt, findCommitted, NONE_COMMITTED } from './committed-blocks.ts';
import { fail } from './errors.ts';
import { putLongList } from './long-block-lists.ts';
import { metadataOf, type SentMetadata } from './request-checks.ts';
import { anchorOf, type ContentHeaders, decodeBlock, inlineKey, type Metadata, removeStage } from './rows.ts';
import { letGo, type Target } from './write-target.ts';

export function checkBlockCount(blocks: number): void {
  if (blocks > COMMITTED_BLOCKS_MAX) throw fail('BlockListTooLong');
}

export interface PutBlockListInput extends BlobInput {
  readonly content: ContentHeaders;
  readonly metadata: SentMetadata;
  /** Ids as they were sent. */
  readonly blocks: readonly BlockChoice[];
}

/** Everything about the request itself is in order. */
export interface CheckedBlockList extends Omit<PutBlockListInput, 'metadata'> {
  readonly metadata: Metadata;
}

/** One commit takes so many; each block is a row, and each part may be one. */
const SHORT_BLOCKS_MAX = 400;
const SHORT_PARTS_MAX = 800;
const CHECKED_AT_ONCE = 2_000;
/** How often a list is looked up again because what it names has changed meanwhile. */
const ATTEMPTS_MAX = 20;

export async function putBlockList(storage: Storage, input: PutBlockListInput) {
  const leaseId = checkWrite(input);
  const metadata = metadataOf(input.metadata);
  checkBlockCount(input.blocks.length);
  const list: CheckedBlockList = { ...input, leaseId, metadata, blocks: await checkIds(input.blocks) };
  let short = list.blocks.length <= SHORT_BLOCKS_MAX;
  let committed: Committed | undefined = NONE_COMMITTED;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const done = short ? await putShortList(storage, list, committed) : await putLongList(storage, list);
    if (typeof done === 'object') {
      storage.sweeper.wake();
      return { etag: etagOf(done.stamp), modified: done.stamp };
    }
    if (done === 'too long') short = false;
    else if (short) committed = attempt < 3 ? await findCommitted(storage, list) : undefined;
  }
  throw new Unavailable('Too many others write here at the same time.');
}

type Done = { readonly stamp: bigint };

async function putShortList(
  storage: Storage,
  list: CheckedBlockList,
  committed: Committed | undefined,
): Promise<Done | 'again' | 'too long'> {
  const { account, content, partition } = storage;
  const id = content.newId();
  const { stamp, value } = await partition.transact(anchorOf(account, list.container, list.blob), async (tx) => {
    const target = await mayPut(tx, storage, list, list.leaseId);
    const chosen = await choose(tx, storage, target, list.blocks, committed ?? (await committedAt(tx, storage, list)));
    if (chosen === 'again') return chosen;
    const { pieces, used, raised } = chosen;
    if (pieces.reduce((sum, { parts }) => sum + parts.length, 0) > SHORT_PARTS_MAX) return 'too long';
    await content.raiseParts(tx, account, raised);
    const { stage } = target;
    // The references of these blocks are those of the pieces from now on.
    for (const blockId of used) tx.remove(blockKeyOf(storage, stage!.id, blockId));
    const usedUp = stage !== undefined && stage.count === used.size;
    if (usedUp) removeStage(tx, account, target.container, target.name, stage);
    await letGo(tx, storage, usedUp ? { ...target, stage: undefined } : target, {
      inline: pieces.length === 0,
    });
    writeBlob(tx, storage, target, list, id, pieces);
    return undefined;
  });
  return value ?? { stamp };
}

interface Chosen {
  readonly pieces: readonly Piece[];
  /** Ids of uncommitted blocks. */
  readonly used: ReadonlySet<string>;
  /** Parts that something else names, too. */
  readonly raised: readonly Part[];
}

async function choose(
  tx: Transaction,
  storage: Storage,
  { blob, stage }: Target,
  blocks: readonly BlockChoice[],
  committed: Committed,
): Promise<Chosen | 'again'> {
  const uncommitted = await uncommittedAt(tx, storage, stage?.id, blocks);
  const pieces: Piece[] = [];
  const used = new Set<string>();
  const raised: Part[] = [];
  for (const { source, id } of blocks) {
    const from = listsOf(source).find((name) => name === 'committed' || uncommitted.has(id));
    if (from === undefined) throw fail('InvalidBlockList');
    if (from === 'committed' && blob?.contentId !== committed.contentId) return 'again';
    const piece = from === 'committed' ? committed.pieces.get(id) : uncommitted.get(id);
    if (!piece) throw fail('InvalidBlockList');
    if (from === 'committed' || used.has(id)) raised.push(...piece.parts);
    else used.add(id);
    pieces.push({ ...piece, label: id });
  }
  return { pieces, used, raised };
}

async function uncommittedAt(
  tx: Transaction,
  storage: Storage,
  stage: ContentId | undefined,
  blocks: readonly BlockChoice[],
): Promise<Map<string, Piece>> {
  const found = new Map<string, Piece>();
  if (!stage) return found;
  const ids = [...new Set(blocks.map(({ id }) => id))];
  const rows = await tx.getMany(ids.map((id) => blockKeyOf(storage, stage, id)));
  for (const [i, row] of rows.entries()) if (row) found.set(ids[i]!, decodeBlock(row));
  return found;
}

/** No block has an id that is none. */
async function checkIds(blocks: readonly BlockChoice[]): Promise<BlockChoice[]> {
  const checked: BlockChoice[] = [];
  for (const { source, id } of blocks) {
    const known = parseBlockId(id);
    if (known === undefined) throw fail('InvalidBlockList');
    checked.push({ source, id: known });
    if (checked.length % CHECKED_AT_ONCE === 0) await nextSlice();
  }
  return checked;
}

const NO_BYTES = Buffer.alloc(0);

function writeBlob(
  tx: Transaction,
  storage: Storage,
  target: Target,
  { content, metadata }: CheckedBlockList,
  id: ContentId,
  pieces: readonly Piece[],
): void {
  if (pieces.length === 0) {
    tx.put(inlineKey(storage.account, target.container, target.name), encodeBytes(NO_BYTES));
    putHead(tx, storage, target, { length: 0, crc64: crc64Base64(NO_BYTES), content, metadata });
    return;
  }
  storage.content.addContent(tx, storage.account, id, pieces);
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  putHead(tx, storage, target, { length, contentId: textOf(id), content, metadata });
}
