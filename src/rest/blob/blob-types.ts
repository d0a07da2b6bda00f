/** The type of a blob, and what blobs of a type have besides, in headers and XML. */
import { type AppendState, type Blob, type BlobType, blobTypeOf, type PageState } from '../../services/blob/rows.ts';

export const BLOB_TYPES: Readonly<Record<BlobType, string>> = {
  block: 'BlockBlob',
  append: 'AppendBlob',
  page: 'PageBlob',
};

export function appendHeaders({ blocks, isSealed }: AppendState): Record<string, string | number | undefined> {
  return { 'x-ms-blob-committed-block-count': blocks, 'x-ms-blob-sealed': isSealed ? 'true' : undefined };
}

export function pageHeaders({ sequenceNumber }: PageState): Record<string, string> {
  return { 'x-ms-blob-sequence-number': sequenceNumber.toString() };
}

export function typeElements(blob: Blob): string {
  const { page } = blob;
  const number = page ? `<x-ms-blob-sequence-number>${page.sequenceNumber}</x-ms-blob-sequence-number>` : '';
  return `${number}<BlobType>${BLOB_TYPES[blobTypeOf(blob)]}</BlobType>`;
}
