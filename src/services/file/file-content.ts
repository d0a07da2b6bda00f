/** The content of a file: a range map whose generations are those of the share, and which exists from the first write on. */
import { type ByteRange, NO_END, type RangeMap } from '../../content/ranges/range-maps.ts';
import { type ContentId, formatId, parseId } from '../../content/rows.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { divideClear } from '../../rules/file/ranges.ts';
import { type StagedBytes, writeStaged } from '../common/staged-bytes.ts';
import type { Storage } from '../common/storage.ts';
import type { File, FileRecord } from './node-rows.ts';
import { type Share, shareGeneration } from './rows.ts';
import { charge } from './usage.ts';

/**
 * Generations of a content between two of its share: a long read of a file begins another one of its content, without a change of the share.
 * So a generation of the share and the number of long reads in it are one number, in order.
 */
const GENERATIONS_OF_READS = 2 ** 31;

type Stores = Pick<Storage, 'account' | 'content'>;

/** What is read of a file that was never written. No content has this id. */
const NOTHING_WRITTEN: RangeMap = { id: { epoch: 0n, number: 0n }, gen: 1, newest: 0, voids: [], lastVoid: 0 };

export async function readFileMap(
  at: Snapshot,
  { account, content }: Stores,
  share: Share,
  { contentId }: Pick<File, 'contentId'>,
): Promise<RangeMap> {
  if (contentId === undefined) return NOTHING_WRITTEN;
  const map = await content.ranges.read(at, account, parseId(contentId));
  const { gen, newest } = shareGeneration(share);
  return {
    ...map,
    gen: Math.max(map.gen, (gen - 1) * GENERATIONS_OF_READS + 1),
    newest: Math.max(map.newest, newest * GENERATIONS_OF_READS),
  };
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
  const contentId = file.contentId ?? formatId(newId);
  if (file.contentId === undefined) storage.content.ranges.create(tx, storage.account, newId);
  const map = await readFileMap(tx, storage, share, { contentId });
  const { needsSweep } = await writeStaged(tx, storage, map, from, bytes);
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
    const map = await readFileMap(tx, storage, share, { contentId });
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
  const map = await readFileMap(tx, storage, share, file);
  const { needsSweep } = await content.ranges.clear(tx, account, map, length, NO_END);
  return { record: { contentId, length }, needsSweep };
}
