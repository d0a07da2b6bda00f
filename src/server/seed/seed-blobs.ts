/** Containers of a seed, with their blobs. */
import type { Tier } from '../../rules/tiers.ts';
import { createContainer } from '../../services/blob/containers.ts';
import { precheckPutBlob, putBlob } from '../../services/blob/put-blob.ts';
import { formatTagsHeader } from '../tags-header.ts';
import { checkedName, readMetadata, readTags } from './seed-checks.ts';
import { readContent, readFolder, type SeedContent } from './seed-content.ts';
import type { SeedNode } from './seed-node.ts';
import type { SeedScope } from './seed-step.ts';

const TIERS = ['Hot', 'Cool', 'Cold', 'Archive'] as const satisfies Tier[];
/** The limit of Put Blob. */
const BLOB_BYTES_MAX = 5_000 * 1024 * 1024;

export function addContainer(node: SeedNode, scope: SeedScope): void {
  const { access, metadata, blobs, folder } = node.fields(['access', 'metadata', 'blobs', 'folder']);
  const container = checkedName(node, 'container');
  const input = { container, metadata: readMetadata(metadata), access: access?.choice(['blob', 'container']) };
  scope.steps.parents.push({
    node,
    account: scope.account,
    existsCode: 'ContainerAlreadyExists',
    run: (storage) => createContainer(storage, input),
  });
  const listed = blobs?.entries() ?? [];
  for (const blob of listed)
    addBlob(blob, { container, blob: checkedName(blob, 'blob') }, readBlob(blob, scope), scope);
  if (!folder) return;
  for (const { name, ...file } of readFolder(folder, scope.folder, listed))
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
  const { more, ...content } = readContent(node, 'blob', { folder, more: ['tags', 'tier'] });
  const { tags, tier } = more;
  return { ...content, tags: tags && formatTagsHeader(readTags(tags)), tier: tier?.choice(TIERS) };
}
