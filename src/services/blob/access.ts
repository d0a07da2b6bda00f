import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import { type ContainerId, nameKey, type PublicAccess, readContainer } from './rows.ts';

/** What of a container decides who may use it without a key. */
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
