/** Containers, block blobs and uncommitted blocks of Azurite, through the services. */

import { getBlobProperties } from '../../services/blob/blobs.ts';
import { putBlockList } from '../../services/blob/block-lists.ts';
import { putBlock } from '../../services/blob/blocks.ts';
import { createContainer, setContainerAcl } from '../../services/blob/containers.ts';
import { putBlob } from '../../services/blob/put-blob.ts';
import type { ContentHeaders } from '../../services/blob/rows.ts';
import type { Storage } from '../../services/common/storage.ts';
import { type SentContent, WHOLE_BYTES_MAX } from '../../services/common/upload.ts';
import { formatTagsHeader } from '../tags-header.ts';
import { atOnce, attempt } from './attempts.ts';
import {
  base64Of,
  mapOf,
  metadataOf,
  persistencyOf,
  policiesOf,
  propertyOf,
  textOf,
  textProperty,
} from './azurite-documents.ts';
import type { AzuriteFolder, Persistency } from './azurite-folder.ts';
import type { ImportedDocument, ImportTarget } from './import-kinds.ts';
import type { LokiDocument } from './loki-file.ts';

export const NO_CONDITIONS = { conditions: {}, leaseId: undefined };

export async function takeContainers(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  for (const { document } of documents) {
    const container = String(document.name);
    await attempt(container, target, async () => {
      const storage = target.storage(textOf(document, 'accountName'));
      const level = textProperty(document, 'publicAccess');
      const access = level === 'blob' || level === 'container' ? level : undefined;
      await createContainer(storage, { container, metadata: metadataOf(document), access });
      const policies = policiesOf(document.containerAcl, 'blob');
      if (policies.length > 0) await setContainerAcl(storage, { container, access, policies, ...NO_CONDITIONS });
    });
  }
}

export function takeBlobs(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  return atOnce(documents, ({ document }) =>
    attemptBlob(document, target, (storage) =>
      putBlockBlob(storage, target.folder, document, { tier: explicitTier(document) }),
    ),
  );
}

/** Snapshots are taken before their blob: if it cannot be taken, it keeps the state of the newest. */
export async function attemptBlob(
  document: LokiDocument,
  target: ImportTarget,
  take: (storage: Storage) => Promise<unknown>,
): Promise<void> {
  const name = `${document.containerName}/${document.name}`;
  try {
    await take(target.storage(textOf(document, 'accountName')));
  } catch (error) {
    target.failed(
      (await isInDestination(document, target)) ? `${name}, which has the state of its newest snapshot` : name,
      error,
    );
  }
}

async function isInDestination(document: LokiDocument, target: ImportTarget): Promise<boolean> {
  const [container, blob] = [String(document.containerName), String(document.name)];
  try {
    await getBlobProperties(target.storage(String(document.accountName)), { container, blob, ...NO_CONDITIONS });
    return true;
  } catch {
    return false;
  }
}

/** Of the blob, whichever of its snapshots the document is. */
export function blobPath({ accountName, containerName, name }: LokiDocument): string {
  return `${accountName}/${containerName}/${name}`;
}

/** The blob becomes what the document says. */
export async function putBlockBlob(
  storage: Storage,
  folder: AzuriteFolder,
  document: LokiDocument,
  { tier }: { readonly tier?: string | undefined } = {},
): Promise<void> {
  const described = { ...describeBlob(document), tier };
  const blocks = committedBlocks(document);
  if (blocks.length > 0 && canKeepIds(blocks)) await putBlocks(storage, folder, described, blocks);
  else await putBlob(storage, { ...described, body: await contentOf(folder, document, blocks) });
}

/** Put Block lists them in the order of their ids, whatever the order is here. */
export function takeUncommittedBlocks(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  return atOnce(documents, ({ document }) =>
    attempt(`${document.containerName}/${document.blobName}`, target, async () => {
      const [container, blob] = [textOf(document, 'containerName'), textOf(document, 'blobName')];
      const body = await target.folder.content('blob', persistencyOf(document.persistency));
      const input = { container, blob, blockId: textOf(document, 'name'), leaseId: undefined, wantsMd5: false, body };
      await putBlock(target.storage(textOf(document, 'accountName')), input);
    }),
  );
}

export function describeBlob(document: LokiDocument) {
  const content: ContentHeaders = {
    contentType: textProperty(document, 'contentType'),
    contentEncoding: textProperty(document, 'contentEncoding'),
    contentLanguage: textProperty(document, 'contentLanguage'),
    contentDisposition: textProperty(document, 'contentDisposition'),
    cacheControl: textProperty(document, 'cacheControl'),
    contentMd5: base64Of(propertyOf(document, 'contentMD5')),
  };
  return {
    ...{ container: textOf(document, 'containerName'), blob: textOf(document, 'name'), ...NO_CONDITIONS },
    ...{ content, metadata: metadataOf(document), tags: tagsOf(document) },
  };
}

/** Undefined: none was set. */
export function explicitTier(document: LokiDocument): string | undefined {
  const isInferred = propertyOf(document, 'accessTierInferred') === true;
  return isInferred ? undefined : textProperty(document, 'accessTier');
}

function tagsOf({ blobTags }: LokiDocument): string | undefined {
  const { blobTagSet } = mapOf(blobTags);
  if (!Array.isArray(blobTagSet) || blobTagSet.length === 0) return undefined;
  return formatTagsHeader(blobTagSet.map(mapOf).map(({ key, value }) => [String(key), String(value)]));
}

interface CommittedBlock {
  readonly id: string;
  readonly bytes: Persistency;
}

export function committedBlocks({ committedBlocksInOrder: blocks }: LokiDocument): readonly CommittedBlock[] {
  if (!Array.isArray(blocks)) return [];
  return blocks.map(mapOf).map((block) => ({ id: textOf(block, 'name'), bytes: persistencyOf(block.persistency) }));
}

/** Ids of one length, each for one content, and no empty block: otherwise the bytes are taken without their blocks. */
function canKeepIds(blocks: readonly CommittedBlock[]): boolean {
  const contents = new Map(blocks.map(({ id, bytes }) => [id, JSON.stringify(bytes)]));
  return blocks.every(
    ({ id, bytes }) =>
      id.length > 0 &&
      id.length === blocks[0]!.id.length &&
      bytes.count > 0 &&
      contents.get(id) === JSON.stringify(bytes),
  );
}

async function putBlocks(
  storage: Storage,
  folder: AzuriteFolder,
  described: ReturnType<typeof describeBlob> & { readonly tier: string | undefined },
  blocks: readonly CommittedBlock[],
): Promise<void> {
  const { container, blob } = described;
  for (const { id, bytes } of new Map(blocks.map((block) => [block.id, block])).values()) {
    const body = await folder.content('blob', bytes);
    await putBlock(storage, { container, blob, blockId: id, leaseId: undefined, wantsMd5: false, body });
  }
  await putBlockList(storage, { ...described, blocks: blocks.map(({ id }) => ({ source: 'Uncommitted', id })) });
}

async function contentOf(
  folder: AzuriteFolder,
  document: LokiDocument,
  blocks: readonly CommittedBlock[],
): Promise<SentContent> {
  if (blocks.length === 0) return folder.content('blob', persistencyOf(document.persistency));
  const parts = await Promise.all(blocks.map(({ bytes }) => folder.content('blob', bytes)));
  async function* bytes() {
    for (const part of parts) yield* part.bytes();
  }
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (length > WHOLE_BYTES_MAX) return { length, expected: {}, bytes };
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes()) pieces.push(piece);
  return { length, expected: {}, whole: Buffer.concat(pieces), bytes };
}
