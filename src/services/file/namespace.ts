/**
 * The namespace of a share: paths to nodes, and the only writes of entries and nodes. Every operation resolves its path in the
 * transaction that writes: so the name of the share and each entry on the path are read checks of the commit.
 */
import { type Key, keyAfter } from '../../partition/keys.ts';
import type { Row, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { decodeCounter } from '../../partition/values.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { type Name, type Path, type PathFault, parsePath } from '../../rules/file/names.ts';
import { shareNameFault } from '../../rules/names.ts';
import type { AccountScope } from '../common/storage.ts';
import { fail } from './errors.ts';
import {
  type Directory,
  type DirectoryRecord,
  decodeEntry,
  decodeNode,
  encodeEntry,
  encodeNode,
  type File,
  type FileRecord,
  type Node,
  recordFrom,
} from './node-rows.ts';
import { entryKey, type NodeId, nodeKey, ROOT, readShare, type Share, timesKey, txQueueKey } from './rows.ts';
import { rootSmb } from './smb-properties.ts';

export interface PathInput {
  readonly share: string;
  /** As in the address, decoded: names between slashes. */
  readonly path: string;
  /** The header x-ms-allow-trailing-dot. */
  readonly keepsTrailingDots?: boolean | undefined;
}

const PATH_MESSAGES: Readonly<Record<Exclude<PathFault, 'InvalidResourceName'>, string>> = {
  PathTooLong: 'File or directory path is too long.',
  TooManySubdirectories: 'File or directory path has too many subdirectories.',
};

/** Before any row is read. */
export function checkPath({ share, path: text, keepsTrailingDots }: PathInput): Path {
  const shareFault = shareNameFault(share);
  if (shareFault) throw fail(shareFault);
  const path = parsePath(text, { keepsTrailingDots });
  if (typeof path !== 'string') return path;
  if (path === 'InvalidResourceName') throw fail(path);
  throw fail('InvalidFileOrDirectoryPathName', undefined, PATH_MESSAGES[path]);
}

/** The queue of the transactions on one path. */
export function pathQueueKey({ account }: AccountScope, { share }: PathInput, path: Path): Key {
  return txQueueKey(account, share, ...path.map(({ folded }) => folded));
}

/** Where a path leads, and what is there. */
export interface Target {
  readonly share: Share;
  /** The directories on the path, from the root on, without the target. */
  readonly ancestors: readonly NodeId[];
  /** The last name of the path; undefined: the target is the root. */
  readonly name: Name | undefined;
  /** The row of the directory that has or would have the entry, if it was read with the path. */
  readonly parentRow?: Row | undefined;
  /** Undefined: no entry has this name. */
  readonly node: Node | undefined;
}

/**
 * For what may add an entry: so the node of the directory is read, and checked, with the path.
 * @throws ParentNotFound if a name before the last one leads to no directory
 */
export async function resolve(at: Snapshot, scope: AccountScope, share: string, path: Path): Promise<Target> {
  return follow(at, scope, share, path, true);
}

async function follow(
  at: Snapshot,
  scope: AccountScope,
  shareName: string,
  path: Path,
  withParent: boolean,
): Promise<Target> {
  const share = await readShare(at, scope, shareName);
  const name = path.at(-1);
  if (!name) return { share, ancestors: [], name, node: await readNode(at, share, ROOT) };
  const ancestors: NodeId[] = [ROOT];
  let parent = ROOT;
  for (const { folded } of path.slice(0, -1)) {
    const row = await at.get(entryKey(share, parent, folded));
    const entry = row && decodeEntry(row);
    if (entry?.kind !== 'directory') throw fail('ParentNotFound');
    parent = entry.node;
    ancestors.push(parent);
  }
  const key = entryKey(share, parent, name.folded);
  const [row, parentRow] = withParent ? await at.getMany([key, nodeKey(share, parent)]) : [await at.get(key)];
  const node = row && (await readNode(at, share, decodeEntry(row).node));
  return { share, ancestors, name, parentRow, node };
}

export const parentId = ({ ancestors }: Pick<Target, 'ancestors'>): NodeId => ancestors.at(-1) ?? ROOT;

/** The directory that has or would have the entry. */
export async function readParent(at: Snapshot, target: Target): Promise<Directory> {
  const { share, parentRow } = target;
  const id = parentId(target);
  return (parentRow ? decodeNode(id, parentRow) : await readNode(at, share, id)) as Directory;
}

export type FoundDirectory = Target & { readonly node: Directory };
export type FoundFile = Target & { readonly node: File };

export async function resolveDirectory(
  at: Snapshot,
  scope: AccountScope,
  share: string,
  path: Path,
): Promise<FoundDirectory> {
  const target = await follow(at, scope, share, path, false);
  if (target.node?.kind !== 'directory') throw fail('ResourceNotFound');
  return target as FoundDirectory;
}

export async function resolveFile(at: Snapshot, scope: AccountScope, share: string, path: Path): Promise<FoundFile> {
  const target = await follow(at, scope, share, path, false);
  if (target.node?.kind !== 'file') throw fail('ResourceNotFound');
  return target as FoundFile;
}

/** What the caller decides; the namespace adds parent, name and generation. */
export type NewNode = Unplaced<DirectoryRecord> | Unplaced<FileRecord>;
type Unplaced<Record> = Omit<Record, 'parent' | 'name' | 'born' | 'timesSet' | 'etag'>;

/** The root of a share that is created. */
export function addRoot(tx: Transaction, share: Share): void {
  const placed = { parent: ROOT, name: '', born: share.gen, timesSet: tx.timestamp };
  tx.put(nodeKey(share, ROOT), encodeNode({ kind: 'directory', ...rootSmb(tx.now), ...placed, metadata: {} }));
}

/** Adds a node under the name of the target, which has none. */
export async function addNode<New extends NewNode>(tx: Transaction, target: Target, node: New) {
  const { share, name } = target;
  const id: NodeId = tx.timestamp;
  // A read check: two processes may propose the same timestamp, and only one of them may use it as an id.
  if (await tx.get(nodeKey(share, id))) throw new Error(`node ${id} exists already`);
  const placed = { parent: parentId(target), name: name!.name, born: share.gen };
  const record = { ...node, ...placed, ...(node.kind === 'directory' && { timesSet: tx.timestamp }) };
  putEntry(tx, target, id, node.kind);
  return putNode(tx, share, id, record as DirectoryRecord | FileRecord) as New extends Unplaced<FileRecord>
    ? File
    : Directory;
}

/** Removes the node of the target and its entry. What the node names (a content, entries below) is the caller's. */
export function removeNode(tx: Transaction, target: Target & { readonly node: Node }): void {
  const { share, node } = target;
  tx.remove(nodeKey(share, node.id));
  if (node.kind === 'directory') tx.remove(timesKey(share, node.id));
  removeEntry(tx, target);
}

/** The node of the source, as given here, gets the name of the target, where nothing else is. */
export function moveNode(tx: Transaction, source: Target & { readonly node: Node }, target: Target, node: Node): Node {
  const { share, name } = target;
  removeEntry(tx, source);
  putEntry(tx, target, node.id, node.kind);
  return updateNode(tx, share, node, { parent: parentId(target), name: name!.name });
}

/** Writes a node again, with these changes and a new ETag, or with its old one. */
export function updateNode<T extends Node>(
  tx: Transaction,
  share: Share,
  node: T,
  changes: Partial<T extends File ? FileRecord : DirectoryRecord>,
  etag: 'new' | 'keep' = 'new',
): T {
  const kept: { etag?: Timestamp } = etag === 'keep' ? { etag: node.version } : {};
  const record = { ...recordFrom(node), ...changes, ...kept, born: share.gen };
  return putNode(tx, share, node.id, record as DirectoryRecord | FileRecord) as T;
}

/** The node as a read after the commit would find it. */
function putNode(tx: Transaction, share: Share, id: NodeId, record: DirectoryRecord | FileRecord): Node {
  const key = nodeKey(share, id);
  tx.put(key, encodeNode(record));
  const version = record.etag ?? tx.timestamp;
  return { ...record, id, version, etag: formatEtag(version), modified: version };
}

/** A directory with its times as readers see them: unless they were set later, those at which an entry of it changed last. */
export function followEntries(directory: Directory, timesRow: Row | undefined): Directory {
  const changed = decodeCounter(timesRow);
  if (changed <= directory.timesSet) return directory;
  return { ...directory, times: { ...directory.times, lastWrite: changed, change: changed } };
}

/** In a transaction the row is not checked: it would conflict with every change of an entry. */
export async function readEntryTimes(
  at: Snapshot | Transaction,
  share: Share,
  directory: Directory,
): Promise<Directory> {
  const key = timesKey(share, directory.id);
  const [row] =
    'scanUnchecked' in at
      ? await at.scanUnchecked({ from: key, to: keyAfter(key) }, { limit: 1 })
      : [await at.get(key)];
  return followEntries(directory, row);
}

/** The last-write and change time of a directory follow its entries; this conflicts with nobody. */
function touchDirectory(tx: Transaction, share: Share, directory: NodeId): void {
  tx.max(timesKey(share, directory), tx.timestamp);
}

function putEntry(tx: Transaction, target: Target, node: NodeId, kind: Node['kind']): void {
  const { share, name } = target;
  touchDirectory(tx, share, parentId(target));
  const entry = encodeEntry({ node, name: name!.name, kind, born: share.gen });
  tx.put(entryKey(share, parentId(target), name!.folded), entry);
}

function removeEntry(tx: Transaction, target: Target): void {
  touchDirectory(tx, target.share, parentId(target));
  tx.remove(entryKey(target.share, parentId(target), target.name!.folded));
}

export async function readNode(at: Snapshot, share: Share, id: NodeId): Promise<Node> {
  const row = await at.get(nodeKey(share, id));
  if (!row) throw new Error(`node ${id} of share ${share.id} has no row, although an entry names it`);
  return decodeNode(id, row);
}
