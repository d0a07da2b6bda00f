import type { Conditions } from '../../rules/conditions.ts';
import { etagOf } from '../../rules/etag.ts';
import { leaseState } from '../../rules/lease.ts';
import { checkAccount } from '../common/account-rows.ts';
import { encodeName } from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import {
  checkContainerName,
  checkWritable,
  checkWriteConditions,
  leaseIdOf,
  mayWrite,
  metadataOf,
  type SentMetadata,
  useLease,
} from './request-checks.ts';
import {
  anchorOf,
  type ContainerProperties,
  containerAt,
  encodeProperties,
  nameKey,
  type PublicAccess,
  propertiesKey,
  trashContainer,
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
  const metadata = metadataOf(input.metadata);
  const { account } = storage;
  const { stamp } = await storage.partition.transact(anchorOf(account, container), async (tx) => {
    if (await tx.get(nameKey(account, container))) throw fail('ContainerAlreadyExists');
    await checkAccount(tx, account);
    const properties = propertiesKey(account, tx.stamp);
    // Two processes may give out one stamp for different names: this check lets only one of them use it as an id.
    await tx.get(properties);
    tx.put(nameKey(account, container), encodeName(tx.stamp));
    tx.put(properties, encodeProperties({ metadata, access: input.access, policies: [] }));
  });
  return { etag: etagOf(stamp), modified: stamp };
}

export async function getContainerProperties(
  storage: Storage,
  input: ContainerInput & { leaseId: string | undefined },
) {
  checkContainerName(input.container);
  const leaseId = leaseIdOf(input.leaseId);
  return storage.partition.read(async (at) => {
    const found = await containerAt(at, storage, input.container);
    useLease(at, found.lease, leaseId, 'read', 'container');
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
  checkWriteConditions(conditions);
  const leaseId = leaseIdOf(input.leaseId);
  const { account } = storage;
  await storage.partition.transact(anchorOf(account, container), async (tx) => {
    const found = await containerAt(tx, storage, container);
    useLease(tx, found.lease, leaseId, 'write', 'container');
    mayWrite(found, conditions);
    tx.remove(nameKey(account, container));
    tx.remove(propertiesKey(account, found.id));
    trashContainer(tx, account, found.id);
  });
  storage.sweeper.wake();
}

export function setContainerMetadata(
  storage: Storage,
  input: ContainerInput & { leaseId: string | undefined; conditions: Conditions; metadata: SentMetadata },
) {
  const metadata = metadataOf(input.metadata);
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
  checkWriteConditions(input.conditions);
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
  const leaseId = leaseIdOf(input.leaseId);
  const { account } = storage;
  const { stamp } = await storage.partition.transact(anchorOf(account, container), async (tx) => {
    const { id, ...found } = await containerAt(tx, storage, container);
    useLease(tx, found.lease, leaseId, 'read', 'container');
    mayWrite(found, conditions);
    const { metadata, access, policies, lease } = { ...found, ...changed };
    tx.put(propertiesKey(account, id), encodeProperties({ metadata, access, policies, lease }));
  });
  return { etag: etagOf(stamp), modified: stamp };
}
