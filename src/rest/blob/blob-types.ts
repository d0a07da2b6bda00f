/** The type of a blob, and what blobs of a type have besides, in headers and XML. */
import { type AppendState, type Blob, type BlobType, blobTypeOf } from '../../services/blob/rows.ts';

export const BLOB_TYPES: Readonly<Record<BlobType, string>> = {
  block: 'BlockBlob',
  append: 'AppendBlob',
  page: 'PageBlob',
};

export function appendHeaders({ blocks, isSealed }: AppendState): Record<string, string | number | undefined> {
  return { 'x-ms-blob-committed-block-count': blocks, 'x-ms-blob-sealed': isSealed ? 'true' : undefined };
}

export function typeElements(blob: Blob): string {
  return `<BlobType>${BLOB_TYPES[blobTypeOf(blob)]}</BlobType>`;
}
