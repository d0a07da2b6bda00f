/** The type of a blob, and what blobs of a type have besides, in headers and XML. */
import { formatIso7 } from '../../base/time.ts';
import {
  type AppendState,
  type Blob,
  type BlobType,
  blobTypeOf,
  type CopyState,
  type PageState,
} from '../../services/blob/rows.ts';

export const BLOB_TYPES: Readonly<Record<BlobType, string>> = {
  block: 'BlockBlob',
  append: 'AppendBlob',
  page: 'PageBlob',
};

export function appendHeaders({ blocks, isSealed }: AppendState): Record<string, string | number | undefined> {
  return { 'x-ms-blob-committed-block-count': blocks, 'x-ms-blob-sealed': isSealed ? 'true' : undefined };
}

export function pageHeaders({ sequenceNumber }: Pick<PageState, 'sequenceNumber'>): Record<string, string> {
  return { 'x-ms-blob-sequence-number': sequenceNumber.toString() };
}

/** Of a blob that consists of copies of another one's snapshots, and of each of its snapshots. */
export function incrementalHeaders({ incremental }: PageState, copy: CopyState | undefined): Record<string, string> {
  const taken = incremental && copiedSnapshot(incremental, copy);
  return {
    ...(incremental && { 'x-ms-incremental-copy': 'true' }),
    ...(taken !== undefined && { 'x-ms-copy-destination-snapshot': taken }),
  };
}

/** `DestinationSnapshot` belongs to the fields of a copy. */
export function incrementalElements({ page, copy }: Blob, includesCopy: boolean): string {
  if (!page?.incremental) return '';
  const taken = copiedSnapshot(page.incremental, copy);
  const snapshot = taken === undefined || !includesCopy ? '' : `<DestinationSnapshot>${taken}</DestinationSnapshot>`;
  return `<IncrementalCopy>true</IncrementalCopy>${snapshot}`;
}

/** Only while the last copy was successful. */
function copiedSnapshot({ taken }: NonNullable<PageState['incremental']>, copy: CopyState | undefined) {
  return taken === undefined || !copy || copy.status !== undefined ? undefined : formatIso7(taken);
}

export function typeElements(blob: Blob): string {
  const { page } = blob;
  const number = page ? `<x-ms-blob-sequence-number>${page.sequenceNumber}</x-ms-blob-sequence-number>` : '';
  return `${number}<BlobType>${BLOB_TYPES[blobTypeOf(blob)]}</BlobType>`;
}
