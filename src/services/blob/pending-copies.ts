/**
 * Copy Blob from another account or another server, and Abort Copy Blob. The request makes an empty blob and a running copy; the bytes
 * follow in the background (copy-runner.ts).
 */
import { randomUUID } from 'node:crypto';
import { type ContentId, formatId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { abortCopy as abortState, judgeAbort, startCopy as startState } from '../../rules/copy-state.ts';
import { INFINITE_SECONDS, normaliseLeaseId } from '../../rules/lease.ts';
import { copySourceError, readerOf, sourceScope } from '../common/copy-sources.ts';
import { openRemote } from '../common/remote-source.ts';
import { decodeRunningCopy, encodeRunningCopy, type RunningCopy } from '../common/running-copies.ts';
import type { Storage } from '../common/storage.ts';
import { readBlob } from './blob-record.ts';
import { appendStateOf, type CheckedCopy, checkInfiniteLease, checkSource, checkSourceConditions } from './copies.ts';
import { tiersOfCopy } from './copy-tiers.ts';
import { fail } from './errors.ts';
import { readBlobState } from './remote-blobs.ts';
import { type BlobInput, checkLease, checkWriteInput } from './request-checks.ts';
import {
  type BlobRecord,
  blobTypeOf,
  type ContentHeaders,
  changesInPlace,
  type Metadata,
  runningCopyKey,
  txQueueKey,
} from './rows.ts';
import { type CopyPlace, endWithoutBytes, keyOfCopy, putEmptyContent } from './running-copies.ts';
import { checkPut, putBlobRecord, readTarget, releaseReplaced } from './write-target.ts';

/** The source as the copy will expect it at every slice. */
export interface FoundSource extends Pick<BlobRecord, 'append' | 'page' | 'tier'> {
  readonly source: RunningCopy['source'];
  readonly bytes: number;
  readonly content: ContentHeaders;
  readonly metadata: Metadata;
}

export async function startPendingCopy(storage: Storage, copy: CheckedCopy) {
  const { input, leaseId } = copy;
  const { blob } = input;
  const { account, content, partition } = storage;
  await partition.read(async (at) => {
    const target = await readTarget(at, storage, input);
    checkPut(at, storage, target, input, leaseId, target.blob && blobTypeOf(target.blob));
    checkInfiniteLease(at, target);
  });
  const found = await findSource(storage, copy);
  const { contentMd5: md5, ...headers } = found.content;
  const contentId = content.newId();
  const copyId = randomUUID();
  return runPendingCopy(storage, input, copyId, async (tx) => {
    const target = await readTarget(tx, storage, input);
    checkPut(tx, storage, target, input, leaseId, blobTypeOf(found));
    checkInfiniteLease(tx, target);
    const inPlace = changesInPlace(found) ? { append: appendStateOf(found, input.seals) } : undefined;
    const tiers = tiersOfCopy(storage, copy.requested, found, target.blob, tx.now);
    const needsSweep = await releaseReplaced(tx, storage, target, { keepsInlineRow: !inPlace });
    const place = { account, container: target.containerId, blob };
    await putBlobRecord(tx, storage, target, {
      ...(inPlace ? putEmptyRanges(tx, storage, contentId, found) : putEmptyContent(tx, place)),
      content: headers,
      metadata: copy.metadata ?? found.metadata,
      copy: startState({ id: copyId, source: input.source.url, bytes: found.bytes }),
      tags: copy.tags,
      ...tiers,
    });
    return { needsSweep, running: { source: found.source, md5, content: contentId, inPlace }, place };
  });
}

interface BegunCopy {
  readonly needsSweep: boolean;
  readonly place: CopyPlace;
  readonly running: Omit<RunningCopy, 'id' | 'owner' | 'started'>;
}

/** @param begin puts the record of the blob */
export async function runPendingCopy(
  storage: Storage,
  { container, blob }: Pick<BlobInput, 'container' | 'blob'>,
  copyId: string,
  begin: (tx: Transaction) => Promise<BegunCopy>,
) {
  const { account, content, partition, sweeper, copies } = storage;
  if (!copies) throw new Error('copies are not run here');
  const { epoch: owner } = content.newId();
  const { timestamp, value } = await partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const { needsSweep, place, running } = await begin(tx);
    const key = keyOfCopy(place);
    tx.put(key, encodeRunningCopy({ id: copyId, ...running, owner, started: tx.now }));
    return { needsSweep, key };
  });
  if (value.needsSweep) sweeper.wake();
  copies.start(value.key);
  return { etag: formatEtag(timestamp), modified: timestamp, copyId, copyStatus: 'pending' as const };
}

/** The content of an append or page blob before its copy is complete: the copy writes into it, and the blob has no length yet. */
function putEmptyRanges(
  tx: Transaction,
  { account, content }: Storage,
  contentId: ContentId,
  { append }: Pick<FoundSource, 'append'>,
) {
  content.ranges.create(tx, account, contentId);
  return { length: 0, contentId: formatId(contentId), append: append && { blocks: 0 } };
}

async function findSource(storage: Storage, copy: CheckedCopy): Promise<FoundSource> {
  const { source, sourceConditions } = copy.input;
  if ('remote' in source) {
    const { head, metadata, validators, close } = await openRemote(storage, source);
    close();
    checkSourceConditions(validators, sourceConditions);
    const { etag, modified, length: bytes, content } = head;
    return { source: { url: source.remote.url, etag, modified }, bytes, content, metadata, ...readBlobState(head) };
  }
  const scope = sourceScope(storage);
  const { service, container, item, snapshot, keepsTrailingDots } = source;
  const place = { account: scope.account, service, container, item, snapshot, keepsTrailingDots };
  const expected = (etag: string) => ({ ...place, grantedContainer: scope.granted?.container, etag });
  const fromHere = (error: unknown) => {
    throw copySourceError(error);
  };
  return storage.partition.read(async (at) => {
    if (service === 'blob') {
      const { blob } = await readBlob(at, scope, container, item, snapshot).catch(fromHere);
      checkSource(at, blob, copy);
      const { length: bytes, content, metadata, tier, append, page } = blob;
      return { source: expected(blob.etag), bytes, content, metadata, tier, append, page };
    }
    const file = await readerOf(storage, service).find(at, storage.content, scope, source).catch(fromHere);
    checkSourceConditions(file, sourceConditions);
    return { source: expected(file.etag), bytes: file.length, content: file.content, metadata: file.metadata };
  });
}

/** Leaves an empty blob with the metadata of the copy. */
export async function abortCopy(
  storage: Storage,
  input: Omit<BlobInput, 'conditions'> & { copyId: string },
): Promise<void> {
  const { container, blob } = input;
  const { account, content, partition, sweeper, copies } = storage;
  const leaseId = checkWriteInput({ ...input, conditions: {} });
  const copyId = normaliseLeaseId(input.copyId);
  if (copyId === undefined) {
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'copyid', QueryParameterValue: input.copyId });
  }
  const { value: needsSweep } = await partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const { blob: found, containerId } = await readTarget(tx, storage, input);
    if (!found) throw fail('BlobNotFound');
    const { lease } = found;
    const isInfinite = lease?.state === 'leased' && lease.seconds === INFINITE_SECONDS;
    checkLease(tx, lease, leaseId, isInfinite ? 'write' : 'read', 'blob');
    const verdict = judgeAbort(found.copy, copyId);
    if (verdict !== 'proceed') throw fail(verdict);
    const row = await tx.get(runningCopyKey(account, containerId, blob));
    if (!row || !found.copy) throw new Error('a pending copy that does not run');
    const place = { account, container: containerId, blob };
    return endWithoutBytes(tx, content, place, decodeRunningCopy(row), found, abortState(found.copy, tx.timestamp));
  });
  if (needsSweep) sweeper.wake();
  copies?.wake();
}
