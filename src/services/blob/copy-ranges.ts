/** The bytes of a running copy that becomes an append or page blob: each slice writes ranges into the content of the blob. */
import type { ContentStore, UploadedContent } from '../../content/content.ts';
import { NO_END } from '../../content/ranges/range-maps.ts';
import type { Transaction } from '../../partition/partition.ts';
import { writtenBytes } from '../../rules/copy-slices.ts';
import { advanceCopy, type CopyState, copiedBytes } from '../../rules/copy-state.ts';
import { completeIncremental } from '../../rules/incremental-copy.ts';
import type { IncrementalCopy, RunningCopy } from '../common/running-copies.ts';
import { withUpload } from '../common/upload.ts';
import { encodeBlobRecord } from './blob-record.ts';
import { nextStamp, snapshotKey } from './old-rows.ts';
import { openRanges, type SourceRanges } from './range-sources.ts';
import {
  type BlobRun,
  type CopiedBlob,
  type CopyPlace,
  keyOfCopy,
  putCompleted,
  putProgress,
} from './running-copies.ts';

export async function copyRanges(
  run: BlobRun,
  place: CopyPlace,
  copy: RunningCopy,
  { bytes, copied = 0 }: CopyState,
): Promise<void> {
  const source = openRanges(run.context, copy, bytes, run.signal);
  const nothing = { ranges: [], end: 0, bytes: async function* () {} };
  try {
    if (bytes === 0) await copySlice(run, place, copy, 0, nothing);
    for (let offset = copied; offset < bytes; )
      offset = await copySlice(run, place, copy, offset, await source.next(offset));
  } finally {
    source.close();
  }
}

/** Returns the offset after the slice. */
async function copySlice(
  run: BlobRun,
  place: CopyPlace,
  copy: RunningCopy,
  offset: number,
  slice: SourceRanges,
): Promise<number> {
  const { context } = run;
  const { content, partition } = context;
  const { account } = place;
  const length = writtenBytes(slice.ranges);
  const commit = (uploaded?: UploadedContent) =>
    content.ranges.withRoom(account, () =>
      partition.transact(keyOfCopy(place), async (tx) => {
        const found = await run.readOwn(tx, copy);
        if (copiedBytes(found.copy) !== offset) throw new Error('the progress of a copy has changed');
        if (uploaded) await content.commitUpload(tx, account, uploaded);
        const written = await writeSlice(tx, content, account, copy, slice, uploaded);
        if (slice.end < found.copy.bytes) putProgress(tx, place, found, advanceCopy(found.copy, slice.end));
        else await complete(tx, content, place, copy, found);
        return written;
      }),
    );
  const sent = { length, expected: {}, bytes: () => run.checked(slice.bytes()) };
  const mapOffset = slice.ranges[0]?.from;
  const { value: needsSweep } =
    length === 0 ? await commit() : await withUpload({ content, account }, sent, { md5: false, mapOffset }, commit);
  if (needsSweep) context.sweeper.wake();
  run.advanced();
  return slice.end;
}

async function complete(
  tx: Transaction,
  content: ContentStore,
  place: CopyPlace,
  copy: RunningCopy,
  found: CopiedBlob,
): Promise<void> {
  const { append, incremental } = copy.inPlace ?? {};
  if (incremental) await putIncrementalCopy(tx, content, place, copy, incremental, found);
  else putCompleted(tx, place, copy, found, append ? { append } : {});
}

/** What was copied becomes a snapshot; the next copy writes on. */
async function putIncrementalCopy(
  tx: Transaction,
  { ranges, increfContent }: ContentStore,
  place: CopyPlace,
  copy: RunningCopy,
  { snapshot: copied }: IncrementalCopy,
  found: CopiedBlob,
): Promise<void> {
  const { account, container, blob } = place;
  const read = () => ranges.read(tx, account, copy.content);
  // A source that has become shorter may grow again, and has nothing there then.
  await ranges.clear(tx, account, await read(), found.copy.bytes, NO_END);
  const generation = await ranges.hold(tx, account, await read());
  await increfContent(tx, account, copy.content);
  const taken = await nextStamp(tx, account, container, blob);
  const { sequenceNumber, incremental } = found.page!;
  const page = { sequenceNumber, incremental: completeIncremental(incremental!, { copied, taken }) };
  const record = putCompleted(tx, place, copy, found, { page });
  tx.put(snapshotKey(account, container, blob, taken), encodeBlobRecord({ ...record, generation }));
}

/** True: the sweeper has work to do. */
async function writeSlice(
  tx: Transaction,
  { ranges }: ContentStore,
  account: bigint,
  { content: id }: RunningCopy,
  slice: SourceRanges,
  uploaded: UploadedContent | undefined,
): Promise<boolean> {
  const [first] = slice.ranges;
  if (!first) return false;
  const map = await ranges.read(tx, account, id);
  // A clear by itself may be of any length.
  const { needsSweep } =
    slice.ranges.length === 1 && !first.isWritten
      ? await ranges.clear(tx, account, map, first.from, first.to)
      : await ranges.writeRanges(tx, account, map, slice.ranges, uploaded?.chunkRefs ?? []);
  return needsSweep;
}
