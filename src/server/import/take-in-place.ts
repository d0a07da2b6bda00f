/** Append blobs and page blobs of Azurite, through the services. */

import { appendBlock, createAppendBlob, sealBlob } from '../../services/blob/append-blobs.ts';
import { deleteBlob } from '../../services/blob/delete-blob.ts';
import { createPageBlob, PUT_PAGE_BYTES_MAX, putPage } from '../../services/blob/page-blobs.ts';
import type { Storage } from '../../services/common/storage.ts';
import { atOnce } from './attempts.ts';
import { lengthOf, mapOf, persistencyOf, propertyOf } from './azurite-documents.ts';
import type { Persistency } from './azurite-folder.ts';
import type { ImportedDocument, ImportTarget } from './import-kinds.ts';
import type { LokiDocument } from './loki-file.ts';
import { attemptBlob, committedBlocks, describeBlob } from './take-blobs.ts';

type DescribedBlob = ReturnType<typeof describeBlob>;

/** Each block is appended by itself: clients see how many there are. */
export function takeAppendBlobs(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  return takeInPlace(documents, target, async (storage, document, described) => {
    const blocks = committedBlocks(document);
    await createAppendBlob(storage, described);
    await orDelete(storage, described, async () => {
      for (const { bytes } of blocks) {
        const body = await target.folder.content('blob', bytes);
        await appendBlock(storage, { ...described, append: {}, wantsMd5: false, body });
      }
      if (propertyOf(document, 'isSealed') === true) await sealBlob(storage, { ...described, append: {} });
    });
  });
}

/** Only the ranges that were written: the rest of a page blob costs nothing. */
export function takePageBlobs(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  return takeInPlace(documents, target, async (storage, document, described) => {
    const properties = { blobSequenceNumber: 0, ...mapOf(document.properties) };
    const length = lengthOf(properties, 'contentLength');
    const sequenceNumber = BigInt(lengthOf(properties, 'blobSequenceNumber'));
    await createPageBlob(storage, { ...described, length, sequenceNumber });
    await orDelete(storage, described, async () => {
      for (const { start, bytes } of writtenRanges(document)) {
        const range = `bytes=${start}-${start + bytes.count - 1}`;
        const body = await target.folder.content('blob', bytes);
        await putPage(storage, { ...described, range, sequence: {}, wantsMd5: false, body });
      }
    });
  });
}

function takeInPlace(
  documents: readonly ImportedDocument[],
  target: ImportTarget,
  take: (storage: Storage, document: LokiDocument, described: DescribedBlob) => Promise<void>,
): Promise<void> {
  return atOnce(documents, ({ document }) =>
    attemptBlob(document, target, (storage) => take(storage, document, describeBlob(document))),
  );
}

/** A blob that lacks some of its bytes would look as if it were whole. */
async function orDelete(storage: Storage, described: DescribedBlob, write: () => Promise<void>) {
  try {
    await write();
  } catch (error) {
    await deleteBlob(storage, described);
    throw error;
  }
}

interface WrittenRange {
  readonly start: number;
  readonly bytes: Persistency;
}

/** In parts that one Put Page takes. */
function* writtenRanges({ pageRangesInOrder: ranges }: LokiDocument): Generator<WrittenRange> {
  if (!Array.isArray(ranges)) return;
  for (const range of ranges.map(mapOf)) {
    const [first, end] = [lengthOf(range, 'start'), lengthOf(range, 'end') + 1];
    const { id, offset } = persistencyOf(range.persistency);
    for (let start = first; start < end; start += PUT_PAGE_BYTES_MAX) {
      const count = Math.min(PUT_PAGE_BYTES_MAX, end - start);
      yield { start, bytes: { id, offset: offset + (start - first), count } };
    }
  }
}
