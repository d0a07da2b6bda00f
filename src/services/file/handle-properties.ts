/** What a handle shows and sets of its file or directory: times, attributes, path, permission. */
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { RIGHTS } from '../../rules/file/access-mask.ts';
import { SPARSE } from '../../rules/file/attributes.ts';
import { isFragment, mergeParts, rightsToRead, rightsToSet, selectParts } from '../../rules/file/descriptor-parts.ts';
import { decodeDescriptor, encodeDescriptor } from '../../rules/file/security-descriptor.ts';
import { SYSTEM } from '../../rules/file/sid.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { type HeldNode, handleQueueKey, requireHandle } from './handles.ts';
import { readEntryTimes, readNode, updateNode } from './namespace.ts';
import type { Node } from './node-rows.ts';
import { type Handle, isDeletePending } from './open-rows.ts';
import { readOpens } from './opens.ts';
import { type AskedPermission, readPermission } from './permissions.ts';
import { ROOT, type Share } from './rows.ts';
import { type AskedSmb, resolveSmb } from './smb-properties.ts';
import { type OpenedNode, requireOpened } from './snapshot-handles.ts';
import { NO_WRITES, shownLastWrite, type WriteTimes } from './write-times.ts';

const SPARSE_RIGHTS = RIGHTS.writeData | RIGHTS.appendData | RIGHTS.writeAttributes;

export interface HandleView extends OpenedNode {
  readonly isDeletePending: boolean;
}

/**
 * @param rights of which the handle has one, at least; undefined: any handle will do
 * @param written through this handle: when their times show
 */
export async function viewHandle(
  storage: Storage,
  handle: Handle,
  rights?: number,
  written: WriteTimes = NO_WRITES,
): Promise<HandleView> {
  return storage.partition.read(async (at) => {
    const held = await requireOpened(at, storage, handle);
    if (rights !== undefined && !(held.open.rights & rights)) throw fail('AccessDenied');
    const { share, seenAt } = held;
    const opens = seenAt === undefined ? await readOpens(at, share, handle.node) : undefined;
    const { times, ...others } = await withEntryTimes(at, share, held.node, seenAt);
    const node = {
      ...others,
      times: { ...times, lastWrite: shownLastWrite(written, times.lastWrite, at.now) },
    } as Node;
    return { ...held, node, isDeletePending: isDeletePending(opens) };
  });
}

/** A directory with the times of its last change of entries, a file as it is. */
async function withEntryTimes(
  at: Snapshot | Transaction,
  share: Share,
  node: Node,
  seenAt?: number | undefined,
): Promise<Node> {
  return node.kind === 'directory' ? readEntryTimes(at, share, node, seenAt) : node;
}

/** The names from the root to the node, as they are now; empty: it is the root. */
export async function readHandlePath(storage: Storage, handle: Handle): Promise<readonly string[]> {
  return storage.partition.read(async (at) => {
    const { share, node, seenAt } = await requireOpened(at, storage, handle);
    const names: string[] = [];
    for (let each = node; each.id !== ROOT; each = await readNode(at, share, each.parent, seenAt))
      names.unshift(each.name);
    return names;
  });
}

/** @param asked what is left out stays, except for the change time, which is the present */
export async function setHandleProperties(
  storage: Storage,
  handle: Handle,
  asked: Pick<AskedSmb, 'attributes' | 'times'>,
): Promise<void> {
  const { attributes } = asked;
  await changeHeldNode(storage, handle, RIGHTS.writeAttributes, async (_, { node }) => ({
    ...asked,
    ...(typeof attributes === 'number' && { attributes: attributes | (node.attributes & SPARSE) }),
  }));
}

/** Whether a file is shown as sparse; it is stored so in any case. */
export async function setSparse(storage: Storage, handle: Handle, isSparse: boolean): Promise<void> {
  await storage.partition.transact(handleQueueKey(storage.account, handle), async (tx) => {
    const { share, node, open } = await requireHandle(tx, storage, handle);
    if (!(open.rights & SPARSE_RIGHTS)) throw fail('AccessDenied');
    const attributes = isSparse ? node.attributes | SPARSE : node.attributes & ~SPARSE;
    await updateNode(tx, share, node, { attributes });
  });
}

/**
 * A self-relative descriptor of these parts of the permission.
 * @param parts OWNER_SECURITY_INFORMATION and so on, MS-DTYP 2.4.7, as a sum
 */
export async function getHandlePermission(storage: Storage, handle: Handle, parts: number): Promise<Buffer> {
  return storage.partition.read(async (at) => {
    const { share, node, open } = await requireOpened(at, storage, handle);
    const needed = rightsToRead(parts);
    if ((open.rights & needed) !== needed) throw fail('AccessDenied');
    const descriptor = decodeDescriptor(await readPermission(at, share, node.permission))!;
    return encodeDescriptor(selectParts(descriptor, parts))!;
  });
}

export async function setHandlePermission(
  storage: Storage,
  handle: Handle,
  parts: number,
  bytes: Buffer,
): Promise<void> {
  const sent = decodeDescriptor(bytes);
  if (!sent || !isFragment(sent, parts)) throw fail('FileInvalidPermission');
  await changeHeldNode(storage, handle, rightsToSet(parts), async (tx, { share, node }) => {
    const current = decodeDescriptor(await readPermission(tx, share, node.permission))!;
    return { permission: { descriptor: mergeParts(current, sent, parts) } };
  });
}

/** Of what is created: the descriptor that an SMB client sent for it. Without a list it inherits that. */
export function parseDescriptor(bytes: Buffer): AskedPermission {
  const sent = decodeDescriptor(bytes);
  if (!sent) throw fail('FileInvalidPermission');
  if (sent.dacl === undefined) return 'inherit';
  const descriptor = { ...sent, owner: sent.owner ?? SYSTEM, group: sent.group ?? SYSTEM };
  return { descriptor, isComplete: true };
}

async function changeHeldNode(
  storage: Storage,
  handle: Handle,
  rights: number,
  change: (tx: Transaction, held: HeldNode) => Promise<AskedSmb>,
): Promise<void> {
  await storage.partition.transact(handleQueueKey(storage.account, handle), async (tx) => {
    const held = await requireHandle(tx, storage, handle);
    const { share, node, open } = held;
    if ((open.rights & rights) !== rights) throw fail('AccessDenied');
    const current = await withEntryTimes(tx, share, node);
    const asked = await change(tx, held);
    // Nothing is inherited by a node that exists: the permission of its directory does not matter.
    const smb = await resolveSmb(tx, share, asked, { kind: node.kind, parent: node, current });
    await updateNode(tx, share, node, node.kind === 'directory' ? { ...smb, timesSet: tx.timestamp } : smb);
  });
}
