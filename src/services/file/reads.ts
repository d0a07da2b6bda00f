/** Get File and List Ranges. */
import type { ByteRange, ChangedRange } from '../../content/ranges/range-maps.ts';
import type { Instant, Snapshot } from '../../partition/partition.ts';
import { parseRange, resolveRange } from '../../rules/byte-ranges.ts';
import { sectorsAround } from '../../rules/file/ranges.ts';
import { leaseState } from '../../rules/lease.ts';
import { emitRanges, HASHED_RANGE_MAX, openBytes } from '../common/content-reads.ts';
import type { Storage } from '../common/storage.ts';
import { changedSectors, writtenSectors } from './changed-ranges.ts';
import { fail } from './errors.ts';
import { planSeenContent, readSeenContent } from './file-content.ts';
import type { FileInput } from './files.ts';
import { checkPath, type FoundFile, pathQueueKey, resolveFile } from './namespace.ts';
import type { File } from './node-rows.ts';
import { checkSharing } from './opens.ts';
import { checkFileLease, parseLeaseId } from './request-checks.ts';
import type { ShareSnapshotInput } from './snapshot-rows.ts';

export interface ReadFileInput extends FileInput, ShareSnapshotInput {
  /** As sent. */
  readonly range: string | undefined;
}

/** Whatever is written meanwhile, the bytes are those of one state of the file. */
export async function downloadFile(
  storage: Storage,
  input: ReadFileInput & { readonly rangeMd5: boolean | undefined },
) {
  const { range: text, rangeMd5 } = input;
  if (rangeMd5 && text === undefined)
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-range-get-content-md5', HeaderValue: 'true' });
  const path = checkPath(input);
  const queueKey = () => pathQueueKey(storage, input, path);
  const hash = rangeMd5 ? { md5: true } : undefined;
  const { found, bytes, hashed } = await openBytes(storage, queueKey, hash, async (at, plan) => {
    const readable = await findReadable(at, storage, input);
    const { node: file } = readable;
    const range = requestedRange(file, text);
    const from = range?.from ?? 0;
    const to = range ? range.to + 1 : file.length;
    if (rangeMd5 && to - from > HASHED_RANGE_MAX) throw fail('OutOfRangeInput');
    const isPlanned = await planSeenContent(at, plan, await readSeenContent(at, storage, readable), { from, to });
    return { file, leaseState: leaseState(file.lease, at.now), range, from, to, isPlanned };
  });
  const { file, range, from, to } = found;
  return { file, leaseState: found.leaseState, range, length: to - from, bytes, rangeMd5: hashed?.md5 };
}

function requestedRange(file: File, text: string | undefined) {
  const requested = text === undefined ? undefined : parseRange(text);
  const range = requested && resolveRange(requested, file.length);
  if (range === 'InvalidRange') throw fail('InvalidRange').withHeaders({ 'Content-Range': `bytes */${file.length}` });
  return range;
}

export interface ListRangesInput extends ReadFileInput {
  /** The byte at which a page of the list begins. */
  readonly start: number | undefined;
  readonly resultsMax: number;
  /** The second of an earlier snapshot: only what changed since is listed. */
  readonly previous?: Instant | undefined;
  /** Whether the file may have had another path in that snapshot. */
  readonly followsRename?: boolean | undefined;
}

/**
 * The sectors that were written and not cleared, or that changed since an earlier snapshot, in order; neighbours are one range.
 * @param emit gets them in slices: there may be millions
 * @returns the file, and where the next page of the list begins; undefined: it is complete
 */
export async function listRanges(
  storage: Storage,
  input: ListRangesInput,
  emit: (ranges: readonly ChangedRange[]) => void,
): Promise<{ file: File; next: number | undefined }> {
  return storage.partition.read(async (at) => {
    const found = await findReadable(at, storage, input);
    const { node: file } = found;
    const within = listedSectors(file, input);
    const ranges =
      input.previous === undefined
        ? await writtenSectors(at, storage, found, within)
        : await changedSectors(at, storage, found, { ...input, previous: input.previous }, within);
    const withinFile = (each: ChangedRange): ChangedRange => ({ ...each, to: Math.min(each.to, file.length) });
    return { file, next: await emitRanges(ranges, input.resultsMax, (some) => emit(some.map(withinFile))) };
  });
}

function listedSectors(file: File, { range: text, start = 0 }: ListRangesInput): ByteRange {
  // SDKs ask for the range from byte 0 on, which an empty file does not have.
  const range = file.length === 0 ? undefined : requestedRange(file, text);
  const sectors = sectorsAround(range ?? { from: 0, to: file.length - 1 });
  return { from: Math.max(sectors.from, start), to: sectors.to };
}

async function findReadable(at: Snapshot, storage: Storage, input: ReadFileInput): Promise<FoundFile> {
  const found = await resolveFile(at, storage, input.share, checkPath(input), input.snapshot);
  await checkSharing(at, found, 'read');
  checkFileLease(at, found.node, parseLeaseId(input.leaseId), 'read');
  return found;
}
