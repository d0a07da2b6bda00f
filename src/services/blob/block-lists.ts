/** Put Block List: a short list is one commit; a long one is built invisibly in slices, and one commit swaps it in. */
import { nextSlice } from '../../base/time-slices.ts';
import { type ChunkRef, formatId, type Segment } from '../../content/rows.ts';
import { crc64Base64 } from '../../hashing/hasher.ts';
import { type Transaction, Unavailable } from '../../partition/partition.ts';
import { encodeBytes } from '../../partition/values.ts';
import { type BlockChoice, COMMITTED_BLOCKS_MAX, listsToSearch, parseBlockId } from '../../rules/block-list.ts';
import { formatEtag } from '../../rules/conditions.ts';
import type { Tags } from '../../rules/tags.ts';
import { type Tier, tierAfterWrite } from '../../rules/tiers.ts';
import type { Storage } from '../common/storage.ts';
import { type CommittedBlocks, findCommitted, NONE_COMMITTED, readCommitted } from './block-list-plan.ts';
import { blockKeyFromId } from './blocks.ts';
import { fail } from './errors.ts';
import { putLongList } from './long-block-lists.ts';
import {
  type BlobInput,
  checkWritable,
  checkWriteInput,
  parseMetadata,
  parseOptionalTier,
  type SentMetadata,
} from './request-checks.ts';
import {
  type ContentHeaders,
  decodeBlock,
  inlineKey,
  type Metadata,
  removeUncommitted,
  txQueueKey,
  type UncommittedId,
} from './rows.ts';
import { parseTags } from './tags.ts';
import { checkPut, putBlobRecord, readTarget, releaseReplaced, type WriteTarget } from './write-target.ts';

export function checkBlockCount(blocks: number): void {
  if (blocks > COMMITTED_BLOCKS_MAX) throw fail('BlockListTooLong');
}

export interface PutBlockListInput extends BlobInput {
  readonly content: ContentHeaders;
  readonly metadata: SentMetadata;
  readonly tier?: string | undefined;
  /** The header x-ms-tags. */
  readonly tags?: string | undefined;
  /** With ids as they were sent. */
  readonly blocks: readonly BlockChoice[];
}

/** A list whose request is valid in itself, with canonical lease id, metadata, tags and block ids. */
export interface CheckedBlockList extends Omit<PutBlockListInput, 'metadata' | 'tags' | 'tier'> {
  readonly metadata: Metadata;
  readonly tags: Tags | undefined;
  readonly tier: Tier | undefined;
}

/** A list with at most this many blocks and chunks is one commit: each block is a row, and each chunk may be one. */
const SHORT_BLOCKS_MAX = 400;
const SHORT_CHUNKS_MAX = 800;
const CHECKED_PER_SLICE = 2_000;
/** Attempts to resolve a list while other writers change the blocks that it names. */
const ATTEMPTS_MAX = 20;
/** The attempts that look committed blocks up before the transaction; later ones read them in it, which cannot be overtaken. */
const OPTIMISTIC_ATTEMPTS = 3;

export async function putBlockList(storage: Storage, input: PutBlockListInput) {
  const leaseId = checkWriteInput(input);
  const metadata = parseMetadata(input.metadata);
  checkBlockCount(input.blocks.length);
  const tier = parseOptionalTier(input.tier);
  const tags = parseTags(input.tags);
  const blocks = await parseBlockIds(input.blocks);
  const list: CheckedBlockList = { ...input, leaseId, metadata, tags, tier, blocks };
  checkWritable(storage, input.container);
  let short = list.blocks.length <= SHORT_BLOCKS_MAX;
  let committed: CommittedBlocks | undefined = NONE_COMMITTED;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const done = short ? await putShortList(storage, list, committed) : await putLongList(storage, list);
    if (typeof done === 'object') {
      storage.sweeper.wake();
      return { etag: formatEtag(done.timestamp), modified: done.timestamp };
    }
    if (done === 'too long') short = false;
    else if (short) committed = attempt < OPTIMISTIC_ATTEMPTS ? await findCommitted(storage, list) : undefined;
  }
  throw new Unavailable('Too many others write here at the same time.');
}

/** @param committed undefined: they are read in the transaction */
async function putShortList(
  storage: Storage,
  list: CheckedBlockList,
  committed: CommittedBlocks | undefined,
): Promise<{ readonly timestamp: bigint } | 'retry' | 'too long'> {
  const { account, content, partition } = storage;
  const id = content.newId();
  const { timestamp, value } = await partition.transact(txQueueKey(account, list.container, list.blob), async (tx) => {
    const target = await readTarget(tx, storage, list);
    checkPut(tx, storage, target, list, list.leaseId);
    const resolved = await resolveBlocks(tx, storage, target, list, committed);
    if (resolved === 'retry') return resolved;
    const { segments, used, sharedRefs } = resolved;
    if (segments.reduce((sum, { chunkRefs }) => sum + chunkRefs.length, 0) > SHORT_CHUNKS_MAX) return 'too long';
    await content.increfChunks(tx, account, sharedRefs);
    const remaining = removeUsedBlocks(tx, storage, target, used);
    await releaseReplaced(tx, storage, remaining, { keepsInlineRow: segments.length === 0 });
    const tier = tierAfterWrite(target.blob?.tier, list.tier, tx.now);
    const record = { content: list.content, metadata: list.metadata, tags: list.tags, tier };
    if (segments.length === 0) {
      tx.put(inlineKey(account, target.containerId, target.name), encodeBytes(NO_BYTES));
      await putBlobRecord(tx, storage, target, { ...record, length: 0, crc64: crc64Base64(NO_BYTES) });
    } else {
      content.addContent(tx, account, id, segments);
      const length = segments.reduce((sum, segment) => sum + segment.length, 0);
      await putBlobRecord(tx, storage, target, { ...record, length, contentId: formatId(id) });
    }
    return undefined;
  });
  return value ?? { timestamp };
}

const NO_BYTES = Buffer.alloc(0);

/** The chunk references of the used blocks pass to the new content. If all are used, the returned target has no uncommitted blocks. */
function removeUsedBlocks(
  tx: Transaction,
  storage: Storage,
  target: WriteTarget,
  used: ReadonlySet<string>,
): WriteTarget {
  const { uncommitted } = target;
  for (const blockId of used) tx.remove(blockKeyFromId(storage, uncommitted!.id, blockId));
  if (uncommitted?.count !== used.size) return target;
  removeUncommitted(tx, storage.account, target.containerId, target.name, uncommitted);
  return { ...target, uncommitted: undefined };
}

interface ResolvedBlocks {
  readonly segments: readonly Segment[];
  /** The ids of the uncommitted blocks among them. */
  readonly used: ReadonlySet<string>;
  /** Chunks that another content or block references as well. */
  readonly sharedRefs: readonly ChunkRef[];
}

async function resolveBlocks(
  tx: Transaction,
  storage: Storage,
  { blob, uncommitted }: WriteTarget,
  list: CheckedBlockList,
  known: CommittedBlocks | undefined,
): Promise<ResolvedBlocks | 'retry'> {
  const committed = known ?? (await readCommitted(tx, storage, list));
  const uncommittedById = await readUncommittedBlocks(tx, storage, uncommitted?.id, list.blocks);
  const segments: Segment[] = [];
  const used = new Set<string>();
  const sharedRefs: ChunkRef[] = [];
  for (const { source, id } of list.blocks) {
    const from = listsToSearch(source).find((name) => name === 'committed' || uncommittedById.has(id));
    if (from === undefined) throw fail('InvalidBlockList');
    if (from === 'committed' && blob?.contentId !== committed.contentId) return 'retry';
    const segment = from === 'committed' ? committed.segments.get(id) : uncommittedById.get(id);
    if (!segment) throw fail('InvalidBlockList');
    if (from === 'committed' || used.has(id)) sharedRefs.push(...segment.chunkRefs);
    else used.add(id);
    segments.push({ ...segment, label: id });
  }
  return { segments, used, sharedRefs };
}

async function readUncommittedBlocks(
  tx: Transaction,
  storage: Storage,
  uncommittedId: UncommittedId | undefined,
  blocks: readonly BlockChoice[],
): Promise<Map<string, Segment>> {
  const found = new Map<string, Segment>();
  if (!uncommittedId) return found;
  const ids = [...new Set(blocks.map(({ id }) => id))];
  const rows = await tx.getMany(ids.map((id) => blockKeyFromId(storage, uncommittedId, id)));
  for (const [i, row] of rows.entries()) if (row) found.set(ids[i]!, decodeBlock(row));
  return found;
}

/** An id that is not base64 names no block. */
async function parseBlockIds(blocks: readonly BlockChoice[]): Promise<BlockChoice[]> {
  const parsed: BlockChoice[] = [];
  for (const { source, id: text } of blocks) {
    const id = parseBlockId(text);
    if (id === undefined) throw fail('InvalidBlockList');
    parsed.push({ source, id });
    if (parsed.length % CHECKED_PER_SLICE === 0) await nextSlice();
  }
  return parsed;
}
