/**
 * Copy Blob from another account or another server, and Abort Copy Blob. The request makes an empty blob and a running copy; the bytes
 * follow in the background (copy-runner.ts).
 */
import { randomUUID } from 'node:crypto';
import { formatEtag } from '../../rules/conditions.ts';
import { abortCopy as abortState, judgeAbort, startCopy as startState } from '../../rules/copy-state.ts';
import { INFINITE_SECONDS, normaliseLeaseId } from '../../rules/lease.ts';
import { REHYDRATION_SECONDS, type StoredTier, tierOfCopy } from '../../rules/tiers.ts';
import { copySourceError, readerOf, sourceScope } from '../common/copy-sources.ts';
import { openRemote } from '../common/remote-source.ts';
import { decodeRunningCopy, encodeRunningCopy, type RunningCopy } from '../common/running-copies.ts';
import type { Storage } from '../common/storage.ts';
import { type CheckedCopy, checkInfiniteLease, checkSource, checkSourceConditions } from './copies.ts';
import { fail } from './errors.ts';
import { type BlobInput, checkLease, checkWriteInput } from './request-checks.ts';
import { type ContentHeaders, type Metadata, runningCopyKey, txQueueKey } from './rows.ts';
import { endWithoutBytes, putEmptyContent } from './running-copies.ts';
import { checkPut, putBlobRecord, readTarget, releaseReplaced } from './write-target.ts';

const IN_PLACE_REFUSED = 'Append and page blobs are copied within an account only.';

/** The source as the copy will expect it at every slice. */
interface ExpectedSource {
  readonly source: RunningCopy['source'];
  readonly bytes: number;
  readonly content: ContentHeaders;
  readonly metadata: Metadata;
  readonly tier: StoredTier | undefined;
}

export async function startPendingCopy(storage: Storage, copy: CheckedCopy) {
  const { input, leaseId, requested } = copy;
  const { container, blob } = input;
  const { account, content, partition, sweeper, copies, rehydrationSeconds = REHYDRATION_SECONDS } = storage;
  if (!copies) throw new Error('copies are not run here');
  await partition.read(async (at) => {
    const target = await readTarget(at, storage, input);
    checkPut(at, storage, target, input, leaseId);
    checkInfiniteLease(at, target);
  });
  const found = await findSource(storage, copy);
  const { contentMd5: md5, ...headers } = found.content;
  const contentId = content.newId();
  const copyId = randomUUID();
  const { timestamp, value } = await partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const target = await readTarget(tx, storage, input);
    checkPut(tx, storage, target, input, leaseId);
    checkInfiniteLease(tx, target);
    const tier = tierOfCopy(found.tier, target.blob?.tier, requested, tx.now, rehydrationSeconds);
    if ('refused' in tier) throw fail(tier.refused);
    const needsSweep = await releaseReplaced(tx, storage, target, { keepsInlineRow: true });
    await putBlobRecord(tx, storage, target, {
      ...putEmptyContent(tx, { account, container: target.containerId, blob }),
      content: headers,
      metadata: copy.metadata ?? found.metadata,
      copy: startState({ id: copyId, source: input.source.url, bytes: found.bytes }),
      tier: tier.next,
      tags: copy.tags,
    });
    const key = runningCopyKey(account, target.containerId, blob);
    const running = { id: copyId, source: found.source, md5, content: contentId, owner: contentId.epoch };
    tx.put(key, encodeRunningCopy({ ...running, started: tx.now }));
    return { needsSweep, key };
  });
  if (value.needsSweep) sweeper.wake();
  copies.start(value.key);
  return { etag: formatEtag(timestamp), modified: timestamp, copyId, copyStatus: 'pending' as const };
}

async function findSource(storage: Storage, copy: CheckedCopy): Promise<ExpectedSource> {
  const { source, sourceConditions } = copy.input;
  if ('remote' in source) {
    const { head, metadata, validators, close } = await openRemote(storage, source);
    close();
    checkSourceConditions(validators, sourceConditions);
    if (head.blobType === 'AppendBlob' || head.blobType === 'PageBlob')
      throw fail('NotImplemented', undefined, IN_PLACE_REFUSED);
    const { etag, modified, length: bytes, content } = head;
    return { source: { url: source.remote.url, etag, modified }, bytes, content, metadata, tier: undefined };
  }
  const scope = sourceScope(storage);
  const { service, container, item, snapshot, keepsTrailingDots } = source;
  const found = await storage.partition.read(async (at) => {
    const one = await readerOf(storage, service)
      .find(at, storage.content, scope, source)
      .catch((error: unknown) => {
        throw copySourceError(error);
      });
    checkSource(at, one, copy);
    if (one.isInPlaceBlob) throw fail('NotImplemented', undefined, IN_PLACE_REFUSED);
    return one;
  });
  const { etag, length: bytes, content, metadata, tier } = found;
  const place = { account: scope.account, service, container, item, snapshot, keepsTrailingDots };
  const grantedContainer = scope.granted?.container;
  return { source: { ...place, grantedContainer, etag }, bytes, content, metadata, tier };
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
