/** Previous versions: files as the snapshots of their share show them, by the create context TWrp, by @GMT names, and as a list. */
import { ticksFromFiletime, truncateToSecond } from '../../base/time.ts';
import { StorageError } from '../../services/common/errors.ts';
import type { Storage } from '../../services/common/storage.ts';
import type { Opened, OpenInput } from '../../services/file/open-node.ts';
import { listPreviousVersions, openInSnapshot } from '../../services/file/snapshot-handles.ts';
import type { OpenContext } from '../command.ts';
import { formatSnapshotName, parseFileName, parseSnapshotName } from '../names.ts';
import { SmbError } from '../statuses.ts';
import type { DiskTree } from '../trees.ts';
import { SnapshotArray } from '../wire/file-fsctl.ts';
import type { IoctlRequest } from '../wire/ioctl.ts';

export { SNAPSHOT_RIGHTS } from '../../services/file/snapshot-handles.ts';

/** The path in the share, and the second of the snapshot in which it is looked up, if any. */
export function parseVersionedName(
  name: string,
  tree: Pick<DiskTree, 'snapshot'>,
  timewarp: bigint | undefined,
): { readonly path: string; readonly second: bigint | undefined } {
  const [first = '', ...others] = name.split('\\');
  const named = parseSnapshotName(first);
  const path = parseFileName(named === undefined ? name : others.join('\\'));
  const second = timewarp ? truncateToSecond(ticksFromFiletime(timewarp)) : undefined;
  return { path, second: second ?? named ?? tree.snapshot };
}

export async function openPreviousVersion(
  storage: Storage,
  input: OpenInput & { readonly second: bigint },
): Promise<Opened> {
  const { disposition, kind, deletesOnClose } = input;
  const { handle, node } = await openInSnapshot(storage, input);
  if ((disposition !== 'open' && disposition !== 'openIf') || deletesOnClose) throw new SmbError('ACCESS_DENIED');
  if (kind !== 'any' && kind !== node.kind) throw new StorageError('ResourceTypeMismatch', 409, '');
  return { handle, node, action: 'opened' };
}

/** MS-SMB2 3.3.5.15.1: the list, or how much room it takes. */
export async function enumerateSnapshots(request: IoctlRequest, { open }: OpenContext): Promise<Buffer> {
  if (request.maxOutputResponse < SnapshotArray.size + 4) throw new SmbError('INVALID_PARAMETER');
  const seconds = await listPreviousVersions(open.storage, open.tree.share);
  const names = Buffer.from(`${seconds.map((second) => `${formatSnapshotName(second)}\0`).join('')}\0`, 'utf16le');
  const numberOfSnapshots = seconds.length;
  if (SnapshotArray.size + names.length <= request.maxOutputResponse)
    return SnapshotArray.encode({ numberOfSnapshots, numberReturned: numberOfSnapshots, names });
  const head = SnapshotArray.encode({ numberOfSnapshots, numberReturned: 0, names: Buffer.alloc(0) });
  head.writeUInt32LE(names.length, head.length - 4);
  return Buffer.concat([head, Buffer.alloc(4)]);
}
