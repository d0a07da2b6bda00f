/**
 * Handles: what is done through an open file or directory. Each transaction checks the row of the handle and that of its owner, so nothing is
 * done through a handle that was closed by another client, or whose process is gone.
 */
import { ownerExists } from '../../content/membership/owner-rows.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { isPending } from '../../rules/copy-state.ts';
import { isReadOnly } from '../../rules/file/attributes.ts';
import { foldName } from '../../rules/file/names.ts';
import { DELETE } from '../../rules/file/share-mode.ts';
import type { AccountId, AccountScope, Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { entryAt } from './history.ts';
import { type FoundTarget, removeNode } from './namespace.ts';
import { decodeNode, type Node } from './node-rows.ts';
import { countOpen, decodeHandle, type Handle, handleKey, type OpenHandle, type Opens } from './open-rows.ts';
import { putOpens, readOpens } from './opens.ts';
import { releaseFileContent } from './release-content.ts';
import {
  checkShareAccess,
  entriesIn,
  type NodeId,
  nameKey,
  nodeKey,
  ROOT,
  type Share,
  type ShareId,
  type ShareKeys,
  txQueueKey,
} from './rows.ts';
import { charge } from './usage.ts';

/** The queue of the transactions through the handles of one file. */
export const handleQueueKey = (account: AccountId, { share, node }: Pick<Handle, 'share' | 'node'>) =>
  txQueueKey(account, share, '', node.toString());

export interface HeldNode {
  readonly share: Share;
  readonly node: Node;
  readonly open: OpenHandle;
}

/**
 * The node of a handle, and how it is open. In a transaction these are checks of the commit.
 * @throws HandleClosed if the handle is closed, by whomever; ShareNotFound if the share is deleted
 */
export async function requireHandle(at: Snapshot, scope: AccountScope, handle: Handle): Promise<HeldNode> {
  const { account } = scope;
  const keys: ShareKeys = { account, id: handle.shareId };
  const [name, row, nodeRow] = await at.getMany([
    nameKey(account, handle.share),
    handleKey(keys, handle.node, handle.id),
    nodeKey(keys, handle.node),
  ]);
  if (!row || !nodeRow) throw fail('HandleClosed');
  const share = checkShareAccess(scope, name);
  if (share.id !== handle.shareId) throw fail('ShareNotFound');
  const open = decodeHandle(row);
  if (!(await ownerExists(at, open.owner))) throw fail('HandleClosed');
  return { share, node: decodeNode(handle.node, nodeRow), open };
}

/** The node and its entry, as a path would lead to them, but for the directories above. */
export async function readTarget(at: Snapshot, share: Share, node: Node): Promise<FoundTarget> {
  const name = { name: node.name, folded: foldName(node.name) };
  const entry = node.id === ROOT ? undefined : await entryAt(at, share, node.parent, name.folded, undefined);
  return { share, ancestors: [node.parent], name, entry, node };
}

/** Closing a handle that is closed already does nothing. */
export async function closeHandle(storage: Storage, handle: Handle): Promise<void> {
  await endHandle(storage, handle, (open) => open.deletesOnClose);
}

/** Closes the handle of another client. That it was to delete its file is forgotten. True: it was open. */
export function forceCloseHandle(storage: Storage, handle: Handle): Promise<boolean> {
  return endHandle(storage, handle, () => false);
}

/** Marks the node for deletion by the last close of it, or takes that back. */
export async function setDeletePending(storage: Storage, handle: Handle, isMarked: boolean): Promise<void> {
  await storage.partition.transact(handleQueueKey(storage.account, handle), async (tx) => {
    const { share, node, open } = await requireHandle(tx, storage, handle);
    if (!(open.access & DELETE)) throw fail('AccessDenied');
    if (isMarked) await checkDeletable(tx, share, node);
    const opens = await readOpens(tx, share, node.id);
    if (opens) putOpens(tx, share, node.id, { ...opens, markedBy: isMarked ? withMark(opens, open) : [] });
  });
}

/** The mark outlives the handle, but not its owner. */
const withMark = ({ markedBy }: Opens, { owner }: OpenHandle): readonly bigint[] => [...new Set([...markedBy, owner])];

/** What adds an entry to the directory checks its opens, which the caller writes. */
async function checkDeletable(tx: Transaction, share: Share, node: Node): Promise<void> {
  if (node.id === ROOT || isReadOnly(node.attributes)) throw fail('CannotDelete');
  if (node.kind === 'directory' && !(await isEmpty(tx, share, node.id))) throw fail('DirectoryNotEmpty');
}

async function isEmpty(tx: Transaction, share: ShareKeys, directory: NodeId): Promise<boolean> {
  return (await tx.scan(entriesIn(share, directory), { limit: 1 })).length === 0;
}

async function endHandle(
  storage: Storage,
  { share: shareName, shareId, node: id, id: handleId }: Handle,
  marksForDeletion: (open: OpenHandle) => boolean,
): Promise<boolean> {
  const { account, partition, sweeper } = storage;
  const keys: ShareKeys = { account, id: shareId };
  const key = handleKey(keys, id, handleId);
  const queueKey = handleQueueKey(account, { share: shareName, node: id });
  const { value } = await partition.transact(queueKey, async (tx) => {
    const row = await tx.get(key);
    if (!row) return { wasOpen: false, needsSweep: false };
    const open = decodeHandle(row);
    tx.remove(key);
    const opens = await readOpens(tx, keys, id);
    // Without opens the summary is absent, or names owners that are gone: so is the owner of this handle.
    if (!opens) return { wasOpen: false, needsSweep: false };
    const groups = countOpen(opens.groups, open, -1);
    const markedBy = marksForDeletion(open) ? withMark(opens, open) : opens.markedBy;
    putOpens(tx, keys, id, { ...opens, groups, markedBy });
    const isDeleted = markedBy.length > 0 && groups.length === 0;
    return { wasOpen: true, needsSweep: isDeleted && (await deleteClosed(tx, storage, shareName, shareId, id)) };
  });
  if (value.needsSweep) sweeper.wake();
  return value.wasOpen;
}

/** The last handle is closed. A directory that is not empty stays, and so does what is read-only. True: the sweeper has work to do. */
async function deleteClosed(tx: Transaction, storage: Storage, shareName: string, shareId: ShareId, id: NodeId) {
  const { account } = storage;
  const [name, row] = await tx.getMany([nameKey(account, shareName), nodeKey({ account, id: shareId }, id)]);
  if (!name || !row) return false;
  const share = checkShareAccess({ account }, name);
  if (share.id !== shareId) return false;
  const node = decodeNode(id, row);
  if (id === ROOT || isReadOnly(node.attributes)) return false;
  if (node.kind === 'directory') {
    if (await isEmpty(tx, share, id)) await removeNode(tx, await readTarget(tx, share, node));
    return false;
  }
  // The bytes of a pending copy count from its start on.
  const pendingBytes = node.copy && isPending(node.copy) ? node.copy.bytes : 0;
  await charge(tx, share, -node.length - pendingBytes);
  await removeNode(tx, await readTarget(tx, share, node));
  return releaseFileContent(tx, storage, node, share);
}
