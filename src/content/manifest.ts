/**
 * Manifests: immutable lists of segments, stored in pages, reference-counted, removed by the sweeper. The functions only read and
 * write rows, so a transaction may run them again.
 */
import assert from 'node:assert';
import { type Key, keyAfter } from '../partition/keys.ts';
import type { Snapshot, Transaction } from '../partition/partition.ts';
import type { ReleasedContent } from './content.ts';
import { changeRefcounts } from './refcounts.ts';
import {
  type ChunkRef,
  type Content,
  type ContentDeletion,
  type ContentId,
  contentKey,
  decodeContent,
  decodeContentDeletion,
  decodeManifestPage,
  deletionKey,
  encodeContent,
  encodeContentDeletion,
  encodeManifestPage,
  formatId,
  MANIFEST_PAGE_CHUNKS_MAX,
  manifestPageKey,
  manifestPageOffset,
  manifestPagesIn,
  type RefCounting,
  type Segment,
  sliceRef,
  uncountedFlag,
} from './rows.ts';

export function addContent(tx: Transaction, account: bigint, id: ContentId, segments: readonly Segment[]): void {
  const length = addSegments(tx, account, id, 0, segments);
  tx.put(contentKey(account, id), encodeContent({ kind: 'list', length, refs: 1 }));
}

/** @returns the offset after the last segment */
export function addSegments(
  tx: Transaction,
  account: bigint,
  id: ContentId,
  offset: number,
  segments: readonly Segment[],
): number {
  let end = offset;
  for (const page of splitIntoPages(segments)) {
    tx.put(manifestPageKey(account, id, end), encodeManifestPage(page));
    for (const { length } of page) end += length;
  }
  return end;
}

/** @returns the key of the pending entry in the deletion queue */
export function beginPending(
  tx: Transaction,
  account: bigint,
  id: ContentId,
  counting?: RefCounting,
  kind?: Content['kind'],
): Key {
  const key = deletionKey(account, tx.timestamp, formatId(id));
  tx.put(key, encodeContentDeletion({ ...contentDeletion(id, counting, kind), pending: true }));
  return key;
}

export async function finishPending(
  tx: Transaction,
  account: bigint,
  id: ContentId,
  pendingKey: Key,
  length: number,
): Promise<void> {
  await endPending(tx, id, pendingKey);
  completeContent(tx, account, id, length);
}

/** The caller adds the content. */
export async function endPending(tx: Transaction, id: ContentId, pendingKey: Key): Promise<void> {
  const row = await tx.get(pendingKey);
  if (!row || !decodeContentDeletion(row)?.pending) throw new Error(`content ${formatId(id)} is not pending any more`);
  tx.remove(pendingKey);
}

export function completeContent(tx: Transaction, account: bigint, id: ContentId, length: number): void {
  tx.put(contentKey(account, id), encodeContent({ kind: 'list', length, refs: 1 }));
}

export function discardContent(tx: Transaction, account: bigint, id: ContentId, kind?: Content['kind']): void {
  abandonPending(tx, id, deletionKey(account, tx.timestamp, formatId(id)), undefined, kind);
}

export function abandonPending(
  tx: Transaction,
  id: ContentId,
  pendingKey: Key,
  counting?: RefCounting,
  kind?: Content['kind'],
): void {
  tx.put(pendingKey, encodeContentDeletion(contentDeletion(id, counting, kind)));
}

export async function increfContent(tx: Transaction, account: bigint, id: ContentId): Promise<void> {
  const content = await readContent(tx, account, id);
  tx.put(contentKey(account, id), encodeContent({ ...content, refs: content.refs + 1 }));
}

export async function decrefContent(tx: Transaction, account: bigint, id: ContentId): Promise<ReleasedContent> {
  const content = await readContent(tx, account, id);
  const refs = content.refs - 1;
  if (refs > 0) {
    tx.put(contentKey(account, id), encodeContent({ ...content, refs }));
    return 'kept';
  }
  // Held generations, of snapshots and long reads, have rows that the sweeper removes.
  if (content.kind === 'ranges' && content.first && content.newest === 0) {
    // It has no pages that the sweeper would have to remove, and its readers have its bytes.
    tx.remove(contentKey(account, id));
    return 'removed';
  }
  queueDeletion(tx, account, id, 'counted', content.kind);
  return 'queued';
}

export async function isUnshared(at: Snapshot, account: bigint, id: ContentId): Promise<boolean> {
  return (await readContent(at, account, id)).refs === 1;
}

export function transferRefs(tx: Transaction, account: bigint, id: ContentId): void {
  queueDeletion(tx, account, id, 'uncounted');
}

function queueDeletion(
  tx: Transaction,
  account: bigint,
  id: ContentId,
  counting: RefCounting,
  kind?: Content['kind'],
): void {
  tx.remove(contentKey(account, id));
  tx.put(deletionKey(account, tx.timestamp, formatId(id)), encodeContentDeletion(contentDeletion(id, counting, kind)));
}

function contentDeletion(id: ContentId, counting?: RefCounting, kind?: Content['kind']): ContentDeletion {
  return {
    ...{ kind: 'content', content: formatId(id) },
    ...uncountedFlag(counting),
    ...(kind === 'ranges' && { ranges: true }),
  };
}

/** One page per call, from the front. If a page is too large for one commit, the rest of it stays under its key. */
export async function sweepContent(tx: Transaction, account: bigint, id: ContentId): Promise<boolean> {
  assert(!(await tx.get(contentKey(account, id))), `content ${formatId(id)} is in use`);
  const [page, next] = await tx.scan(manifestPagesIn(account, id), { limit: 2 });
  if (!page) return true;
  const released: ChunkRef[] = [];
  const rest: Segment[] = [];
  for (const segment of decodeManifestPage(page)) {
    const room = MANIFEST_PAGE_CHUNKS_MAX - released.length;
    released.push(...segment.chunkRefs.slice(0, room));
    if (segment.chunkRefs.length > room) rest.push({ ...segment, chunkRefs: segment.chunkRefs.slice(room) });
  }
  await changeRefcounts(tx, account, released, -1);
  if (rest.length > 0) tx.put(page.key, encodeManifestPage(rest));
  else tx.remove(page.key);
  return rest.length === 0 && !next;
}

export async function segmentsFrom(
  at: Snapshot,
  account: bigint,
  id: ContentId,
  offset: number,
): Promise<{ offset: number; segments: Segment[] }> {
  const { from } = manifestPagesIn(account, id);
  const [row] = await at.scan(
    { from, to: keyAfter(manifestPageKey(account, id, offset)) },
    { limit: 1, reverse: true },
  );
  if (!row) return { offset, segments: [] };
  const segments = decodeManifestPage(row);
  let begin = manifestPageOffset(row.key);
  const first = segments.findIndex(({ length }) => {
    if (begin + length > offset) return true;
    begin += length;
    return false;
  });
  return first < 0 ? { offset, segments: [] } : { offset: begin, segments: segments.slice(first) };
}

export async function chunkRefsIn(
  at: Snapshot,
  account: bigint,
  id: ContentId,
  from: number,
  to: number,
  refsMax: number,
): Promise<ChunkRef[] | undefined> {
  const found: ChunkRef[] = [];
  for (let next = from; next < to; ) {
    const { offset, segments } = await segmentsFrom(at, account, id, next);
    if (segments.length === 0) throw new Error(`content ${formatId(id)} has no byte ${next}`);
    next = offset;
    for (const ref of segments.flatMap(({ chunkRefs }) => chunkRefs)) {
      const begin = next;
      next += ref.length;
      if (begin >= to || next <= from) continue;
      if (found.length === refsMax) return undefined;
      found.push(sliceRef(ref, Math.max(from - begin, 0), Math.min(to - begin, ref.length)));
    }
  }
  return found;
}

async function readContent(at: Snapshot, account: bigint, id: ContentId): Promise<Content> {
  const row = await at.get(contentKey(account, id));
  if (!row) throw new Error(`content ${formatId(id)} has no row, although it is in use`);
  return decodeContent(row);
}

function* splitIntoPages(segments: readonly Segment[]): Iterable<readonly Segment[]> {
  let page: Segment[] = [];
  let chunks = 0;
  for (const segment of segments) {
    assert(segment.length > 0, 'a segment without bytes');
    if (page.length > 0 && chunks + segment.chunkRefs.length > MANIFEST_PAGE_CHUNKS_MAX) {
      yield page;
      [page, chunks] = [[], 0];
    }
    page.push(segment);
    chunks += segment.chunkRefs.length;
  }
  if (page.length > 0) yield page;
}
