/** The bytes of a running copy that becomes a block blob: a manifest page for each slice, until the last one names the whole content. */
import { formatId } from '../../content/rows.ts';
import { crc64Base64 } from '../../hashing/hasher.ts';
import { encodeBytes } from '../../partition/values.ts';
import { advanceCopy, type CopyState, copiedBytes } from '../../rules/copy-state.ts';
import { readWhole } from '../common/remote-source.ts';
import type { RunningCopy } from '../common/running-copies.ts';
import { openSlices, type SourceSlice } from '../common/slice-sources.ts';
import { WHOLE_BYTES_MAX, withUpload } from '../common/upload.ts';
import { assignChunks } from './copied-segments.ts';
import { inlineKey } from './rows.ts';
import { type BlobRun, type CopyPlace, keyOfCopy, putCompleted, putProgress } from './running-copies.ts';

export async function copyBlocks(
  run: BlobRun,
  place: CopyPlace,
  copy: RunningCopy,
  { bytes, copied = 0 }: CopyState,
): Promise<void> {
  const source = openSlices(run.context, copy.source, bytes, run.signal);
  try {
    if (bytes <= WHOLE_BYTES_MAX) {
      const whole = bytes === 0 ? undefined : await readWhole(run.checked((await source.next(0)).bytes()));
      return await commitWhole(run, place, copy, whole ?? Buffer.alloc(0));
    }
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
  slice: SourceSlice,
): Promise<number> {
  const { partition, content } = run.context;
  const { account } = place;
  const length = slice.segments.reduce((sum, segment) => sum + segment.length, 0);
  const end = offset + length;
  const sent = { length, expected: {}, bytes: () => run.checked(slice.bytes()) };
  await withUpload({ content, account }, sent, { md5: false }, async (uploaded) => {
    const { segments, repeated } = assignChunks(slice.segments, uploaded.chunkRefs);
    await partition.transact(keyOfCopy(place), async (tx) => {
      const found = await run.readOwn(tx, copy);
      if (copiedBytes(found.copy) !== offset) throw new Error('the progress of a copy has changed');
      await content.commitUpload(tx, account, uploaded);
      await content.increfChunks(tx, account, repeated);
      await content.addSegments(tx, account, copy.content, offset, segments);
      if (end < found.copy.bytes) return putProgress(tx, place, found, advanceCopy(found.copy, end));
      content.completeContent(tx, account, copy.content, end);
      tx.remove(inlineKey(account, place.container, place.blob));
      putCompleted(tx, place, copy, found, { crc64: undefined, contentId: formatId(copy.content) });
    });
  });
  run.advanced();
  return end;
}

async function commitWhole(run: BlobRun, place: CopyPlace, copy: RunningCopy, bytes: Buffer): Promise<void> {
  const crc64 = crc64Base64(bytes);
  await run.context.partition.transact(keyOfCopy(place), async (tx) => {
    const found = await run.readOwn(tx, copy);
    if (bytes.length !== found.copy.bytes) throw new Error('a source of another length');
    tx.put(inlineKey(place.account, place.container, place.blob), encodeBytes(bytes));
    putCompleted(tx, place, copy, found, { crc64, contentId: undefined });
  });
}
