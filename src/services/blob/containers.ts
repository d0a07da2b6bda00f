import type { Conditions } from '../../rules/conditions.ts';
import { formatEtag } from '../../rules/etag.ts';
import { leaseState } from '../../rules/lease.ts';
import { checkNotRemoved } from '../common/account-rows.ts';
import { encodeName } from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
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
  type ContainerProperties,
  encodeProperties,
  nameKey,
  type PublicAccess,
  propertiesKey,
  readContainer,
  scheduleContainerDeletion,
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
    // Two processes may give out one stamp for different names: this check lets only one of them use it as an id.
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
    tx.remove(propertiesKey(account, found.id));
    scheduleContainerDeletion(tx, account, found.id);
  });
  storage.sweeper.wake();
}

export function setContainerMetadata(
  storage: Storage,
  input: ContainerInput & { leaseId: string | undefined; conditions: Conditions; metadata: SentMetadata },
) {
  const metadata = parseMetadata(input.metadata);
  // Of the conditions only this one is honoured here, as the service does.
  const { ifModifiedSince } = input.conditions;
  return change(storage, { ...input, conditions: { ifModifiedSince } }, { metadata });
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
  return change(storage, input, { access, policies });
}

async function change(
  storage: Storage,
  input: ContainerInput & { leaseId: string | undefined; conditions: Conditions },
  changed: Partial<Pick<ContainerProperties, 'metadata' | 'access' | 'policies'>>,
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
    const { metadata, access, policies, lease } = { ...found, ...changed };
    tx.put(propertiesKey(account, id), encodeProperties({ metadata, access, policies, lease }));
  });
  return { etag: formatEtag(timestamp), modified: timestamp };
}
