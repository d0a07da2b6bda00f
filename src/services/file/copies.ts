/**
 * Copy File and Abort Copy File. A copy of a file of the same account gets a content of its own, of the same chunks, and is complete when it is
 * answered; any other is pending: the request makes an empty file and a running copy, and the bytes follow in the background.
 */
import { randomUUID } from 'node:crypto';
import type { GroupPlace } from '../../content/ranges/groups.ts';
import type { HeldRead, RangeMap } from '../../content/ranges/range-maps.ts';
import { formatId } from '../../content/rows.ts';
import { OutcomeUnknown, type Snapshot, type Transaction } from '../../partition/partition.ts';
import { abortCopy, judgeAbort, startCopy } from '../../rules/copy-state.ts';
import { isFileLength } from '../../rules/file/ranges.ts';
import { normaliseLeaseId } from '../../rules/lease.ts';
import type { ContentHeaders } from '../common/content-headers.ts';
import { type CopySource, copySourceError, type LocalSource, readerOf, sourceScope } from '../common/copy-sources.ts';
import { type Metadata, parseMetadata, type SentMetadata } from '../common/names.ts';
import { openRemote } from '../common/remote-source.ts';
import { decodeRunningCopy, encodeRunningCopy, type RunningCopy } from '../common/running-copies.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { readSeenContent } from './file-content.ts';
import { pathInput } from './file-source.ts';
import { checkReplaceable, type FileInput, putFile } from './files.ts';
import { contentPlace } from './generations.ts';
import { checkPath, pathQueueKey, resolve, resolveFile } from './namespace.ts';
import type { File } from './node-rows.ts';
import { checkSharing } from './opens.ts';
import { readPermission } from './permissions.ts';
import { checkFileLease, parseLeaseId } from './request-checks.ts';
import { runningCopyKey } from './rows.ts';
import { endFileCopy } from './running-copies.ts';
import type { AskedSmb, SmbSource } from './smb-properties.ts';
import { charge } from './usage.ts';

export interface CopyFileInput extends FileInput {
  readonly source: CopySource;
  /** Unless empty, it replaces the metadata of the source. */
  readonly metadata: SentMetadata;
  readonly smb: AskedSmb;
  readonly ignoresReadOnly: boolean | undefined;
}

export interface StartedFileCopy {
  readonly file: File;
  readonly copyId: string;
  readonly copyStatus: 'success' | 'pending';
}

/** The source as it was found. */
interface CopiedSource {
  readonly bytes: number;
  readonly content: ContentHeaders;
  readonly metadata: Metadata;
  /** Of a file of this server. */
  readonly smb?: SmbSource | undefined;
}

export async function copyFile(storage: Storage, input: CopyFileInput): Promise<StartedFileCopy> {
  const { source } = input;
  const path = checkPath(input);
  const leaseId = parseLeaseId(input.leaseId);
  const metadata = parseMetadata(input.metadata);
  if (path.length === 0) throw fail('InvalidUri');
  if (!('remote' in source)) readerOf(storage, source.service).check(source);
  await storage.partition.read(async (at) => {
    const target = await resolve(at, storage, input.share, path);
    await checkReplaceable(at, target, leaseId, input.ignoresReadOnly);
  });
  const copy: CheckedFileCopy = { input, path, leaseId, metadata: input.metadata.length > 0 ? metadata : undefined };
  if ('remote' in source || source.service !== 'file' || sourceScope(storage).account !== storage.account)
    return startPending(storage, copy);
  return copyWithin(storage, copy, source);
}

interface CheckedFileCopy {
  readonly input: CopyFileInput;
  readonly path: ReturnType<typeof checkPath>;
  readonly leaseId: string | undefined;
  /** Undefined: that of the source. */
  readonly metadata: Metadata | undefined;
}

/** One state of a file. */
interface HeldFile extends CopiedSource {
  readonly map: RangeMap;
  readonly gen: number;
  /** Undefined: of a snapshot. */
  readonly held?: HeldRead;
}

/** Writes to the source go on while its pages are copied. */
async function copyWithin(storage: Storage, copy: CheckedFileCopy, source: LocalSource): Promise<StartedFileCopy> {
  const { account, content, partition, sweeper } = storage;
  const { ranges } = content;
  const reader = readerOf(storage, 'file');
  const readId = content.newId();
  const read = content.beginRead();
  let found: (CopiedSource & Partial<HeldFile>) | undefined;
  try {
    const { value } = await partition.transact(reader.queueKey(account, source), async (tx) => {
      const file = await findFile(tx, storage, source);
      const state = await describe(tx, file.share, file.node);
      if (file.node.contentId === undefined) return state;
      const { map, gen } = await readSeenContent(tx, storage, file);
      // That of a snapshot is held, and its release waits for this read.
      if (gen !== undefined) return { ...state, map, gen };
      const held = await ranges.holdForRead(tx, account, map, readId);
      return { ...state, map, held, gen: held.gen };
    });
    found = value;
    if (!found.map || found.gen === undefined) return await commitCopy(storage, copy, found, undefined);
    const id = content.newId();
    const pendingKey = await ranges.fork(account, id, { map: found.map, gen: found.gen, length: found.bytes });
    try {
      const finish = (tx: Transaction, place: GroupPlace) => ranges.finishFork(tx, account, id, pendingKey, place);
      return await commitCopy(storage, copy, found, { contentId: formatId(id), finish });
    } catch (error) {
      // After a commit of unknown outcome a node may name the copy.
      if (!(error instanceof OutcomeUnknown)) await ranges.abandonFork(id, pendingKey);
      throw error;
    }
  } finally {
    read.end();
    if (found?.held) await ranges.releaseRead(account, found.held);
    sweeper.wake();
  }
}

async function findFile(at: Snapshot, storage: Storage, source: LocalSource) {
  const input = pathInput(source);
  try {
    const found = await resolveFile(at, sourceScope(storage), input.share, checkPath(input), source.snapshot);
    await checkSharing(at, found, 'read');
    return found;
  } catch (error) {
    throw copySourceError(error);
  }
}

async function describe(at: Snapshot, share: Parameters<typeof readPermission>[1], file: File): Promise<CopiedSource> {
  const { length: bytes, content, metadata, attributes, times } = file;
  const permission = await readPermission(at, share, file.permission);
  return { bytes, content, metadata, smb: { attributes, times, permission } };
}

async function commitCopy(
  storage: Storage,
  { input, path, leaseId, metadata: sent }: CheckedFileCopy,
  { bytes, content, metadata, smb: smbSource }: CopiedSource,
  made: { readonly contentId: string; finish(tx: Transaction, place: GroupPlace): Promise<void> } | undefined,
): Promise<StartedFileCopy> {
  const copyId = randomUUID();
  const { value } = await storage.partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const target = await resolve(tx, storage, input.share, path);
    await made?.finish(tx, contentPlace(target.share));
    return putFile(tx, storage, target, {
      ...{ ...input, leaseId, length: bytes, content, metadata: sent ?? metadata, smbSource },
      contentId: made?.contentId,
      copy: { id: copyId, source: input.source.url, bytes, completed: tx.timestamp },
    });
  });
  if (value.needsSweep) storage.sweeper.wake();
  return { file: value.file, copyId, copyStatus: 'success' };
}

async function startPending(storage: Storage, copy: CheckedFileCopy): Promise<StartedFileCopy> {
  const { input, path, leaseId } = copy;
  const { content, partition, sweeper, copies } = storage;
  if (!copies) throw new Error('copies are not run here');
  const { source, ...found } = await findSource(storage, input.source);
  const { bytes, smb: smbSource } = found;
  if (!isFileLength(bytes)) throw fail('RequestBodyTooLarge');
  const { contentMd5: md5, ...headers } = found.content;
  const contentId = content.newId();
  const copyId = randomUUID();
  const { value } = await partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const target = await resolve(tx, storage, input.share, path);
    const put = await putFile(tx, storage, target, {
      ...{ ...input, leaseId, length: 0, content: headers, metadata: copy.metadata ?? found.metadata, smbSource },
      copy: startCopy({ id: copyId, source: input.source.url, bytes }),
    });
    // The bytes count from the start on, so that the end of the copy cannot exceed the quota.
    await charge(tx, target.share, bytes);
    const key = runningCopyKey(target.share, put.file.id, input.share);
    const running = { id: copyId, source, md5, content: contentId, owner: contentId.epoch };
    tx.put(key, encodeRunningCopy({ ...running, started: tx.now }));
    return { ...put, key };
  });
  if (value.needsSweep) sweeper.wake();
  copies.start(value.key);
  return { file: value.file, copyId, copyStatus: 'pending' };
}

async function findSource(
  storage: Storage,
  named: CopySource,
): Promise<CopiedSource & { readonly source: RunningCopy['source'] }> {
  if ('remote' in named) {
    const { head, metadata, close } = await openRemote(storage, named);
    close();
    const { etag, modified, length: bytes, content } = head;
    return { source: { url: named.remote.url, etag, modified }, bytes, content, metadata };
  }
  const scope = sourceScope(storage);
  const { service, container, item, snapshot, keepsTrailingDots } = named;
  return storage.partition.read(async (at) => {
    try {
      const {
        etag,
        length: bytes,
        content,
        metadata,
      } = await readerOf(storage, service).find(at, storage.content, scope, named);
      const place = { account: scope.account, service, container, item, snapshot, keepsTrailingDots };
      const source = { ...place, grantedContainer: scope.granted?.container, etag };
      if (service !== 'file') return { source, bytes, content, metadata };
      const { share, node } = await findFile(at, storage, named);
      return { source, ...(await describe(at, share, node)) };
    } catch (error) {
      throw copySourceError(error);
    }
  });
}

/** Leaves an empty file with the metadata of the copy. */
export async function abortFileCopy(storage: Storage, input: FileInput & { readonly copyId: string }): Promise<void> {
  const { content, partition, sweeper, copies } = storage;
  const path = checkPath(input);
  const leaseId = parseLeaseId(input.leaseId);
  const copyId = normaliseLeaseId(input.copyId);
  if (copyId === undefined)
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'copyid', QueryParameterValue: input.copyId });
  const { value: needsSweep } = await partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const target = await resolveFile(tx, storage, input.share, path);
    const { share, node: file } = target;
    await checkSharing(tx, target, 'none');
    checkFileLease(tx, file, leaseId, 'write');
    const verdict = judgeAbort(file.copy, copyId);
    if (verdict !== 'proceed') throw fail(verdict);
    const key = runningCopyKey(share, file.id, input.share);
    const row = await tx.get(key);
    if (!row || !file.copy) throw new Error('a pending copy that does not run');
    const state = abortCopy(file.copy, tx.timestamp);
    return endFileCopy(tx, content, key, decodeRunningCopy(row), { share, file }, state);
  });
  if (needsSweep) sweeper.wake();
  copies?.wake();
}
