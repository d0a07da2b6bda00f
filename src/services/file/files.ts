/** The operations on one file that do not concern its bytes: create, delete, properties and metadata. */
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import type { CopyState } from '../../rules/copy-state.ts';
import { isFileLength } from '../../rules/file/ranges.ts';
import { leaseAfterWrite, leaseState } from '../../rules/lease.ts';
import type { ContentHeaders } from '../common/content-headers.ts';
import { type Metadata, parseMetadata, type SentMetadata } from '../common/names.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { changeLength } from './file-content.ts';
import {
  addNode,
  checkPath,
  type FoundFile,
  type PathInput,
  pathQueueKey,
  readParent,
  removeNode,
  resolve,
  resolveFile,
  type Target,
  updateNode,
} from './namespace.ts';
import type { File, FileRecord } from './node-rows.ts';
import { checkSharing, checkTakesEntries } from './opens.ts';
import { releaseFileContent } from './release-content.ts';
import { checkFileLease, checkNoPendingCopy, checkNotReadOnly, parseLeaseId } from './request-checks.ts';
import { type AskedSmb, resolveSmb, type SmbSource } from './smb-properties.ts';
import type { ShareSnapshotInput } from './snapshot-rows.ts';
import { charge } from './usage.ts';

export interface FileInput extends PathInput {
  readonly leaseId: string | undefined;
}

export interface CreateFileInput extends FileInput {
  readonly length: number;
  readonly content: ContentHeaders;
  readonly metadata: SentMetadata;
  readonly smb: AskedSmb;
}

/** A file of zeros, which costs nothing until it is written. A file of this name is replaced; its id and its lease stay. */
export async function createFile(storage: Storage, input: CreateFileInput): Promise<File> {
  const { path, leaseId, metadata } = checkCreateInput(input);
  const { value } = await storage.partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const target = await resolve(tx, storage, input.share, path);
    return putFile(tx, storage, target, { ...input, leaseId, metadata });
  });
  if (value.needsSweep) storage.sweeper.wake();
  return value.file;
}

export function checkCreateInput(input: CreateFileInput) {
  const path = checkPath(input);
  if (path.length === 0) throw fail('InvalidUri');
  if (!isFileLength(input.length))
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-content-length', HeaderValue: String(input.length) });
  return { path, leaseId: parseLeaseId(input.leaseId), metadata: parseMetadata(input.metadata) };
}

type NewFile = Omit<CreateFileInput, 'metadata'> & {
  readonly metadata: Metadata;
  /** A content that the caller has created, with one reference; undefined: zeros. */
  readonly contentId?: string | undefined;
  /** Of a copy. */
  readonly copy?: CopyState | undefined;
  readonly smbSource?: SmbSource | undefined;
  readonly ignoresReadOnly?: boolean | undefined;
};

/** The file that another one may replace; undefined: the name is free. */
export async function checkReplaceable(
  at: Snapshot,
  target: Target,
  leaseId: string | undefined,
  ignoresReadOnly = false,
): Promise<File | undefined> {
  const { node } = target;
  if (!node) await checkTakesEntries(at, target);
  await checkSharing(at, target, 'replace');
  if (node && node.kind !== 'file') throw fail('ResourceTypeMismatch');
  checkFileLease(at, node, leaseId, 'write');
  if (node && !ignoresReadOnly) checkNotReadOnly(node);
  checkNoPendingCopy(node);
  return node;
}

/**
 * Puts a file where the target is, in place of any file there.
 * @param input with the canonical lease id
 */
export async function putFile(
  tx: Transaction,
  storage: Storage,
  target: Target,
  { length, content, metadata, smb: asked, leaseId, contentId, copy, smbSource: source, ignoresReadOnly }: NewFile,
): Promise<{ readonly file: File; readonly needsSweep: boolean }> {
  const { share } = target;
  const node = await checkReplaceable(tx, target, leaseId, ignoresReadOnly);
  if (node && storage.granted?.overwrite === false) throw fail('AuthorizationPermissionMismatch');
  await charge(tx, share, length - (node?.length ?? 0));
  const place = { kind: 'file', parent: await readParent(tx, target), current: undefined, source } as const;
  const smb = await resolveSmb(tx, share, asked, place);
  const record = { kind: 'file', ...smb, length, contentId, content, metadata, copy } as const;
  if (!node) return { file: await addNode(tx, target, record), needsSweep: false };
  const lease = leaseAfterWrite(node.lease, tx.now);
  // Before the content is released: snapshots may still see it.
  const file = await updateNode(tx, share, node, { ...record, lease });
  return { file, needsSweep: await releaseFileContent(tx, storage, node, share) };
}

export async function deleteFile(storage: Storage, input: FileInput): Promise<void> {
  const path = checkPath(input);
  const leaseId = parseLeaseId(input.leaseId);
  const { value: needsSweep } = await storage.partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const target = await resolveFile(tx, storage, input.share, path);
    await checkSharing(tx, target, 'delete');
    checkFileLease(tx, target.node, leaseId, 'write');
    checkNoPendingCopy(target.node);
    await charge(tx, target.share, -target.node.length);
    await removeNode(tx, target);
    return releaseFileContent(tx, storage, target.node, target.share);
  });
  if (needsSweep) storage.sweeper.wake();
}

/** For Get File Properties and Get File Metadata. */
export async function getFile(storage: Storage, input: FileInput & ShareSnapshotInput) {
  const path = checkPath(input);
  const leaseId = parseLeaseId(input.leaseId);
  return storage.partition.read(async (at) => {
    const found = await resolveFile(at, storage, input.share, path, input.snapshot);
    const { node: file } = found;
    await checkSharing(at, found, 'none');
    checkFileLease(at, file, leaseId, 'read');
    return { file, leaseState: leaseState(file.lease, at.now) };
  });
}

export function setFileMetadata(
  storage: Storage,
  input: FileInput & { readonly metadata: SentMetadata },
): Promise<File> {
  const metadata = parseMetadata(input.metadata);
  return changeFile(storage, input, async (tx, { node }) => {
    checkNotReadOnly(node);
    return { metadata, times: { ...node.times, change: tx.now } };
  });
}

export interface SetFilePropertiesInput extends FileInput {
  /** Undefined: the headers of the file stay as they are. */
  readonly content: ContentHeaders | undefined;
  /** Undefined: it stays. */
  readonly length: number | undefined;
  readonly smb: AskedSmb;
}

/** A read-only file is refused unless its attributes are set, which is the way to make it writable. */
export async function setFileProperties(storage: Storage, input: SetFilePropertiesInput): Promise<File> {
  const { content, length } = input;
  const file = await changeFile(storage, input, async (tx, target) => {
    const { share, node } = target;
    if (typeof input.smb.attributes !== 'number') checkNotReadOnly(node);
    const of = { kind: 'file', parent: await readParent(tx, target), current: node } as const;
    const smb = await resolveSmb(tx, share, input.smb, of);
    const resized = length === undefined ? undefined : await changeLength(tx, storage, share, node, length);
    return { ...smb, ...(content && { content }), ...resized?.record };
  });
  if (length !== undefined) storage.sweeper.wake();
  return file;
}

/**
 * Runs one transaction on a file that exists, under its lease.
 * @param changes what the record has then
 * @param etag whether the file has a new ETag then
 */
export async function changeFile(
  storage: Storage,
  input: FileInput,
  changes: (tx: Transaction, target: FoundFile) => Promise<Partial<FileRecord>>,
  etag: 'new' | 'keep' = 'new',
): Promise<File> {
  const path = checkPath(input);
  const leaseId = parseLeaseId(input.leaseId);
  const { value } = await storage.partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const target = await resolveFile(tx, storage, input.share, path);
    await checkSharing(tx, target, 'write');
    checkFileLease(tx, target.node, leaseId, 'write');
    checkNoPendingCopy(target.node);
    const lease = leaseAfterWrite(target.node.lease, tx.now);
    return updateNode(tx, target.share, target.node, { lease, ...(await changes(tx, target)) }, etag);
  });
  return value;
}
