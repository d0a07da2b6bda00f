/** The sectors of a file that were written, and those that changed between two snapshots, or since one. */
import type { ByteRange, ChangedRange } from '../../content/ranges/range-maps.ts';
import type { Instant, Snapshot } from '../../partition/partition.ts';
import { SECTOR_BYTES } from '../../rules/file/ranges.ts';
import { StorageError } from '../common/errors.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { readSeenContent } from './file-content.ts';
import { contentGeneration } from './generations.ts';
import { nodeAt } from './history.ts';
import { checkPath, type FoundFile, type PathInput, resolveAt } from './namespace.ts';
import type { File } from './node-rows.ts';
import { readSnapshot } from './snapshot-rows.ts';

export async function writtenSectors(
  at: Snapshot,
  storage: Storage,
  found: FoundFile,
  within: ByteRange,
): Promise<AsyncIterable<ChangedRange>> {
  const { map, gen, isCurrent } = await readSeenContent(at, storage, found);
  const { ranges } = storage.content;
  return ranges.list(at, storage.account, map, isCurrent ? undefined : gen, within, { unit: SECTOR_BYTES });
}

export interface CompareInput extends PathInput {
  readonly previous: Instant;
  readonly followsRename?: boolean | undefined;
}

/** Exact to the sector: what was written is a range, what was cleared a cleared one. */
export async function changedSectors(
  at: Snapshot,
  storage: Storage,
  found: FoundFile,
  input: CompareInput,
  within: ByteRange,
): Promise<AsyncIterable<ChangedRange>> {
  const { share, node, seenAt } = found;
  const { gen: since } = await readSnapshot(at, share, input.previous);
  if (seenAt !== undefined && since > seenAt) throw fail('InvalidQueryParameterValue', PREVIOUS_IS_NEWER);
  const before = await findBefore(at, storage, found, input, since);
  if (before.contentId !== undefined && before.contentId !== node.contentId) {
    const older = await writtenSectors(at, storage, { ...found, node: before, seenAt: since }, within);
    return compareLists(await writtenSectors(at, storage, found, within), older);
  }
  const { map, gen, isCurrent } = await readSeenContent(at, storage, found);
  const { ranges } = storage.content;
  const seen = isCurrent ? undefined : gen;
  // Where nothing was written, all of the content came later, whatever its generations.
  const compared = before.contentId === undefined ? 0 : contentGeneration(since);
  return ranges.compareSectors(at, storage.account, map, compared, seen, within);
}

const PREVIOUS_IS_NEWER = {
  QueryParameterName: 'prevsharesnapshot',
  Reason: 'The previous snapshot is newer than the snapshot.',
};

/** The file as the earlier snapshot has it: of the same path, unless renames are followed. */
async function findBefore(
  at: Snapshot,
  storage: Storage,
  { share, node }: FoundFile,
  input: CompareInput,
  since: number,
): Promise<File> {
  const before = input.followsRename ? await nodeAt(at, share, node.id, since) : await findByPath(at, storage, input);
  if (before?.kind !== 'file' || before.id !== node.id) throw fail('FileGenerationMismatch');
  return before;
}

async function findByPath(at: Snapshot, storage: Storage, input: CompareInput) {
  try {
    return (await resolveAt(at, storage, input.share, checkPath(input), input.previous)).node;
  } catch (error) {
    if (error instanceof StorageError && error.code === 'ParentNotFound') return undefined;
    throw error;
  }
}

/** Of a file whose content was replaced: all that is written now, and what was written before where nothing is now. */
async function* compareLists(
  written: AsyncIterable<ChangedRange>,
  before: AsyncIterable<ChangedRange>,
): AsyncGenerator<ChangedRange> {
  const [newer, older] = [written[Symbol.asyncIterator](), before[Symbol.asyncIterator]()];
  const next = async (ranges: AsyncIterator<ChangedRange>) => (await ranges.next()).value as ChangedRange | undefined;
  let [now, then] = [await next(newer), await next(older)];
  while (now || then) {
    if (now && (!then || now.from <= then.from)) {
      yield { ...now, isWritten: true };
      while (then && then.to <= now.to) then = await next(older);
      if (then && then.from < now.to) then = { ...then, from: now.to };
      now = await next(newer);
    } else if (then) {
      const to: number = now ? Math.min(then.to, now.from) : then.to;
      yield { from: then.from, to, isWritten: false };
      then = to < then.to ? { ...then, from: to } : await next(older);
    }
  }
}
