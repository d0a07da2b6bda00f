/** Blobs as sources of copies, within this service and for others. */
import { parseId } from '../../content/rows.ts';
import { decodeBytes } from '../../partition/values.ts';
import { cutSlice, nextInPlaceSlice } from '../../rules/copy-slices.ts';
import type { SourceReader } from '../common/copy-sources.ts';
import { planBlobRead } from './blob-reads.ts';
import { readBlob } from './blob-record.ts';
import { checkBlobName, checkContainerName, checkCopyable, checkOnline } from './request-checks.ts';
import { changesInPlace, inlineKey, txQueueKey } from './rows.ts';

export const blobSources: SourceReader = {
  check({ container, item }) {
    checkContainerName(container);
    checkBlobName(item);
  },
  queueKey: (account, { container, item }) => txQueueKey(account, container, item),
  async find(at, content, scope, source) {
    const { account } = scope;
    const { id, blob } = await readBlob(at, scope, source.container, source.item, source.snapshot);
    checkOnline(at, blob);
    checkCopyable(blob);
    const isInPlaceBlob = changesInPlace(blob);
    const inlineBytes = async (): Promise<Buffer> => {
      const row = await at.get(inlineKey(account, id, source.item, blob.snapshot));
      if (!row) throw new Error('a blob without its content');
      return decodeBytes(row);
    };
    return {
      ...blob,
      async open(read, range, plan, sharedMax) {
        const { from, to } = range;
        if (blob.contentId === undefined) return { isPlanned: true, inline: (await inlineBytes()).subarray(from, to) };
        const isPlanned = await planBlobRead(at, { content, account }, blob, read, range, plan);
        // Chunks of a content that changes in place are small, or hardly visible.
        if (sharedMax === 0 || isInPlaceBlob) return { isPlanned };
        const id = parseId(blob.contentId);
        return { isPlanned, chunkRefs: await content.chunkRefsIn(at, account, id, from, to, sharedMax) };
      },
      async slice(read, offset) {
        if (blob.contentId === undefined) {
          const inline = (await inlineBytes()).subarray(offset);
          return { segments: [{ length: inline.length }], inline };
        }
        const contentId = parseId(blob.contentId);
        if (isInPlaceBlob) {
          const map = await content.ranges.read(at, account, contentId);
          const end = nextInPlaceSlice(offset, blob.length);
          await read.planRanges(at, account, map, blob.generation, offset, end);
          return { segments: [{ length: end - offset }] };
        }
        const found = await content.segmentsFrom(at, account, contentId, offset);
        const segments = cutSlice(found.segments, offset - found.offset);
        const end = segments.reduce((sum, { length }) => sum + length, offset);
        await read.plan(at, account, contentId, offset, end);
        return { segments };
      },
    };
  },
};
