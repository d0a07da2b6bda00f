/** The recount of all references between the rows of one snapshot, for `check`. */
import { chunksIn } from '../../content/ranges/map-page.ts';
import { decodeMapPage } from '../../content/ranges/map-page-codec.ts';
import {
  type ChunkRef,
  type Content,
  decodeChunk,
  decodeContent,
  decodeManifestPage,
  formatId,
  manifestPageOffset,
  manifestPagesIn,
  parseId,
} from '../../content/rows.ts';
import { decodeKey, type Range } from '../../partition/keys.ts';
import type { Row } from '../../partition/partition.ts';
import { decodeCounter } from '../../partition/values.ts';
import { isPending } from '../../rules/copy-state.ts';
import { decodeBlobRecord, parseBlobRecord } from '../blob/blob-record.ts';
import { decodeDeletedBlob, stampInKey } from '../blob/old-rows.ts';
import { type BlobRecord, blocksIn, decodeBlock, decodeUncommitted } from '../blob/rows.ts';
import { decodeAccount, removedAccountId, removedAccountName } from '../common/account-rows.ts';
import { decodeDeletedName } from '../common/deleted-names.ts';
import { decodeDeletion, keyPrefixesIn } from '../common/deletions.ts';
import { decodeName } from '../common/names.ts';
import { decodeRunningCopy } from '../common/running-copies.ts';
import type { AccountId } from '../common/storage.ts';
import { decodeNode } from '../file/node-rows.ts';
import type { NodeId } from '../file/rows.ts';
import { decodeSnapshot } from '../file/snapshot-rows.ts';
import { isHourCounter } from '../queue/message-rows.ts';
import { decodeQueue } from '../queue/rows.ts';
import { countHeld, countRangesDeletion } from './check-ranges.ts';

/** Keys are account and id: `qualifiedId`. */
export interface ReferenceCounts {
  /** The names of existing ones, and of removed ones that are to be swept. */
  readonly accounts: Map<AccountId, string>;
  /** Containers, queues, tables and shares, each with its service. */
  readonly containers: Set<string>;
  /** Containers, shares, contents and uncommitted blocks that are to be swept. */
  readonly deletionQueue: Set<string>;
  /** Those among them whose segments are not counted as users of their chunks, and the ranges of their rows. */
  readonly uncounted: Set<string>;
  readonly uncountedRows: Range[];
  /** Contents that running copies build. */
  readonly building: Set<string>;
  readonly contents: Map<string, ContentCount>;
  readonly uncommitted: Map<string, UncommittedCount>;
  readonly chunks: Map<string, ChunkCount>;
  readonly live: Map<string, LiveCount>;
  /** By content: the held generations of its range map. */
  readonly held: Map<string, Set<number>>;
  /** Content and generation of every older state. */
  readonly shown: Set<string>;
  /** Contents whose current state a record names. */
  readonly current: Set<string>;
  /** By share: the generations of its snapshots. */
  readonly snapshotsOf: Map<string, number[]>;
  /** By share: the directories, each with the one that it is in. */
  readonly directories: Map<string, Map<NodeId, NodeId>>;
  /** By share: the bytes of its files. */
  readonly usage: Map<string, UsageCount>;
  /** By queue and generation. */
  readonly queues: Map<string, QueueCount>;
  /** By container and key. */
  readonly tagged: Map<string, TaggedCount>;
}

export interface ContentCount {
  /** Undefined: it has no row. */
  row?: Content;
  blobs: number;
  /** The offset after the last manifest page, or after the last visible byte of a range map. */
  end: number;
  /** The first byte that is in no manifest page, or in two. */
  gap?: number;
}

interface UncommittedCount {
  /** An uncommitted-blocks row of a blob references it. */
  hasBlob?: true;
  blocks: number;
}

interface ChunkCount {
  row?: { readonly length: number };
  users: number;
}

interface LiveCount {
  row: number;
  bytes: number;
}

interface QueueCount {
  /** The queue whose generation this is. */
  name?: string;
  messages: number;
  counted: number;
}

interface UsageCount {
  counted: bigint;
  bytes: bigint;
}

interface TaggedCount {
  counted: number;
  blobs: number;
}

export const taggedId = (account: unknown, container: unknown, key: unknown): string =>
  qualifiedId(account, `${container} ${key}`);

export const qualifiedId = (account: unknown, id: unknown): string => `${account}/${id}`;

export function newReferenceCounts(): ReferenceCounts {
  return {
    accounts: new Map(),
    containers: new Set(),
    deletionQueue: new Set(),
    uncounted: new Set(),
    uncountedRows: [],
    building: new Set(),
    contents: new Map(),
    uncommitted: new Map(),
    chunks: new Map(),
    live: new Map(),
    held: new Map(),
    shown: new Set(),
    current: new Set(),
    snapshotsOf: new Map(),
    directories: new Map(),
    usage: new Map(),
    queues: new Map(),
    tagged: new Map(),
  };
}

/** Throws if a row cannot be decoded, which is reported when the row itself is checked. */
export function countRow(counts: ReferenceCounts, row: Row): void {
  const [account, type, ...rest] = decodeKey(row.key) as [AccountId | string, string, ...unknown[]];
  if (typeof account !== 'bigint') {
    if (account === 'account') {
      const { id, name } = decodeAccount(row);
      counts.accounts.set(id, name);
    }
    if (account === 'removed') counts.accounts.set(removedAccountId(row.key), removedAccountName(row));
    return;
  }
  const content = (id: unknown) => getOrCreate(counts.contents, qualifiedId(account, id), { blobs: 0, end: 0 });
  const uncommitted = (id: unknown) => getOrCreate(counts.uncommitted, qualifiedId(account, id), { blocks: 0 });
  const chunk = (id: unknown) => getOrCreate(counts.chunks, qualifiedId(account, id), { users: 0 });
  const queue = (id: unknown, gen: unknown) =>
    getOrCreate(counts.queues, qualifiedId(account, `${id}-${gen}`), { messages: 0, counted: 0 });
  const live = (extent: unknown) => getOrCreate(counts.live, qualifiedId(account, extent), { row: 0, bytes: 0 });
  const tagged = (id: unknown, key: unknown) =>
    getOrCreate(counts.tagged, taggedId(account, id, key), { counted: 0, blobs: 0 });
  const countUsers = (chunkRefs: readonly ChunkRef[]) => {
    for (const ref of chunkRefs) chunk(formatId(ref.chunk)).users++;
  };
  const usage = (share: unknown) => getOrCreate(counts.usage, qualifiedId(account, share), { counted: 0n, bytes: 0n });
  const countState = ({ contentId, generation }: Partial<Pick<BlobRecord, 'contentId' | 'generation'>>) => {
    if (contentId === undefined) return;
    content(contentId).blobs++;
    if (generation === undefined) counts.current.add(qualifiedId(account, contentId));
    else counts.shown.add(`${qualifiedId(account, contentId)} ${generation}`);
  };
  switch (type) {
    case 'n':
      counts.containers.add(qualifiedId(account, `${rest[0]} ${decodeName(row)}`));
      if (rest[0] === 'queue') {
        const { id, gen } = decodeQueue(account, row);
        queue(id, gen).name = rest[1] as string;
      }
      return;
    case 'g':
      counts.containers.add(qualifiedId(account, `${rest[0]} ${decodeDeletedName(row).id}`));
      return;
    case 'x': {
      const deletion = decodeDeletion(row);
      if (deletion.kind === 'generation' || deletion.kind === 'void' || deletion.kind === 'merge') {
        countRangesDeletion(counts, account, deletion);
        return;
      }
      if (deletion.kind === 'rows') {
        for (const beginning of keyPrefixesIn(deletion)) counts.deletionQueue.add(`rows ${beginning}`);
        return;
      }
      if (deletion.kind === 'shareSnapshot') {
        counts.deletionQueue.add(`history ${qualifiedId(account, deletion.share)}`);
        counts.deletionQueue.add(`snapshot ${qualifiedId(account, deletion.share)} ${deletion.gen}`);
        return;
      }
      if (deletion.kind === 'snapshots') {
        counts.deletionQueue.add(`snapshots ${qualifiedId(account, `${deletion.container} ${deletion.blob}`)}`);
        return;
      }
      const id = { container: 'container', share: 'share', content: 'content', stage: 'stage' }[
        deletion.kind
      ] as keyof typeof deletion;
      const name = `${deletion.kind} ${qualifiedId(account, deletion[id])}`;
      counts.deletionQueue.add(name);
      if (deletion.kind === 'container' || deletion.kind === 'share' || !deletion.uncounted) return;
      counts.uncounted.add(name);
      const rowsOf = deletion.kind === 'content' ? manifestPagesIn : blocksIn;
      counts.uncountedRows.push(
        rowsOf(account, parseId(deletion.kind === 'content' ? deletion.content : deletion.stage)),
      );
      return;
    }
    case 'b': {
      const record = decodeBlobRecord(row);
      countState(record);
      const { tags } = record;
      for (const [key] of tags) tagged(rest[0], key).blobs++;
      return;
    }
    case 'D':
    case 'V': {
      countState(parseBlobRecord(decodeDeletedBlob(row).record, row));
      return;
    }
    case 'v': {
      if (stampInKey(row.key) === undefined) return;
      countState(decodeBlobRecord(row));
      return;
    }
    case 'j': {
      const node = decodeNode(rest[1] as NodeId, row);
      if (node.kind === 'file') {
        countState(node);
        // The bytes of a copy count from its start.
        usage(rest[0]).bytes += BigInt(isPending(node.copy) ? node.copy!.bytes : node.length);
      } else getOrCreate(counts.directories, qualifiedId(account, rest[0]), new Map()).set(node.id, node.parent);
      return;
    }
    case 'h': {
      const [, kind, id] = rest as [bigint, string, NodeId];
      if (kind !== 'j') return;
      const node = decodeNode(id, row);
      if (node.kind === 'file' && node.contentId !== undefined) content(node.contentId).blobs++;
      return;
    }
    case 'S':
      getOrCreate(counts.snapshotsOf, qualifiedId(account, rest[0]), [] as number[]).push(decodeSnapshot(row).gen);
      return;
    case '$':
      usage(rest[0]).counted += decodeCounter(row);
      return;
    case 'r':
    case 'R': {
      const copy = decodeRunningCopy(row);
      if (!copy.inPlace) counts.building.add(qualifiedId(account, formatId(copy.content)));
      return;
    }
    case 'c': {
      content(`${rest[0]}-${rest[1]}`).row = decodeContent(row);
      return;
    }
    case 'm': {
      const segments = decodeManifestPage(row);
      const known = content(`${rest[0]}-${rest[1]}`);
      const offset = manifestPageOffset(row.key);
      if (offset !== known.end) known.gap ??= Math.min(offset, known.end);
      known.end = segments.reduce((end, { length }) => end + length, offset);
      countUsers(segments.flatMap(({ chunkRefs }) => chunkRefs));
      return;
    }
    case 'M':
    case 'o':
      for (const id of chunksIn(decodeMapPage(row).segments)) chunk(formatId(id)).users++;
      return;
    case 'N':
      countHeld(counts, row);
      return;
    case 'u': {
      uncommitted(formatId(decodeUncommitted(row).id)).hasBlob = true;
      return;
    }
    case 'y':
      uncommitted(`${rest[0]}-${rest[1]}`).blocks++;
      countUsers(decodeBlock(row).chunkRefs);
      return;
    case 'k': {
      const { place } = decodeChunk(row);
      chunk(`${rest[0]}-${rest[1]}`).row = { length: place.length };
      live(place.extent).bytes += place.length;
      return;
    }
    case 'l':
      live(rest[0]).row = Number(decodeCounter(row));
      return;
    case 'T':
      tagged(rest[1], rest[0]).counted += Number(decodeCounter(row));
      return;
    case 'q':
      queue(rest[0], rest[1]).messages++;
      return;
    case '#':
      if (isHourCounter(rest[2])) queue(rest[0], rest[1]).counted += Number(decodeCounter(row));
  }
}

/** Reverts `countRow` for a manifest page or block that turns out to be uncounted. */
export function uncountRow(counts: ReferenceCounts, row: Row): void {
  const [account] = decodeKey(row.key);
  for (const { chunkRefs } of decodeManifestPage(row))
    for (const ref of chunkRefs) counts.chunks.get(qualifiedId(account, formatId(ref.chunk)))!.users--;
}

function getOrCreate<T>(map: Map<string, T>, name: string, fresh: T): T {
  const known = map.get(name);
  if (known) return known;
  map.set(name, fresh);
  return fresh;
}
