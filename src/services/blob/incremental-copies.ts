/**
 * Incremental Copy Blob: a page blob that consists of copies of another one's snapshots. Each copy writes what changed since the one before
 * into the content of the blob, which nobody can read but through its snapshots.
 */
import { randomUUID } from 'node:crypto';
import { NO_END } from '../../content/ranges/range-maps.ts';
import { formatId, parseId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { startCopy as startState } from '../../rules/copy-state.ts';
import { beginIncremental, type IncrementalSource, judgeIncrementalCopy } from '../../rules/incremental-copy.ts';
import { parseSnapshotTime } from '../../rules/snapshots.ts';
import {
  type CopySource,
  copySourceError,
  type LocalSource,
  type RemoteSource,
  sourceScope,
} from '../common/copy-sources.ts';
import { openRemote } from '../common/remote-source.ts';
import type { IncrementalCopy } from '../common/running-copies.ts';
import type { Storage } from '../common/storage.ts';
import { encodeBlobRecord, readBlob } from './blob-record.ts';
import { findEarlierState } from './earlier-states.ts';
import { fail } from './errors.ts';
import { type FoundSource, runPendingCopy } from './pending-copies.ts';
import { readBlobState } from './remote-blobs.ts';
import {
  type BlobInput,
  checkBlobName,
  checkContainerName,
  checkLease,
  checkNoPendingCopy,
  checkWritable,
  checkWriteConditions,
  checkWriteInput,
} from './request-checks.ts';
import { type Blob, blobKey, recordFrom } from './rows.ts';
import { currentLease, putBlobRecord, readTarget, releaseReplaced, type WriteTarget } from './write-target.ts';

export interface IncrementalCopyInput extends BlobInput {
  readonly source: CopySource;
}

interface FoundSnapshot extends FoundSource {
  readonly identity: IncrementalSource;
}

export async function copyIncrementally(storage: Storage, input: IncrementalCopyInput) {
  const { source } = input;
  const leaseId = checkWriteInput(input);
  checkWritable(storage, input.container);
  const found = await ('remote' in source ? findRemote(storage, source) : findLocal(storage, source));
  const copyId = randomUUID();
  const newContent = storage.content.newId();
  const { contentMd5: md5 } = found.content;
  return runPendingCopy(storage, input, copyId, async (tx) => {
    const target = await readTarget(tx, storage, input);
    const copy = checkTarget(tx, storage, target, { ...input, leaseId }, found.identity);
    if (copy.since !== undefined && !('remote' in source)) await checkSince(tx, storage, source, copy.since);
    const contentId = target.blob ? parseId(target.blob.contentId!) : newContent;
    const record = describe(target.blob, found, input, copyId);
    const needsSweep = target.blob
      ? await goOn(tx, storage, target, { ...recordFrom(target.blob), ...record }, copy)
      : await begin(tx, storage, target, { ...record, length: 0, contentId: formatId(contentId) });
    const place = { account: storage.account, container: target.containerId, blob: input.blob };
    const inPlace = { incremental: copy };
    return { needsSweep, place, running: { source: found.source, md5, content: contentId, inPlace } };
  });
}

function checkTarget(
  tx: Transaction,
  { granted }: Storage,
  target: WriteTarget,
  { conditions, leaseId }: IncrementalCopyInput,
  identity: IncrementalSource,
): IncrementalCopy {
  const { blob } = target;
  checkLease(tx, currentLease(target), leaseId, 'write', 'blob');
  checkWriteConditions(blob, conditions, leaseId, true);
  if (blob && granted?.overwrite === false) throw fail('UnauthorizedBlobOverwrite');
  if (!blob && target.uncommitted) throw fail('InvalidBlobType');
  checkNoPendingCopy(blob);
  const known = blob && { isPageBlob: blob.page !== undefined, incremental: blob.page?.incremental };
  const verdict = judgeIncrementalCopy(known, identity);
  if ('refused' in verdict) throw fail(verdict.refused);
  return verdict;
}

/** What the record says of the copy that has begun. */
function describe(blob: Blob | undefined, found: FoundSnapshot, { source }: IncrementalCopyInput, copyId: string) {
  const { contentMd5: _, ...content } = found.content;
  const incremental = beginIncremental(blob?.page?.incremental, found.identity.source);
  return {
    content,
    metadata: found.metadata,
    page: { sequenceNumber: found.page!.sequenceNumber, incremental },
    copy: startState({ id: copyId, source: source.url, bytes: found.bytes }),
  };
}

type NewRecord = Parameters<typeof putBlobRecord>[3];

/** True: the sweeper has work to do. */
async function begin(tx: Transaction, storage: Storage, target: WriteTarget, record: NewRecord): Promise<boolean> {
  const needsSweep = await releaseReplaced(tx, storage, target);
  storage.content.ranges.create(tx, storage.account, parseId(record.contentId!));
  await putBlobRecord(tx, storage, target, record);
  return needsSweep;
}

/** Without a snapshot to compare with, everything is copied again: what is left of another copy goes first. */
async function goOn(
  tx: Transaction,
  { account, content: { ranges } }: Storage,
  { containerId, name }: WriteTarget,
  record: Parameters<typeof encodeBlobRecord>[0],
  { since }: IncrementalCopy,
): Promise<boolean> {
  tx.put(blobKey(account, containerId, name), encodeBlobRecord(record));
  if (since !== undefined) return false;
  const map = await ranges.read(tx, account, parseId(record.contentId!));
  return (await ranges.clear(tx, account, map, 0, NO_END)).needsSweep;
}

async function findLocal(storage: Storage, source: LocalSource): Promise<FoundSnapshot> {
  const { service, container, item: name, snapshot } = source;
  if (service !== 'blob') throw fail('InvalidBlobType');
  checkContainerName(container);
  checkBlobName(name);
  const scope = sourceScope(storage);
  const { id, blob } = await storage.partition
    .read((at) => readBlob(at, scope, container, name, snapshot))
    .catch((error: unknown) => {
      throw copySourceError(error);
    });
  const { etag, length: bytes, content, metadata, append, page } = blob;
  const place = { account: scope.account, service, container, item: name, snapshot };
  const expected = { ...place, grantedContainer: scope.granted?.container, etag };
  const identity = { source: `${scope.account} ${id} ${name}`, snapshot, isPageBlob: page !== undefined };
  return { source: expected, bytes, content, metadata, append, page, identity };
}

/** The snapshot that was copied last has to be there still, and to be one of the same blob. */
async function checkSince(tx: Transaction, storage: Storage, source: LocalSource, since: bigint): Promise<void> {
  const { container, item: name, snapshot } = source;
  const scope = sourceScope(storage);
  const { blob } = await readBlob(tx, scope, container, name, snapshot);
  await findEarlierState(tx, scope, { container, blob: name, snapshot, since }, blob);
}

async function findRemote(storage: Storage, source: RemoteSource): Promise<FoundSnapshot> {
  const { head, metadata, close } = await openRemote(storage, source);
  close();
  const { etag, modified, length: bytes, content } = head;
  const { url } = source.remote;
  const { origin, pathname, searchParams } = new URL(url);
  const state = readBlobState(head);
  const snapshot = parseSnapshotTime(searchParams.get('snapshot') ?? '');
  const identity = { source: `${origin}${pathname}`, snapshot, isPageBlob: state.page !== undefined };
  return { source: { url, etag, modified }, bytes, content, metadata, ...state, identity };
}
