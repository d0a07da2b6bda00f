/** Access settings of a share, for authorization. */
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import { nameKey, type ShareId } from './rows.ts';
import { readShareProperties } from './share-reads.ts';

/** What authorizes requests without the account's key. Anonymous requests are never authorized. */
export interface ShareAccess {
  readonly id: ShareId;
  readonly level: undefined;
  readonly policies: readonly AccessPolicy[];
}

/** Undefined: there is no such share. */
export function shareAccess({ partition, account }: Storage, share: string): Promise<ShareAccess | undefined> {
  return partition.read(async (at) => {
    if (!(await at.get(nameKey(account, share)))) return undefined;
    const { id, policies } = await readShareProperties(at, { account }, share);
    return { id, level: undefined, policies };
  });
}
