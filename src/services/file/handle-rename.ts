/** Rename through a handle: the node is found by its id, so that it does not matter which path led to it. */
import type { Transaction } from '../../partition/partition.ts';
import { RIGHTS } from '../../rules/file/access-mask.ts';
import { compatible, type Open, READ, WRITE } from '../../rules/file/share-mode.ts';
import { StorageError } from '../common/errors.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { readTarget, requireHandle } from './handles.ts';
import { checkPath, type PathInput, parentId, pathQueueKey, resolve, type Target } from './namespace.ts';
import type { Node } from './node-rows.ts';
import type { Handle } from './open-rows.ts';
import { checkNothingOpenBelow, readOpens } from './opens.ts';
import { moveTo } from './rename.ts';
import { ROOT, type Share } from './rows.ts';
import { withLongNames } from './short-names.ts';

export interface RenameHandleInput extends Omit<PathInput, 'share'> {
  /** A file of the new name is replaced, unless it is open or read-only. */
  readonly replaces: boolean;
  readonly ignoresReadOnly: boolean;
}

export async function renameThroughHandle(storage: Storage, handle: Handle, input: RenameHandleInput): Promise<void> {
  const to = { share: handle.share, ...input };
  const path = checkPath(to);
  const { value: needsSweep } = await storage.partition.transact(pathQueueKey(storage, to, path), async (tx) => {
    const { share, node, open } = await requireHandle(tx, storage, handle);
    if (!(open.rights & RIGHTS.delete)) throw fail('AccessDenied');
    if (node.id === ROOT || path.length === 0) throw fail('InvalidInput');
    const target = await resolve(tx, storage, handle.share, await withLongNames(tx, storage, handle.share, path));
    if (target.ancestors.includes(node.id)) throw fail('InvalidInput');
    await checkDirectoryOpens(tx, target);
    if (node.kind === 'directory') await checkClosedBelow(tx, share, node);
    await checkReplaceable(tx, node, target, input.replaces);
    const moved = await moveTo(tx, storage, await readTarget(tx, share, node), target, {
      ...input,
      smb: {},
      own: open,
    });
    return moved.needsSweep;
  });
  if (needsSweep) storage.sweeper.wake();
}

/** A client of SMB is told that it has no access; that another one has the file open is the answer of REST. */
async function checkClosedBelow(tx: Transaction, share: Share, directory: Node): Promise<void> {
  try {
    await checkNothingOpenBelow(tx, share, directory.id);
  } catch (error) {
    throw error instanceof StorageError && error.code === 'SharingViolation' ? fail('AccessDenied') : error;
  }
}

/** The directory of the new name is opened to add an entry, and meanwhile shared for reading and writing alone. */
const ADDS_ENTRY: Open = { access: WRITE, share: READ | WRITE };

async function checkDirectoryOpens(tx: Transaction, target: Target): Promise<void> {
  const opens = await readOpens(tx, target.share, parentId(target));
  if (opens?.groups.some((group) => !compatible(ADDS_ENTRY, group))) throw fail('SharingViolation');
}

/** MS-FSA 2.1.5.14.11: what is open, and a directory, is never replaced. */
async function checkReplaceable(tx: Transaction, source: Node, { share, node }: Target, replaces: boolean) {
  if (!node || node.id === source.id || !replaces) return;
  if (node.kind === 'directory' || (await readOpens(tx, share, node.id))) throw fail('AccessDenied');
}
