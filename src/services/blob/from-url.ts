/** Put Block From URL, Put Blob From URL and Copy Blob From URL: the bytes of another blob, complete when the operation is answered. */
import { randomUUID } from 'node:crypto';
import { type FromUrlInput, type SourceProperties, withSource } from '../common/copy-sources.ts';
import type { Storage } from '../common/storage.ts';
import { checkPutBlockInput, commitBlock, type PutBlockInput, precheckPutBlock } from './blocks.ts';
import { fail } from './errors.ts';
import { checkPutBlobInput, commitBlob, precheckPutBlob } from './put-blob.ts';
import type { BlobInput, SentMetadata } from './request-checks.ts';
import type { ContentHeaders } from './rows.ts';
import { findContainerId } from './write-target.ts';

export type PutBlockFromUrlInput = Omit<PutBlockInput, 'body'> & FromUrlInput;

export async function putBlockFromUrl(storage: Storage, input: PutBlockFromUrlInput) {
  const canonical = { ...input, ...checkPutBlockInput(storage, input) };
  await precheckPutBlock(storage, input);
  const containerId = await findContainerId(storage, input.container);
  return withSource(storage, input, { md5: () => input.wantsMd5, inline: false }, async (staged) => {
    const { md5, crc64, length } = staged;
    if (length === 0 || staged.inline) throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-source-range' });
    await commitBlock(storage, canonical, containerId, staged);
    return { md5, crc64 };
  });
}

export interface PutBlobFromUrlInput extends BlobInput, FromUrlInput {
  readonly content: ContentHeaders;
  /** Unless empty, it replaces the metadata of the source. */
  readonly metadata: SentMetadata;
  /** Where the request sets no content header, the source's counts. */
  readonly copiesProperties: boolean;
  readonly tier?: string | undefined;
  /** The header x-ms-tags. */
  readonly tags?: string | undefined;
  /** Instead of it, the tags of the source. */
  readonly copiesTags?: boolean;
}

export async function putBlobFromUrl(storage: Storage, input: PutBlobFromUrlInput) {
  const { copiesProperties } = input;
  const { leaseId, metadata: sentMetadata, tier, tags } = checkPutBlobInput(storage, input);
  await precheckPutBlob(storage, input);
  const containerId = await findContainerId(storage, input.container);
  const contentOf = (source: SourceProperties) =>
    copiesProperties ? overlay(source.content, input.content) : input.content;
  const wanted = { md5: (source: SourceProperties) => contentOf(source).contentMd5 === undefined, inline: true };
  return withSource(storage, input, wanted, async (staged, source) => {
    const metadata = input.metadata.length > 0 ? sentMetadata : source.metadata;
    const description = { content: contentOf(source), metadata, tags: input.copiesTags ? source.tags : tags };
    const written = await commitBlob(storage, input, { leaseId, tier, containerId }, staged, () => description);
    return { ...written, md5: staged.md5, crc64: staged.crc64 };
  });
}

export interface CopyBlobFromUrlInput extends BlobInput, FromUrlInput {
  /** Unless empty, it replaces the metadata of the source. */
  readonly metadata: SentMetadata;
  readonly wantsMd5: boolean;
  readonly tier?: string | undefined;
  /** The header x-ms-tags. */
  readonly tags?: string | undefined;
  /** Instead of it, the tags of the source. */
  readonly copiesTags?: boolean;
}

export async function copyBlobFromUrl(storage: Storage, input: CopyBlobFromUrlInput) {
  const { leaseId, metadata, tier, tags } = checkPutBlobInput(storage, input);
  await precheckPutBlob(storage, input);
  const containerId = await findContainerId(storage, input.container);
  const copyId = randomUUID();
  return withSource(storage, input, { md5: () => input.wantsMd5, inline: true }, async (staged, source) => {
    // A source without an MD5 has a copy without one.
    const unhashed = { ...staged, md5: undefined };
    const written = await commitBlob(storage, input, { leaseId, tier, containerId }, unhashed, (tx) => ({
      content: source.content,
      metadata: input.metadata.length > 0 ? metadata : source.metadata,
      tags: input.copiesTags ? source.tags : tags,
      copy: { id: copyId, source: input.source.url, bytes: staged.length, completed: tx.timestamp },
    }));
    return { ...written, copyId, md5: staged.md5, crc64: staged.crc64 };
  });
}

function overlay(below: ContentHeaders, above: ContentHeaders): ContentHeaders {
  return {
    contentType: above.contentType ?? below.contentType,
    contentEncoding: above.contentEncoding ?? below.contentEncoding,
    contentLanguage: above.contentLanguage ?? below.contentLanguage,
    contentDisposition: above.contentDisposition ?? below.contentDisposition,
    cacheControl: above.cacheControl ?? below.cacheControl,
    contentMd5: above.contentMd5 ?? below.contentMd5,
  };
}
