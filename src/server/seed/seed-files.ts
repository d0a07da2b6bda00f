/** Shares of a seed, with their files, and the directories that these need. */
import { createHash } from 'node:crypto';
import { parsePath } from '../../rules/file/names.ts';
import { isQuota } from '../../rules/file/shares.ts';
import { asStorageError } from '../../services/common/errors.ts';
import type { Storage } from '../../services/common/storage.ts';
import { createFileWithBytes } from '../../services/file/create-file.ts';
import { createDirectory } from '../../services/file/directories.ts';
import { getFile } from '../../services/file/files.ts';
import { FILE_BYTES_MAX, PUT_RANGE_BYTES_MAX, putRange } from '../../services/file/ranges.ts';
import { renameNode } from '../../services/file/rename.ts';
import { createShare } from '../../services/file/shares.ts';
import { checkedName, readMetadata } from './seed-checks.ts';
import { readContent, readFolder, type SeedContent } from './seed-content.ts';
import type { SeedNode } from './seed-node.ts';
import type { SeedScope } from './seed-step.ts';

export function addShare(node: SeedNode, scope: SeedScope): void {
  const { quota, tier, metadata, files, folder } = node.fields(['quota', 'tier', 'metadata', 'files', 'folder']);
  const share = checkedName(node, 'share');
  if (quota && !isQuota(quota.whole())) throw quota.fault('it is a number of GiB from 1 to 102400');
  const settings = { quota: quota?.whole(), tier: tier?.choice(['TransactionOptimized', 'Hot', 'Cool']) };
  const input = { share, metadata: readMetadata(metadata), ...settings };
  scope.steps.parents.push({
    node,
    account: scope.account,
    existsCode: 'ShareAlreadyExists',
    run: (storage) => createShare(storage, input),
  });
  const listed = files?.entries() ?? [];
  const paths = new SeededPaths();
  for (const file of listed) {
    const path = checkedName(file, 'file');
    paths.add(path, file);
    addFile(file, { share, path }, readContent(file, 'file', scope), scope);
  }
  if (!folder) return;
  const named = paths.copy();
  for (const { name, ...file } of readFolder(folder, scope.folder, listed)) {
    // What the seed lists by itself comes before the folder.
    if (named.has(name)) continue;
    paths.add(name, folder);
    addFile(folder, { share, path: name }, file, scope);
  }
}

/** The paths of a share, in which names of any case are one, and a name is a file or a directory. */
class SeededPaths {
  private readonly files: Map<string, string>;
  private readonly directories = new Set<string>();

  constructor(files: ReadonlyMap<string, string> = new Map()) {
    this.files = new Map(files);
  }

  copy(): SeededPaths {
    return new SeededPaths(this.files);
  }

  has(path: string): boolean {
    const folded = foldPath(path);
    return folded !== undefined && this.files.has(folded.join('/'));
  }

  add(path: string, node: SeedNode): void {
    const parts = foldPath(path);
    if (!parts) throw node.fault(`${path} is no name of a file`);
    const folded = parts.join('/');
    const other = this.files.get(folded);
    if (other !== undefined) throw node.fault(`${path} and ${other} are one name in a share`);
    if (this.directories.has(folded)) throw node.fault(`${path} is a directory of another file`);
    for (const at of parts.slice(1).keys()) {
      const parent = parts.slice(0, at + 1).join('/');
      if (this.files.has(parent)) throw node.fault(`${path} is below ${this.files.get(parent)}, which is a file`);
      this.directories.add(parent);
    }
    this.files.set(folded, path);
  }
}

function foldPath(path: string): string[] | undefined {
  const parsed = parsePath(path);
  return typeof parsed === 'string' ? undefined : parsed.map(({ folded }) => folded);
}

interface FilePlace {
  readonly share: string;
  readonly path: string;
}

function addFile(node: SeedNode, place: FilePlace, seeded: SeedContent, scope: SeedScope): void {
  if (seeded.source.length > FILE_BYTES_MAX) throw node.fault(`${place.path} has more than 4 TiB`);
  scope.steps.children.push({
    node,
    account: scope.account,
    existsCode: 'ResourceAlreadyExists',
    async run(storage) {
      if (await fileExists(storage, place)) return 'unchanged';
      await createParents(storage, place);
      return writeFile(storage, place, seeded);
    },
  });
}

async function fileExists(storage: Storage, place: FilePlace): Promise<boolean> {
  try {
    await getFile(storage, { ...place, leaseId: undefined });
    return true;
  } catch (error) {
    if (asStorageError(error)?.status === 404) return false;
    throw error;
  }
}

/** Other files of the seed may need the same directories at the same time. */
async function createParents(storage: Storage, { share, path }: FilePlace): Promise<void> {
  const parts = path.split('/').slice(0, -1);
  for (const at of parts.keys()) {
    try {
      await createDirectory(storage, { share, path: parts.slice(0, at + 1).join('/'), metadata: [], smb: {} });
    } catch (error) {
      if (asStorageError(error)?.code !== 'ResourceAlreadyExists') throw error;
    }
  }
}

/** A long file gets its name when it is complete: the next start finds either all of it or none, and writes the same part again. */
async function writeFile(storage: Storage, place: FilePlace, { source, content, metadata }: SeedContent) {
  const { length } = source;
  const isLong = length > PUT_RANGE_BYTES_MAX;
  const target = isLong ? { ...place, path: incompletePath(place.path) } : place;
  const input = { ...target, length, content, metadata, smb: {}, leaseId: undefined };
  const first = await source.open(0, Math.min(length, PUT_RANGE_BYTES_MAX));
  await createFileWithBytes(storage, { ...input, body: first });
  if (!isLong) return;
  for (let from = PUT_RANGE_BYTES_MAX; from < length; from += PUT_RANGE_BYTES_MAX) {
    const size = Math.min(PUT_RANGE_BYTES_MAX, length - from);
    const range = `bytes=${from}-${from + size - 1}`;
    await putRange(storage, {
      ...target,
      leaseId: undefined,
      range,
      lastWrite: undefined,
      keepsTimes: false,
      body: await source.open(from, size),
    });
  }
  await renameNode(storage, 'file', {
    ...place,
    source: { path: target.path },
    replaces: false,
    ignoresReadOnly: false,
    ...{ sourceLeaseId: undefined, destinationLeaseId: undefined },
    metadata: [],
    smb: {},
  });
}

/** In the root, so that its path is never too long; clients do not give such names. */
function incompletePath(path: string): string {
  return `.holdfast-seed-${createHash('sha256').update(path).digest('hex').slice(0, 32)}`;
}
