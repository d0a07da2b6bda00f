/** The content of a file: a range map whose generations are those of the share, and which exists from the first write on. */
import { type ByteRange, NO_END, type RangeMap, type SharedSource } from '../../content/ranges/range-maps.ts';
import { type ContentId, formatId, parseId } from '../../content/rows.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { divideClear } from '../../rules/file/ranges.ts';
import type { PlanRanges } from '../common/content-reads.ts';
import { type StagedBytes, writeStaged } from '../common/staged-bytes.ts';
import type { Storage } from '../common/storage.ts';
import { contentGeneration, contentPlace } from './generations.ts';
import type { FoundFile } from './namespace.ts';
import type { File, FileRecord } from './node-rows.ts';
import type { Share } from './rows.ts';
import { charge } from './usage.ts';

type Stores = Pick<Storage, 'account' | 'content'>;

/** What is read of a file that was never written. No content has this id. */
const NOTHING_WRITTEN: RangeMap = { id: { epoch: 0n, number: 0n }, gen: 1, newest: 0, voids: [], lastVoid: 0 };

/** `writtenIn`: the generation of the last write, or of a long read since. */
export async function readFileMap(
  at: Snapshot,
  { account, content }: Stores,
  share: Share,
  { contentId }: Pick<File, 'contentId'>,
): Promise<RangeMap & { readonly writtenIn: number }> {
  if (contentId === undefined) return { ...NOTHING_WRITTEN, writtenIn: 0 };
  const map = await content.ranges.read(at, account, parseId(contentId));
  const { group, gen } = contentPlace(share);
  return {
    ...map,
    writtenIn: map.gen,
    group,
    gen: Math.max(map.gen, gen),
    newest: Math.max(map.newest, contentGeneration(share.newest)),
  };
}

/** The content of a file as a snapshot sees it. */
export interface SeenContent {
  readonly map: RangeMap;
  /** Undefined: of the current state. */
  readonly gen: number | undefined;
  /** Nothing was written since: the current state is the one that is seen, and is found faster. */
  readonly isCurrent: boolean;
}

export async function readSeenContent(
  at: Snapshot,
  stores: Stores,
  { share, node, seenAt }: Pick<FoundFile, 'share' | 'node' | 'seenAt'>,
): Promise<SeenContent> {
  const map = await readFileMap(at, stores, share, node);
  if (seenAt === undefined) return { map, gen: undefined, isCurrent: true };
  const gen = contentGeneration(seenAt);
  return { map, gen, isCurrent: map.writtenIn <= gen && !map.isEnded };
}

/** @returns false: the read takes more than one lookup, and the state has to be held */
export async function planSeenContent(
  at: Snapshot,
  plan: PlanRanges,
  { map, gen, isCurrent }: SeenContent,
  range: ByteRange,
): Promise<boolean> {
  if (isCurrent && (await plan(at, map, undefined, range))) return true;
  return gen !== undefined && plan(at, map, gen, range);
}

/** The map for a write; the content's row has its generation from now on. */
async function mapForWrite(tx: Transaction, storage: Stores, share: Share, file: Pick<File, 'contentId'>) {
  const map = await readFileMap(tx, storage, share, file);
  await storage.content.ranges.advance(tx, storage.account, map.id, contentPlace(share));
  return map;
}

/** What a change of bytes does to the record, and whether the sweeper has work to do. */
export interface BytesChanged {
  readonly record: Pick<FileRecord, 'contentId'> & { readonly length?: number };
  readonly needsSweep: boolean;
}

/** @param newId of the content, if this is the first write */
export async function writeBytes(
  tx: Transaction,
  storage: Storage,
  share: Share,
  file: Pick<File, 'contentId'>,
  { from, bytes, newId }: { readonly from: number; readonly bytes: StagedBytes; readonly newId: ContentId },
): Promise<BytesChanged> {
  const { account, content } = storage;
  const contentId = file.contentId ?? formatId(newId);
  if (file.contentId === undefined) {
    if (from === 0 && bytes.inline) {
      content.ranges.createWithBytes(tx, account, newId, bytes.inline, contentPlace(share));
      return { record: { contentId }, needsSweep: false };
    }
    content.ranges.create(tx, account, newId, contentPlace(share));
  }
  const map = await mapForWrite(tx, storage, share, { contentId });
  const { needsSweep } = await writeStaged(tx, storage, map, from, bytes);
  return { record: { contentId }, needsSweep };
}

/** Names the chunks of another file, or of this one, again. @throws CannotShare */
export async function shareBytes(
  tx: Transaction,
  storage: Storage,
  share: Share,
  file: Pick<File, 'contentId'>,
  { from, source, newId }: { readonly from: number; readonly source: SharedSource; readonly newId: ContentId },
): Promise<BytesChanged> {
  const { account, content } = storage;
  const contentId = file.contentId ?? formatId(newId);
  if (file.contentId === undefined) content.ranges.create(tx, account, newId, contentPlace(share));
  const map = await mapForWrite(tx, storage, share, { contentId });
  const { needsSweep } = await content.ranges.writeShared(tx, account, map, from, source);
  return { record: { contentId }, needsSweep };
}

export async function clearBytes(
  tx: Transaction,
  storage: Storage,
  share: Share,
  file: Pick<File, 'contentId'>,
  range: ByteRange,
  newId: ContentId,
): Promise<BytesChanged> {
  const { account, content } = storage;
  const { cleared, zeros } = divideClear(range);
  let { contentId } = file;
  let needsSweep = false;
  for (const { from, to } of zeros) {
    const bytes = { inline: Buffer.alloc(to - from) };
    const written = await writeBytes(tx, storage, share, { contentId }, { from, bytes, newId });
    contentId = written.record.contentId;
    needsSweep ||= written.needsSweep;
  }
  if (cleared && contentId !== undefined) {
    const map = await mapForWrite(tx, storage, share, { contentId });
    const written = await content.ranges.clear(tx, account, map, cleared.from, cleared.to);
    needsSweep ||= written.needsSweep;
  }
  return { record: { contentId }, needsSweep };
}

/** A shorter file loses its last bytes, whatever it grows to later. */
export async function changeLength(
  tx: Transaction,
  storage: Storage,
  share: Share,
  file: Pick<File, 'contentId' | 'length'>,
  length: number,
): Promise<BytesChanged> {
  const { account, content } = storage;
  const { contentId } = file;
  await charge(tx, share, length - file.length);
  if (length >= file.length || contentId === undefined) return { record: { contentId, length }, needsSweep: false };
  const map = await mapForWrite(tx, storage, share, file);
  const { needsSweep } = await content.ranges.clear(tx, account, map, length, NO_END);
  return { record: { contentId, length }, needsSweep };
}
