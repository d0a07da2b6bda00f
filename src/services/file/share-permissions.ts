/** Create Permission and Get Permission. */
import { formatPermission, type PermissionFormat, parsePermission } from '../../rules/file/permission.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { type PermissionHash, readPermission, storeDescriptor } from './permissions.ts';
import { readShare, txQueueKey } from './rows.ts';
import { checkShareName, type ShareInput } from './share-reads.ts';

export interface SentPermission {
  readonly text: string;
  readonly format: PermissionFormat;
}

export async function createPermission(
  storage: Storage,
  input: ShareInput & { readonly permission: SentPermission },
): Promise<PermissionHash> {
  checkShareName(input.share);
  const { text, format } = input.permission;
  const descriptor = parsePermission(text, format);
  if (descriptor === undefined) throw fail('FileInvalidPermission');
  const { value } = await storage.partition.transact(txQueueKey(storage.account, input.share), async (tx) => {
    const share = await readShare(tx, storage, input.share);
    return storeDescriptor(tx, share, descriptor);
  });
  return value;
}

export async function getPermission(
  storage: Storage,
  input: ShareInput & { readonly key: PermissionHash; readonly format: PermissionFormat },
): Promise<string> {
  checkShareName(input.share);
  const bytes = await storage.partition.read(async (at) =>
    readPermission(at, await readShare(at, storage, input.share), input.key),
  );
  const text = formatPermission(bytes, input.format);
  if (text === undefined) throw fail('CannotConvertToSddlDueToCustomAce');
  return text;
}
