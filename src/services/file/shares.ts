/** Create, get and delete a share. */
import { deletionKey } from '../../content/rows.ts';
import type { Row, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { formatEtag, type Validators } from '../../rules/conditions.ts';
import { DEFAULT_QUOTA, DEFAULT_TIER, isQuota, parseShareTier, type ShareTier } from '../../rules/file/shares.ts';
import { leaseState } from '../../rules/lease.ts';
import { shareNameFault } from '../../rules/names.ts';
import { checkNotRemoved } from '../common/account-rows.ts';
import { encodeDeletion } from '../common/deletions.ts';
import type { WithVersion } from '../common/etagged-rows.ts';
import { parseMetadata, type SentMetadata } from '../common/names.ts';
import type { AccountScope, Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { addRoot } from './namespace.ts';
import {
  decodeShareProperties,
  encodeShare,
  encodeShareProperties,
  FIRST_GENERATION,
  nameKey,
  propertiesKey,
  readShare,
  type Share,
  type ShareKeys,
  type ShareProperties,
  txQueueKey,
} from './rows.ts';

export interface ShareInput {
  readonly share: string;
}

/** As they were sent; undefined: the default. */
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

export async function getShareProperties(storage: Storage, input: ShareInput) {
  checkShareName(input.share);
  return storage.partition.read(async (at) => {
    const found = await readShareProperties(at, storage, input.share);
    return { share: found, leaseState: leaseState(found.lease, at.now) };
  });
}

export async function deleteShare(storage: Storage, input: ShareInput): Promise<void> {
  const { share } = input;
  checkShareName(share);
  const { account } = storage;
  await storage.partition.transact(txQueueKey(account, share), async (tx) => {
    const found = await readShare(tx, storage, share);
    tx.remove(nameKey(account, share));
    tx.remove(propertiesKey(account, found.id));
    scheduleShareDeletion(tx, found);
  });
  storage.sweeper.wake();
}

/** The caller removes the name and the properties: without the name, nothing in the share can be reached. */
export function scheduleShareDeletion(tx: Transaction, share: ShareKeys): void {
  const id = share.id.toString();
  tx.put(deletionKey(share.account, tx.timestamp, id), encodeDeletion({ kind: 'share', share: id }));
}

/** A share with its properties, and with the time of its tier: that of the creation, if none was set later. */
export type FoundShare = Share & WithVersion<ShareProperties> & { readonly tierChanged: Timestamp };

export async function readShareProperties(at: Snapshot, scope: AccountScope, name: string): Promise<FoundShare> {
  const share = await readShare(at, scope, name);
  return foundShare(share, (await at.get(propertiesKey(share.account, share.id)))!);
}

export function foundShare(share: Share, row: Row): FoundShare {
  const properties = decodeShareProperties(row);
  return { ...share, ...properties, tierChanged: properties.tierChanged ?? share.id };
}

export function checkShareName(name: string): void {
  const fault = shareNameFault(name);
  if (fault) throw fail(fault);
}

function parseSettings({ quota, tier }: SentShareSettings): { quota?: number; tier?: ShareTier } {
  if (quota !== undefined && !isQuota(quota))
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-share-quota', HeaderValue: String(quota) });
  const parsed = tier === undefined ? undefined : parseShareTier(tier);
  if (tier !== undefined && parsed === undefined)
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-access-tier', HeaderValue: tier });
  return { ...(quota !== undefined && { quota }), ...(parsed && { tier: parsed }) };
}
