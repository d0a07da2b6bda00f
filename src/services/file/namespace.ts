/**
 * The namespace of a share: paths to nodes, and the only writes of entries and nodes. Every operation resolves its path in the
 * transaction that writes: so the name of the share and each entry on the path are read checks of the commit.
 */
import type { Key } from '../../partition/keys.ts';
import type { Instant, Row, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { decodeCounter } from '../../partition/values.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { type Name, type Path, type PathFault, parsePath } from '../../rules/file/names.ts';
import { shareNameFault } from '../../rules/names.ts';
import type { AccountScope } from '../common/storage.ts';
import { fail } from './errors.ts';
import { entryAt, keepEntry, keepNode, keepTimes, nodeAt, timesAt } from './history.ts';
import {
  type Directory,
  type DirectoryRecord,
  decodeEntry,
  decodeNode,
  type Entry,
  encodeEntry,
  encodeNode,
  type File,
  type FileRecord,
  type Node,
  recordFrom,
} from './node-rows.ts';
import { opensKey } from './open-rows.ts';
import { entryKey, type NodeId, nodeKey, ROOT, readShare, type Share, timesKey, txQueueKey } from './rows.ts';
import { rootSmb } from './smb-properties.ts';
import { readSnapshotGeneration, type ShareSnapshotInput } from './snapshot-rows.ts';

export interface PathInput {
  readonly share: string;
  /** As in the address, decoded: names between slashes. */
  readonly path: string;
  /** The header x-ms-allow-trailing-dot. */
  readonly keepsTrailingDots?: boolean | undefined;
  readonly allowsPrivateUse?: boolean | undefined;
}

/** Of a read: of the share as it is, or of a snapshot. */
export interface ReadPathInput extends PathInput, ShareSnapshotInput {}

const PATH_MESSAGES: Readonly<Record<Exclude<PathFault, 'InvalidResourceName'>, string>> = {
  PathTooLong: 'File or directory path is too long.',
  TooManySubdirectories: 'File or directory path has too many subdirectories.',
};

/** Before any row is read. */
export function checkPath({ share, path: text, ...options }: PathInput): Path {
  const shareFault = shareNameFault(share);
  if (shareFault) throw fail(shareFault);
  const path = parsePath(text, options);
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
  /** The opens of that directory, if they were read with it. */
  readonly parentOpens?: ReadRow | undefined;
  /** The entry of the last name. */
  readonly entry?: Entry | undefined;
  /** Undefined: no entry has this name. */
  readonly node: Node | undefined;
  /** The opens of the node, if they were read with it. */
  readonly opens?: ReadRow | undefined;
  /** The generation of the snapshot that is read; undefined: the current state. */
  readonly seenAt?: number | undefined;
}

/** A row that was looked for; undefined: it is absent. */
export interface ReadRow {
  readonly row: Row | undefined;
}

/**
 * For what may add an entry: so the node of the directory is read, and checked, with the path.
 * @throws ParentNotFound if a name before the last one leads to no directory
 */
export async function resolve(at: Snapshot, scope: AccountScope, share: string, path: Path): Promise<Target> {
  return follow(at, await readShare(at, scope, share), path, { withParent: true });
}

async function follow(
  at: Snapshot,
  share: Share,
  path: Path,
  { withParent = false, seenAt }: { readonly withParent?: boolean; readonly seenAt?: number | undefined },
): Promise<Target> {
  const name = path.at(-1);
  if (!name) return { share, ancestors: [], name, ...(await readWithOpens(at, share, ROOT, seenAt)), seenAt };
  const ancestors: NodeId[] = [ROOT];
  let parent = ROOT;
  for (const { folded } of path.slice(0, -1)) {
    const above = await entryAt(at, share, parent, folded, seenAt);
    if (above?.kind !== 'directory') throw fail('ParentNotFound');
    parent = above.node;
    ancestors.push(parent);
  }
  const found: Pick<Target, 'entry' | 'parentRow' | 'parentOpens'> = withParent
    ? await readWithParent(at, share, parent, name)
    : { entry: await entryAt(at, share, parent, name.folded, seenAt) };
  const read = found.entry ? await readWithOpens(at, share, found.entry.node, seenAt) : { node: undefined };
  return { share, ancestors, name, ...found, ...read, seenAt };
}

/** One read for the node and the opens that every operation on it checks. */
async function readWithOpens(at: Snapshot, share: Share, id: NodeId, seenAt: number | undefined) {
  if (seenAt !== undefined) return { node: await readNode(at, share, id, seenAt) };
  const [row, opens] = await at.getMany([nodeKey(share, id), opensKey(share, id)]);
  if (!row) throw missingNode(share, id);
  return { node: decodeNode(id, row), opens: { row: opens } };
}

/** One read for all. */
async function readWithParent(at: Snapshot, share: Share, parent: NodeId, { folded }: Name) {
  const keys = [entryKey(share, parent, folded), nodeKey(share, parent), opensKey(share, parent)];
  const [row, parentRow, opens] = await at.getMany(keys);
  return { entry: row && decodeEntry(row), parentRow, parentOpens: { row: opens } };
}

export const parentId = ({ ancestors }: Pick<Target, 'ancestors'>): NodeId => ancestors.at(-1) ?? ROOT;

/** The directory that has or would have the entry. */
export async function readParent(at: Snapshot, target: Target): Promise<Directory> {
  const { share, parentRow } = target;
  const id = parentId(target);
  return (parentRow ? decodeNode(id, parentRow) : await readNode(at, share, id)) as Directory;
}

export type FoundTarget = Target & { readonly node: Node };
export type FoundDirectory = Target & { readonly node: Directory };
export type FoundFile = Target & { readonly node: File };

/** @param second of the snapshot that is read; undefined: the current state */
export async function resolveDirectory(
  at: Snapshot,
  scope: AccountScope,
  share: string,
  path: Path,
  second?: Instant,
): Promise<FoundDirectory> {
  const target = await resolveAt(at, scope, share, path, second);
  if (target.node?.kind !== 'directory') throw fail('ResourceNotFound');
  return target as FoundDirectory;
}

/** @param second of the snapshot that is read; undefined: the current state */
export async function resolveFile(
  at: Snapshot,
  scope: AccountScope,
  share: string,
  path: Path,
  second?: Instant,
): Promise<FoundFile> {
  const target = await resolveAt(at, scope, share, path, second);
  if (target.node?.kind !== 'file') throw fail('ResourceNotFound');
  return target as FoundFile;
}

/** Whatever is there, now or in the snapshot of this second. */
export async function resolveAt(
  at: Snapshot,
  scope: AccountScope,
  shareName: string,
  path: Path,
  second: Instant | undefined,
): Promise<Target> {
  const share = await readShare(at, scope, shareName);
  const seenAt = second === undefined ? undefined : await readSnapshotGeneration(at, share, second);
  return follow(at, share, path, { seenAt });
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
  await putEntry(tx, target, id, node.kind);
  return putNode(tx, share, id, record as DirectoryRecord | FileRecord) as New extends Unplaced<FileRecord>
    ? File
    : Directory;
}

/** Removes the node of the target and its entry. What the node names (a content, entries below) is the caller's. */
export async function removeNode(tx: Transaction, target: Target & { readonly node: Node }): Promise<void> {
  const { share, node } = target;
  await keepNode(tx, share, node);
  tx.remove(nodeKey(share, node.id));
  if (node.kind === 'directory') {
    await keepTimes(tx, share, node.id);
    tx.remove(timesKey(share, node.id));
  }
  await removeEntry(tx, target);
}

/** The node of the source, as given here, gets the name of the target, where nothing else is. */
export async function moveNode(
  tx: Transaction,
  source: Target & { readonly node: Node },
  target: Target,
  node: Node,
): Promise<Node> {
  const { share, name } = target;
  await removeEntry(tx, source);
  await putEntry(tx, target, node.id, node.kind);
  return updateNode(tx, share, source.node, { ...recordFrom(node), parent: parentId(target), name: name!.name });
}

/**
 * Writes a node again, with these changes and a new ETag, or with its old one.
 * @param node as it was read
 */
export async function updateNode<T extends Node>(
  tx: Transaction,
  share: Share,
  node: T,
  changes: Partial<T extends File ? FileRecord : DirectoryRecord>,
  etag: 'new' | 'keep' = 'new',
): Promise<T> {
  await keepNode(tx, share, node);
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

/**
 * A directory with its times as readers see them: unless they were set later, those at which an entry of it changed last.
 * @param changed 0: its entries have never changed
 */
export function followEntries(directory: Directory, changed: bigint): Directory {
  if (changed <= directory.timesSet) return directory;
  return { ...directory, times: { ...directory.times, lastWrite: changed, change: changed } };
}

/** In a transaction the row is not checked: it would conflict with every change of an entry. */
export async function readEntryTimes(
  at: Snapshot | Transaction,
  share: Share,
  directory: Directory,
  seenAt?: number,
): Promise<Directory> {
  if (seenAt !== undefined) return followEntries(directory, await timesAt(at, share, directory.id, seenAt));
  const key = timesKey(share, directory.id);
  const [row] = 'getUnchecked' in at ? await at.getUnchecked([key]) : [await at.get(key)];
  return followEntries(directory, decodeCounter(row));
}

/** The last-write and change time of a directory follow its entries; no transaction conflicts with this write, except the first one after a snapshot. */
async function touchDirectory(tx: Transaction, share: Share, directory: NodeId): Promise<void> {
  await keepTimes(tx, share, directory);
  tx.max(timesKey(share, directory), tx.timestamp);
}

async function putEntry(tx: Transaction, target: Target, node: NodeId, kind: Node['kind']): Promise<void> {
  const { share, name } = target;
  await touchDirectory(tx, share, parentId(target));
  const entry = encodeEntry({ node, name: name!.name, kind, born: share.gen });
  tx.put(entryKey(share, parentId(target), name!.folded), entry);
}

/** What takes its place is put after it is removed. */
async function removeEntry(tx: Transaction, target: Target): Promise<void> {
  const { share, name, entry } = target;
  const parent = parentId(target);
  await touchDirectory(tx, share, parent);
  await keepEntry(tx, share, parent, name!.folded, entry!);
  tx.remove(entryKey(share, parent, name!.folded));
}

/** @param seenAt the generation of a snapshot; undefined: the current state */
export async function readNode(at: Snapshot, share: Share, id: NodeId, seenAt?: number): Promise<Node> {
  const node = await nodeAt(at, share, id, seenAt);
  if (!node) throw missingNode(share, id);
  return node;
}

const missingNode = (share: Share, id: NodeId): Error =>
  new Error(`node ${id} of share ${share.id} has no row, although an entry names it`);
