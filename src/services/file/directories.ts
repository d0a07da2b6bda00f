/** The operations on one directory: create, delete, properties and metadata. */
import { parseMetadata, type SentMetadata } from '../common/names.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import {
  addNode,
  checkPath,
  type PathInput,
  pathQueueKey,
  type ReadPathInput,
  readEntryTimes,
  readParent,
  removeNode,
  resolve,
  resolveDirectory,
  updateNode,
} from './namespace.ts';
import type { Directory, DirectoryRecord } from './node-rows.ts';
import { checkSharing, checkTakesEntries } from './opens.ts';
import { entriesIn } from './rows.ts';
import { type AskedSmb, resolveSmb } from './smb-properties.ts';

export interface CreateDirectoryInput extends PathInput {
  readonly metadata: SentMetadata;
  readonly smb: AskedSmb;
}

export async function createDirectory(storage: Storage, input: CreateDirectoryInput): Promise<Directory> {
  const path = checkPath(input);
  const metadata = parseMetadata(input.metadata);
  const { value } = await storage.partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const target = await resolve(tx, storage, input.share, path);
    await checkSharing(tx, target, 'none');
    if (target.node) throw fail(target.node.kind === 'directory' ? 'ResourceAlreadyExists' : 'ResourceTypeMismatch');
    await checkTakesEntries(tx, target);
    const of = { kind: 'directory', parent: await readParent(tx, target), current: undefined } as const;
    const smb = await resolveSmb(tx, target.share, input.smb, of);
    return addNode(tx, target, { kind: 'directory', ...smb, metadata });
  });
  return value;
}

/** Only an empty one, and never the root. */
export async function deleteDirectory(storage: Storage, input: PathInput): Promise<void> {
  const path = checkPath(input);
  if (path.length === 0) throw fail('InvalidUri');
  await storage.partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const target = await resolveDirectory(tx, storage, input.share, path);
    await checkSharing(tx, target, 'delete');
    // Whatever adds an entry checks the entry of this directory, which is removed here.
    const below = await tx.scan(entriesIn(target.share, target.node.id), { limit: 1 });
    if (below.length > 0) throw fail('DirectoryNotEmpty');
    await removeNode(tx, target);
  });
}

export async function getDirectory(storage: Storage, input: ReadPathInput): Promise<Directory> {
  const path = checkPath(input);
  return storage.partition.read(async (at) => {
    const found = await resolveDirectory(at, storage, input.share, path, input.snapshot);
    await checkSharing(at, found, 'none');
    return readEntryTimes(at, found.share, found.node, found.seenAt);
  });
}

export function setDirectoryMetadata(
  storage: Storage,
  input: PathInput & { readonly metadata: SentMetadata },
): Promise<Directory> {
  return changeDirectory(storage, { ...input, smb: {} }, { metadata: parseMetadata(input.metadata) });
}

export function setDirectoryProperties(
  storage: Storage,
  input: PathInput & { readonly smb: AskedSmb },
): Promise<Directory> {
  return changeDirectory(storage, input, {});
}

async function changeDirectory(
  storage: Storage,
  input: PathInput & { readonly smb: AskedSmb },
  changes: Partial<DirectoryRecord>,
): Promise<Directory> {
  const path = checkPath(input);
  const { value } = await storage.partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const target = await resolveDirectory(tx, storage, input.share, path);
    const { share } = target;
    await checkSharing(tx, target, 'none');
    const current = await readEntryTimes(tx, share, target.node);
    const parent = path.length === 0 ? current : await readParent(tx, target);
    const smb = await resolveSmb(tx, share, input.smb, { kind: 'directory', parent, current });
    return updateNode(tx, share, target.node, { ...smb, ...changes, timesSet: tx.timestamp });
  });
  return value;
}
