/**
 * Opens of what a share snapshot shows: SMB's previous versions. Nothing can change it, so such an open is no row, conflicts with no other open, and
 * ends with the snapshot.
 */
import type { Instant, Snapshot } from '../../partition/partition.ts';
import { StorageError } from '../common/errors.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { type HeldNode, requireHandle } from './handles.ts';
import { checkPath, type PathInput, readNode, resolveAt } from './namespace.ts';
import type { Node } from './node-rows.ts';
import type { Handle, OpenHandle } from './open-rows.ts';
import { readShare } from './rows.ts';
import { listShareSnapshots } from './share-snapshots.ts';
import { withLongNames } from './short-names.ts';
import { readSnapshot } from './snapshot-rows.ts';

/** Read and execute: what a client can do with a previous version. */
export const SNAPSHOT_RIGHTS = 0x12_00a9;

export interface SnapshotHandle extends Handle {
  /** The second that names the snapshot. */
  readonly second: Instant;
}

export const isSnapshotHandle = (handle: Handle): handle is SnapshotHandle => 'second' in handle;

/** A node that is open, now or in a snapshot. */
export interface OpenedNode extends Omit<HeldNode, 'open'> {
  readonly open: Pick<OpenHandle, 'rights'>;
  /** The generation of the snapshot; undefined: the current state. */
  readonly seenAt?: number | undefined;
}

/** As `requireHandle`, also of handles in snapshots. */
export async function requireOpened(at: Snapshot, storage: Storage, handle: Handle): Promise<OpenedNode> {
  if (!isSnapshotHandle(handle)) return requireHandle(at, storage, handle);
  const share = await readShare(at, storage, handle.share);
  if (share.id !== handle.shareId) throw fail('ShareNotFound');
  const { gen } = await readSnapshot(at, share, handle.second);
  const node = await readNode(at, share, handle.node, gen);
  return { share, node, open: { rights: SNAPSHOT_RIGHTS }, seenAt: gen };
}

/** @throws ResourceNotFound also if there is no snapshot of this second */
export function openInSnapshot(
  storage: Storage,
  input: PathInput & { readonly second: Instant },
): Promise<{ readonly handle: SnapshotHandle; readonly node: Node }> {
  const path = checkPath(input);
  const { share: name, second } = input;
  return storage.partition.read(async (at) => {
    const share = await readShare(at, storage, name);
    const { node } = await resolveSeen().catch((error: unknown) => {
      throw error instanceof StorageError && error.code === 'ShareNotFound' ? fail('ResourceNotFound') : error;
    });
    if (!node) throw fail('ResourceNotFound');
    return { handle: { share: name, shareId: share.id, node: node.id, id: 0n, second }, node };

    async function resolveSeen() {
      const { gen } = await readSnapshot(at, share, second);
      return resolveAt(at, storage, name, await withLongNames(at, storage, name, path, gen), second);
    }
  });
}

/** The seconds that name the snapshots of a share, the newest first. */
export function listPreviousVersions(storage: Storage, shareName: string): Promise<readonly Instant[]> {
  return storage.partition.read(async (at) => {
    const snapshots = await listShareSnapshots(at, await readShare(at, storage, shareName));
    return snapshots.map(({ second }) => second).reverse();
  });
}
