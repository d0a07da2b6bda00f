/** Containers, queues and tables that the destination of an import has already. */
import { containerAccess } from '../../services/blob/containers.ts';
import type { Storage } from '../../services/common/storage.ts';
import { queueAccess } from '../../services/queue/access.ts';
import { tableAccess } from '../../services/table/access.ts';

export interface NamedParent {
  readonly what: keyof typeof lookUps;
  readonly account: string;
  readonly name: string;
}

const lookUps = { container: containerAccess, queue: queueAccess, table: tableAccess };

export async function findClashes(
  parents: readonly NamedParent[],
  storageOf: (account: string) => Storage,
): Promise<readonly string[]> {
  const clashes: string[] = [];
  for (const { what, account, name } of parents) {
    if (await lookUps[what](storageOf(account), name)) clashes.push(`${what} ${account}/${name}`);
  }
  return clashes;
}
