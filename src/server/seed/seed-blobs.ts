/** Containers of a seed, with their blobs. */
import { createContainer } from '../../services/blob/containers.ts';
import { precheckPutBlob, putBlob } from '../../services/blob/put-blob.ts';
import { formatTagsHeader } from '../tags-header.ts';
import { readContent, readFolder, type SeedContent } from './seed-content.ts';
import type { SeedNode } from './seed-node.ts';
import { readMetadata, type SeedScope } from './seed-step.ts';

/** The limit of Put Blob. */
const BLOB_BYTES_MAX = 5_000 * 1024 * 1024;

export function addContainer(node: SeedNode, scope: SeedScope): void {
  const { access, metadata, blobs, folder } = node.fields(['access', 'metadata', 'blobs', 'folder']);
  const container = node.name;
  const input = { container, metadata: readMetadata(metadata), access: access?.choice(['blob', 'container']) };
  scope.steps.parents.push({
    node,
    account: scope.account,
    existsCode: 'ContainerAlreadyExists',
    run: (storage) => createContainer(storage, input),
  });
  for (const blob of blobs?.entries() ?? [])
    addBlob(blob, { container, blob: blob.name }, readBlob(blob, scope), scope);
  if (!folder) return;
  for (const { name, ...file } of readFolder(folder, scope.folder))
    addBlob(folder, { container, blob: name }, file, scope);
}

interface SeedBlob extends SeedContent {
  /** The header x-ms-tags. */
  readonly tags?: string | undefined;
  readonly tier?: string | undefined;
}

function addBlob(node: SeedNode, name: { container: string; blob: string }, seeded: SeedBlob, scope: SeedScope): void {
  const { source, content, metadata, tags, tier } = seeded;
  if (source.length > BLOB_BYTES_MAX) throw node.fault(`${name.blob} has more than 5,000 MiB: upload it in blocks`);
  const conditions = { ifNoneMatch: '*' as const };
  const input = { ...name, content, metadata, tags, tier, conditions, leaseId: undefined };
  scope.steps.children.push({
    node,
    account: scope.account,
    existsCode: 'BlobAlreadyExists',
    async run(storage) {
      // Before the bytes are read: at most starts, every blob is there.
      await precheckPutBlob(storage, input);
      await putBlob(storage, { ...input, body: await source.open(0, source.length) });
    },
  });
}

function readBlob(node: SeedNode, { folder }: SeedScope): SeedBlob {
  const { more, ...content } = readContent(node, { folder, more: ['tags', 'tier'] });
  const tags = more.tags?.entries().map((tag) => [tag.name, tag.text()] as const);
  return { ...content, tags: tags && formatTagsHeader(tags), tier: more.tier?.text() };
}
