/** Create, get, change, rename and delete a container. */
import { encodeText } from '../../partition/values.ts';
import { type Conditions, formatEtag } from '../../rules/conditions.ts';
import { leaseState } from '../../rules/lease.ts';
import { containerNameFault } from '../../rules/names.ts';
import { checkNotRemoved } from '../common/account-rows.ts';
import { readAccountSettings } from '../common/account-settings.ts';
import { encodeName } from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import { keepDeletedContainer } from './deleted-containers.ts';
import { fail } from './errors.ts';
import {
  checkContainerName,
  checkLease,
  checkSingleCondition,
  checkWritable,
  checkWriteConditions,
  parseLeaseId,
  parseMetadata,
  type SentMetadata,
} from './request-checks.ts';
import {
  type ContainerId,
  type ContainerProperties,
  encodeProperties,
  nameKey,
  type PublicAccess,
  propertiesKey,
  readContainer,
  scheduleContainerDeletion,
  taggedNameKey,
  txQueueKey,
} from './rows.ts';

export interface ContainerInput {
  readonly container: string;
}

export async function createContainer(
  storage: Storage,
  input: ContainerInput & { metadata: SentMetadata; access: PublicAccess | undefined },
) {
  const { container } = input;
  checkContainerName(container);
  checkWritable(storage, container);
  const metadata = parseMetadata(input.metadata);
  const { account } = storage;
  const { timestamp } = await storage.partition.transact(txQueueKey(account, container), async (tx) => {
    if (await tx.get(nameKey(account, container))) throw fail('ContainerAlreadyExists');
    await checkNotRemoved(tx, account);
    const properties = propertiesKey(account, tx.timestamp);
    // Two processes may draw one timestamp for different names: this read check lets only one of them use it as an id.
    await tx.get(properties);
    tx.put(nameKey(account, container), encodeName(tx.timestamp));
    tx.put(properties, encodeProperties({ metadata, access: input.access, policies: [] }));
  });
  return { etag: formatEtag(timestamp), modified: timestamp };
}

export async function getContainerProperties(
  storage: Storage,
  input: ContainerInput & { leaseId: string | undefined },
) {
  checkContainerName(input.container);
  const leaseId = parseLeaseId(input.leaseId);
  return storage.partition.read(async (at) => {
    const found = await readContainer(at, storage, input.container);
    checkLease(at, found.lease, leaseId, 'read', 'container');
    return { container: found, leaseState: leaseState(found.lease, at.now) };
  });
}

export async function deleteContainer(
  storage: Storage,
  input: ContainerInput & { leaseId: string | undefined; conditions: Conditions },
) {
  const { container, conditions } = input;
  checkContainerName(container);
  checkWritable(storage, container);
  checkSingleCondition(conditions);
  const leaseId = parseLeaseId(input.leaseId);
  const { account } = storage;
  await storage.partition.transact(txQueueKey(account, container), async (tx) => {
    const found = await readContainer(tx, storage, container);
    checkLease(tx, found.lease, leaseId, 'write', 'container');
    checkWriteConditions(found, conditions);
    tx.remove(nameKey(account, container));
    const { containerRetentionDays } = await readAccountSettings(tx, account);
    if (containerRetentionDays > 0) {
      await keepDeletedContainer(tx, account, { id: found.id, name: container }, containerRetentionDays);
      return;
    }
    tx.remove(propertiesKey(account, found.id));
    scheduleContainerDeletion(tx, account, found.id);
  });
  storage.heldLeases?.endAll(account, { container });
  storage.sweeper.wake();
}

/**
 * Blobs are keyed by the container's id, so that none of them is touched: the name row moves. The properties are written again,
 * because the ETag changes and the lease ends.
 */
export async function renameContainer(
  storage: Storage,
  input: ContainerInput & { source: string; sourceLeaseId: string | undefined },
) {
  const { container, source } = input;
  checkContainerName(container);
  if (containerNameFault(source)) {
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-source-container-name', HeaderValue: source });
  }
  for (const name of [container, source]) checkWritable(storage, name);
  const leaseId = parseLeaseId(input.sourceLeaseId, 'x-ms-source-lease-id');
  const { account } = storage;
  await storage.partition.transact(txQueueKey(account, container), async (tx) => {
    if (await tx.get(nameKey(account, container))) throw fail('ContainerAlreadyExists');
    await checkNotRemoved(tx, account);
    const { id, lease, metadata, access, policies } = await readContainer(tx, storage, source);
    checkLease(tx, lease, leaseId, 'write', 'container');
    tx.remove(nameKey(account, source));
    tx.put(nameKey(account, container), encodeName(id));
    tx.put(propertiesKey(account, id), encodeProperties({ metadata, access, policies }));
    if (await tx.get(taggedNameKey(account, id))) tx.put(taggedNameKey(account, id), encodeText(container));
  });
}

export function setContainerMetadata(
  storage: Storage,
  input: ContainerInput & { leaseId: string | undefined; conditions: Conditions; metadata: SentMetadata },
) {
  const metadata = parseMetadata(input.metadata);
  // Azure honours only this condition here.
  const { ifModifiedSince } = input.conditions;
  return changeProperties(storage, { ...input, conditions: { ifModifiedSince } }, { metadata });
}

export function setContainerAcl(
  storage: Storage,
  input: ContainerInput & {
    leaseId: string | undefined;
    conditions: Conditions;
    access: PublicAccess | undefined;
    policies: readonly AccessPolicy[];
  },
) {
  const { access, policies } = input;
  checkSingleCondition(input.conditions);
  return changeProperties(storage, input, { access, policies });
}

async function changeProperties(
  storage: Storage,
  input: ContainerInput & { leaseId: string | undefined; conditions: Conditions },
  changes: Partial<Pick<ContainerProperties, 'metadata' | 'access' | 'policies'>>,
) {
  const { container, conditions } = input;
  checkContainerName(container);
  checkWritable(storage, container);
  const leaseId = parseLeaseId(input.leaseId);
  const { account } = storage;
  const { timestamp } = await storage.partition.transact(txQueueKey(account, container), async (tx) => {
    const { id, ...found } = await readContainer(tx, storage, container);
    checkLease(tx, found.lease, leaseId, 'read', 'container');
    checkWriteConditions(found, conditions);
    const { metadata, access, policies, lease } = { ...found, ...changes };
    tx.put(propertiesKey(account, id), encodeProperties({ metadata, access, policies, lease }));
  });
  return { etag: formatEtag(timestamp), modified: timestamp };
}

/** The properties of a container that authorize requests without an account key. */
export interface ContainerAccess {
  readonly id: ContainerId;
  readonly level: PublicAccess | undefined;
  readonly policies: readonly AccessPolicy[];
}

/** Undefined: there is no such container. */
export function containerAccess(
  { partition, account }: Storage,
  container: string,
): Promise<ContainerAccess | undefined> {
  return partition.read(async (at) => {
    if (!(await at.get(nameKey(account, container)))) return undefined;
    const { id, access, policies } = await readContainer(at, { account }, container);
    return { id, level: access, policies };
  });
}
