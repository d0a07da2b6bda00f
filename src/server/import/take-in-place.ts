/** Append blobs and page blobs of Azurite, and the states that their snapshots have, through the services. */

import { appendBlock, createAppendBlob, sealBlob } from '../../services/blob/append-blobs.ts';
import { setBlobMetadata, setBlobProperties } from '../../services/blob/blobs.ts';
import { deleteBlob } from '../../services/blob/delete-blob.ts';
import {
  clearPages,
  createPageBlob,
  PUT_PAGE_BYTES_MAX,
  putPage,
  setPageProperties,
} from '../../services/blob/page-blobs.ts';
import { parseTags, setBlobTags } from '../../services/blob/tags.ts';
import type { Storage } from '../../services/common/storage.ts';
import { atOnce } from './attempts.ts';
import { lengthOf, mapOf, propertyOf } from './azurite-documents.ts';
import type { AzuriteFolder, Persistency } from './azurite-folder.ts';
import type { ImportedDocument, ImportTarget } from './import-kinds.ts';
import type { LokiDocument } from './loki-file.ts';
import { pageChanges, writtenRanges } from './page-changes.ts';
import { attemptBlob, blobPath, committedBlocks, describeBlob } from './take-blobs.ts';

export function takeInPlace(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  return atOnce(documents, ({ document }) =>
    attemptBlob(document, target, async (storage) => {
      await putInPlace(storage, document, target);
      target.lastStates.delete(blobPath(document));
    }),
  );
}

/** The blob becomes what the document says. Only what differs from its last state is written: snapshots share the rest. */
export async function putInPlace(storage: Storage, document: LokiDocument, target: ImportTarget): Promise<void> {
  const path = blobPath(document);
  const before = target.lastStates.get(path);
  // If this fails, the blob is as it was.
  const write = await beginState(storage, target.folder, document, before);
  target.lastStates.delete(path);
  try {
    await write();
    target.lastStates.set(path, document);
  } catch (error) {
    // A blob that lacks some of its bytes would look as if it were whole.
    if (!before) await deleteBlob(storage, describeBlob(document));
    else {
      await (await beginState(storage, target.folder, before))();
      target.lastStates.set(path, before);
    }
    throw error;
  }
}

interface InPlaceType {
  /** False: the blob was created anew between these states. */
  continues(document: LokiDocument, before: LokiDocument): boolean;
  create(storage: Storage, document: LokiDocument): Promise<unknown>;
  /** @param before undefined: the blob is empty */
  write(
    storage: Storage,
    folder: AzuriteFolder,
    document: LokiDocument,
    before: LokiDocument | undefined,
  ): Promise<unknown>;
}

async function beginState(storage: Storage, folder: AzuriteFolder, document: LokiDocument, last?: LokiDocument) {
  const type = isPageBlob(document) ? pageBlobs : appendBlobs;
  const isSameType = last !== undefined && isPageBlob(last) === isPageBlob(document);
  const before = isSameType && type.continues(document, last) ? last : undefined;
  if (!before) await type.create(storage, document);
  return async () => {
    if (before) await setDescription(storage, describeBlob(document));
    await type.write(storage, folder, document, before);
  };
}

async function setDescription(storage: Storage, described: ReturnType<typeof describeBlob>): Promise<void> {
  await setBlobProperties(storage, described);
  await setBlobMetadata(storage, described);
  await setBlobTags(storage, { ...described, tags: parseTags(described.tags) ?? [] });
}

const isPageBlob = (document: LokiDocument) => propertyOf(document, 'blobType') === 'PageBlob';
const isSealed = (document: LokiDocument) => propertyOf(document, 'isSealed') === true;

const appendBlobs: InPlaceType = {
  continues(document, before) {
    const [now, then] = [document, before].map((each) => committedBlocks(each).map(({ bytes }) => bytes));
    return (!isSealed(before) || isSealed(document)) && then!.every((bytes, i) => isSamePlace(bytes, now![i]));
  },
  create: (storage, document) => createAppendBlob(storage, describeBlob(document)),
  /** Each block is appended by itself: clients see how many there are. */
  async write(storage, folder, document, before) {
    const described = describeBlob(document);
    for (const { bytes } of committedBlocks(document).slice(before && committedBlocks(before).length)) {
      const body = await folder.content('blob', bytes);
      await appendBlock(storage, { ...described, append: {}, wantsMd5: false, body });
    }
    if (isSealed(document)) await sealBlob(storage, { ...described, append: {} });
  },
};

function isSamePlace(one: Persistency, other: Persistency | undefined): boolean {
  return one.id === other?.id && one.offset === other.offset && one.count === other.count;
}

const pageBlobs: InPlaceType = {
  continues: () => true,
  create: (storage, document) => createPageBlob(storage, { ...describeBlob(document), ...dimensions(document) }),
  /** Only the ranges that were written: the rest of a page blob costs nothing. */
  async write(storage, folder, document, before) {
    const described = describeBlob(document);
    const { length, sequenceNumber } = dimensions(document);
    const sequence = { action: 'update', number: sequenceNumber } as const;
    if (before) await setPageProperties(storage, { ...described, length, sequence });
    const inside = writtenRanges(before ?? {}).map((range) => ({ ...range, end: Math.min(range.end, length) }));
    const rangesBefore = inside.filter(({ start, end }) => start < end);
    for (const { start, end, bytes } of pageChanges(rangesBefore, writtenRanges(document))) {
      if (bytes) await putPages(storage, folder, described, start, bytes);
      else await clearPages(storage, { ...described, range: `bytes=${start}-${end - 1}`, sequence: {} });
    }
  },
};

function dimensions(document: LokiDocument) {
  const properties = { blobSequenceNumber: 0, ...mapOf(document.properties) };
  return {
    length: lengthOf(properties, 'contentLength'),
    sequenceNumber: BigInt(lengthOf(properties, 'blobSequenceNumber')),
  };
}

async function putPages(
  storage: Storage,
  folder: AzuriteFolder,
  described: ReturnType<typeof describeBlob>,
  start: number,
  { id, offset, count: total }: Persistency,
): Promise<void> {
  for (let done = 0; done < total; done += PUT_PAGE_BYTES_MAX) {
    const count = Math.min(PUT_PAGE_BYTES_MAX, total - done);
    const range = `bytes=${start + done}-${start + done + count - 1}`;
    const body = await folder.content('blob', { id, offset: offset + done, count });
    await putPage(storage, { ...described, range, sequence: {}, wantsMd5: false, body });
  }
}
