/** Create, get, change and delete a share. */
import { formatEtag, type Validators } from '../../rules/conditions.ts';
import { DEFAULT_QUOTA, DEFAULT_TIER, isQuota, parseShareTier, type ShareTier } from '../../rules/file/shares.ts';
import { leaseState } from '../../rules/lease.ts';
import { checkNotRemoved } from '../common/account-rows.ts';
import { readAccountSettings } from '../common/account-settings.ts';
import { parseLeaseId } from '../common/lease-actions.ts';
import { type Metadata, parseMetadata, type SentMetadata } from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import { keepDeletedShare } from './deleted-shares.ts';
import { fail } from './errors.ts';
import { addRoot } from './namespace.ts';
import { encodeShare, encodeShareProperties, FIRST_GENERATION, nameKey, propertiesKey, txQueueKey } from './rows.ts';
import { scheduleShareDeletion } from './share-deletion.ts';
import {
  checkShareLease,
  checkShareName,
  type LeasedShareInput,
  type ReadShareInput,
  readShareAt,
  readShareProperties,
  type ShareInput,
} from './share-reads.ts';
import { checkSnapshotsDeletable, type DeleteShareSnapshots } from './share-snapshots.ts';
import { readUsage } from './usage.ts';

/** As they were sent; undefined: the default of a new share, or no change. */
export interface SentShareSettings {
  readonly quota: number | undefined;
  readonly tier: string | undefined;
}

export async function createShare(
  storage: Storage,
  input: ShareInput & SentShareSettings & { readonly metadata: SentMetadata },
): Promise<Validators> {
  const { share } = input;
  checkShareName(share);
  const metadata = parseMetadata(input.metadata);
  const { quota = DEFAULT_QUOTA, tier = DEFAULT_TIER } = parseSettings(input);
  const { account } = storage;
  const { timestamp } = await storage.partition.transact(txQueueKey(account, share), async (tx) => {
    if (await tx.get(nameKey(account, share))) throw fail('ShareAlreadyExists');
    await checkNotRemoved(tx, account);
    const properties = propertiesKey(account, tx.timestamp);
    // Two processes may draw one timestamp for different names: this read check lets only one of them use it as an id.
    await tx.get(properties);
    const created = { account, id: tx.timestamp, ...FIRST_GENERATION, quota };
    tx.put(nameKey(account, share), encodeShare(created));
    addRoot(tx, created);
    tx.put(properties, encodeShareProperties({ metadata, policies: [], tier }));
  });
  return { etag: formatEtag(timestamp), modified: timestamp };
}

export async function getShareProperties(storage: Storage, input: ReadShareInput) {
  checkShareName(input.share);
  const leaseId = parseLeaseId(input.leaseId);
  return storage.partition.read(async (at) => {
    const found = await readShareAt(at, storage, input.share, input.snapshot);
    checkShareLease(at, found.lease, leaseId, 'read');
    return { share: found, leaseState: leaseState(found.lease, at.now) };
  });
}

export async function getShareStats(storage: Storage, input: LeasedShareInput) {
  checkShareName(input.share);
  const leaseId = parseLeaseId(input.leaseId);
  return storage.partition.read(async (at) => {
    const found = await readShareProperties(at, storage, input.share);
    checkShareLease(at, found.lease, leaseId, 'read');
    return { share: found, usedBytes: await readUsage(at, found) };
  });
}

export function setShareProperties(storage: Storage, input: LeasedShareInput & SentShareSettings) {
  return changeShare(storage, input, parseSettings(input));
}

export function setShareMetadata(storage: Storage, input: LeasedShareInput & { readonly metadata: SentMetadata }) {
  return changeShare(storage, input, { metadata: parseMetadata(input.metadata) });
}

export function setShareAcl(
  storage: Storage,
  input: LeasedShareInput & { readonly policies: readonly AccessPolicy[] },
) {
  return changeShare(storage, input, { policies: input.policies });
}

interface ShareChanges extends ShareSettings {
  readonly metadata?: Metadata;
  readonly policies?: readonly AccessPolicy[];
}

/** The last write wins, per property. */
async function changeShare(storage: Storage, input: LeasedShareInput, changes: ShareChanges): Promise<Validators> {
  const { share } = input;
  checkShareName(share);
  const leaseId = parseLeaseId(input.leaseId);
  const { account } = storage;
  const { timestamp } = await storage.partition.transact(txQueueKey(account, share), async (tx) => {
    const found = await readShareProperties(tx, storage, share);
    checkShareLease(tx, found.lease, leaseId, 'read');
    const { metadata, policies, tier, lease, quota } = { ...found, ...changes };
    const tierChanged = changes.tier === undefined ? found.tierChanged : tx.timestamp;
    const properties = { metadata, policies, tier, tierChanged, lease };
    tx.put(propertiesKey(account, found.id), encodeShareProperties(properties));
    if (quota !== found.quota) tx.put(nameKey(account, share), encodeShare({ ...found, quota }));
  });
  return { etag: formatEtag(timestamp), modified: timestamp };
}

export interface DeleteShareInput extends LeasedShareInput {
  readonly deleteSnapshots?: DeleteShareSnapshots;
}

/** With its snapshots, or not at all. A share that can be restored keeps them. */
export async function deleteShare(storage: Storage, input: DeleteShareInput): Promise<void> {
  const { share } = input;
  checkShareName(share);
  const leaseId = parseLeaseId(input.leaseId);
  const { account } = storage;
  await storage.partition.transact(txQueueKey(account, share), async (tx) => {
    const found = await readShareProperties(tx, storage, share);
    checkShareLease(tx, found.lease, leaseId, 'write');
    await checkSnapshotsDeletable(tx, found, input.deleteSnapshots);
    tx.remove(nameKey(account, share));
    const { shareRetentionDays } = await readAccountSettings(tx, account);
    if (shareRetentionDays > 0) return keepDeletedShare(tx, found, share, shareRetentionDays);
    tx.remove(propertiesKey(account, found.id));
    scheduleShareDeletion(tx, found);
  });
  storage.heldLeases?.endAll(account, { service: 'file', container: share });
  storage.sweeper.wake();
}

interface ShareSettings {
  readonly quota?: number;
  readonly tier?: ShareTier;
}

function parseSettings({ quota, tier }: SentShareSettings): ShareSettings {
  if (quota !== undefined && !isQuota(quota))
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-share-quota', HeaderValue: String(quota) });
  const parsed = tier === undefined ? undefined : parseShareTier(tier);
  if (tier !== undefined && parsed === undefined)
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-access-tier', HeaderValue: tier });
  return { ...(quota !== undefined && { quota }), ...(parsed && { tier: parsed }) };
}
