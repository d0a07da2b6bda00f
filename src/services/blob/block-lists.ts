/** Put Block List: a short list is one commit, a long one is prepared in slices and then swapped in by one. */

import { nextSlice } from '../../base/time-slices.ts';
import { type ChunkRef, type ContentId, formatId, type Segment } from '../../content/rows.ts';
import { crc64Base64 } from '../../hashing/hasher.ts';
import { type Transaction, Unavailable } from '../../partition/partition.ts';
import { encodeBytes } from '../../partition/values.ts';
import { type BlockChoice, COMMITTED_BLOCKS_MAX, listsToSearch, parseBlockId } from '../../rules/block-list.ts';
import { formatEtag } from '../../rules/etag.ts';
import type { Storage } from '../common/storage.ts';
import { type BlobInput, checkWriteInput } from './blobs.ts';
import { checkPut, putBlobRecord } from './block-blobs.ts';
import { blockKeyFromId } from './blocks.ts';
import { type CommittedBlocks, findCommitted, NONE_COMMITTED, readCommitted } from './committed-blocks.ts';
import { fail } from './errors.ts';
import { putLongList } from './long-block-lists.ts';
import { parseMetadata, type SentMetadata } from './request-checks.ts';
import { type ContentHeaders, decodeBlock, inlineKey, type Metadata, removeUncommitted, txQueueKey } from './rows.ts';
import { releaseReplaced, type WriteTarget } from './write-target.ts';

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
  const leaseId = checkWriteInput(input);
  const metadata = parseMetadata(input.metadata);
  checkBlockCount(input.blocks.length);
  const list: CheckedBlockList = { ...input, leaseId, metadata, blocks: await checkBlockIds(input.blocks) };
  let short = list.blocks.length <= SHORT_BLOCKS_MAX;
  let committed: CommittedBlocks | undefined = NONE_COMMITTED;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const done = short ? await putShortList(storage, list, committed) : await putLongList(storage, list);
    if (typeof done === 'object') {
      storage.sweeper.wake();
      return { etag: formatEtag(done.timestamp), modified: done.timestamp };
    }
    if (done === 'too long') short = false;
    else if (short) committed = attempt < 3 ? await findCommitted(storage, list) : undefined;
  }
  throw new Unavailable('Too many others write here at the same time.');
}

type Done = { readonly timestamp: bigint };

async function putShortList(
  storage: Storage,
  list: CheckedBlockList,
  committed: CommittedBlocks | undefined,
): Promise<Done | 'again' | 'too long'> {
  const { account, content, partition } = storage;
  const id = content.newId();
  const { timestamp, value } = await partition.transact(txQueueKey(account, list.container, list.blob), async (tx) => {
    const target = await checkPut(tx, storage, list, list.leaseId);
    const chosen = await resolveBlocks(
      tx,
      storage,
      target,
      list.blocks,
      committed ?? (await readCommitted(tx, storage, list)),
    );
    if (chosen === 'again') return chosen;
    const { pieces, used, raised } = chosen;
    if (pieces.reduce((sum, { chunkRefs }) => sum + chunkRefs.length, 0) > SHORT_PARTS_MAX) return 'too long';
    await content.increfChunks(tx, account, raised);
    const { uncommitted } = target;
    // The references of these blocks are those of the pieces from now on.
    for (const blockId of used) tx.remove(blockKeyFromId(storage, uncommitted!.id, blockId));
    const usedUp = uncommitted !== undefined && uncommitted.count === used.size;
    if (usedUp) removeUncommitted(tx, account, target.container, target.name, uncommitted);
    await releaseReplaced(tx, storage, usedUp ? { ...target, uncommitted: undefined } : target, {
      inline: pieces.length === 0,
    });
    writeBlob(tx, storage, target, list, id, pieces);
    return undefined;
  });
  return value ?? { timestamp };
}

interface ResolvedBlocks {
  readonly pieces: readonly Segment[];
  /** Ids of uncommitted blocks. */
  readonly used: ReadonlySet<string>;
  /** Parts that something else names, too. */
  readonly raised: readonly ChunkRef[];
}

async function resolveBlocks(
  tx: Transaction,
  storage: Storage,
  { blob, uncommitted }: WriteTarget,
  blocks: readonly BlockChoice[],
  committed: CommittedBlocks,
): Promise<ResolvedBlocks | 'again'> {
  const uncommittedById = await readUncommittedBlocks(tx, storage, uncommitted?.id, blocks);
  const pieces: Segment[] = [];
  const used = new Set<string>();
  const raised: ChunkRef[] = [];
  for (const { source, id } of blocks) {
    const from = listsToSearch(source).find((name) => name === 'committed' || uncommittedById.has(id));
    if (from === undefined) throw fail('InvalidBlockList');
    if (from === 'committed' && blob?.contentId !== committed.contentId) return 'again';
    const piece = from === 'committed' ? committed.pieces.get(id) : uncommittedById.get(id);
    if (!piece) throw fail('InvalidBlockList');
    if (from === 'committed' || used.has(id)) raised.push(...piece.chunkRefs);
    else used.add(id);
    pieces.push({ ...piece, label: id });
  }
  return { pieces, used, raised };
}

async function readUncommittedBlocks(
  tx: Transaction,
  storage: Storage,
  stage: ContentId | undefined,
  blocks: readonly BlockChoice[],
): Promise<Map<string, Segment>> {
  const found = new Map<string, Segment>();
  if (!stage) return found;
  const ids = [...new Set(blocks.map(({ id }) => id))];
  const rows = await tx.getMany(ids.map((id) => blockKeyFromId(storage, stage, id)));
  for (const [i, row] of rows.entries()) if (row) found.set(ids[i]!, decodeBlock(row));
  return found;
}

/** No block has an id that is none. */
async function checkBlockIds(blocks: readonly BlockChoice[]): Promise<BlockChoice[]> {
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
  target: WriteTarget,
  { content, metadata }: CheckedBlockList,
  id: ContentId,
  pieces: readonly Segment[],
): void {
  if (pieces.length === 0) {
    tx.put(inlineKey(storage.account, target.container, target.name), encodeBytes(NO_BYTES));
    putBlobRecord(tx, storage, target, { length: 0, crc64: crc64Base64(NO_BYTES), content, metadata });
    return;
  }
  storage.content.addContent(tx, storage.account, id, pieces);
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  putBlobRecord(tx, storage, target, { length, contentId: formatId(id), content, metadata });
}
