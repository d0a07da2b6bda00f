/** TREE_CONNECT and TREE_DISCONNECT: a share of the account, one of its snapshots, or IPC$ (MS-SMB2 3.3.5.7, 3.3.5.8). */

import type { Storage } from '../../services/common/storage.ts';
import { shareAccess } from '../../services/file/access.ts';
import { listPreviousVersions, SNAPSHOT_RIGHTS } from '../../services/file/snapshot-handles.ts';
import type { SessionContext, TreeContext } from '../command.ts';
import { parseSnapshotName } from '../names.ts';
import { SmbError } from '../statuses.ts';
import type { DiskTree, PipeTree, Tree } from '../trees.ts';
import type { EmptyBody } from '../wire/empty.ts';
import {
  SHARE_FLAG_ENCRYPT_DATA,
  SHARE_TYPE,
  type TreeConnectRequest,
  type TreeConnectResponse,
} from '../wire/tree-connect.ts';

/** The key of an account may do everything: all bits of a file's access mask. */
const FULL_ACCESS = 0x001f_01ff;
const SHARE_NAME_CHARACTERS_MAX = 80;

export async function treeConnect(
  { path }: TreeConnectRequest,
  { connection, session, storage, answer }: SessionContext,
): Promise<TreeConnectResponse> {
  const { name, snapshot } = parseTreePath(path);
  const isEncryptionRequired = connection.server.isEncryptionRequired;
  let tree: Tree;
  if (name.toUpperCase() === 'IPC$') {
    if (snapshot !== undefined) throw new SmbError('BAD_NETWORK_NAME');
    tree = session.addTree(
      (id): PipeTree => ({ id, kind: 'pipe', name, maximalAccess: FULL_ACCESS, isEncryptionRequired }),
    );
  } else {
    const found = await findShare(storage, name.toLowerCase(), snapshot);
    tree = session.addTree((id): DiskTree => ({ id, kind: 'disk', name, isEncryptionRequired, ...found }));
  }
  answer.treeId = tree.id;
  connection.server.treeConnected(connection, session, tree);
  return {
    shareType: SHARE_TYPE[tree.kind],
    shareFlags: isEncryptionRequired ? SHARE_FLAG_ENCRYPT_DATA : 0,
    capabilities: 0,
    maximalAccess: tree.maximalAccess,
  };
}

export async function treeDisconnect(_request: EmptyBody, { session, tree }: TreeContext<Tree>): Promise<EmptyBody> {
  await session.disconnectTree(tree);
  return {};
}

async function findShare(
  storage: Storage,
  share: string,
  snapshot: bigint | undefined,
): Promise<Pick<DiskTree, 'share' | 'shareId' | 'snapshot' | 'maximalAccess'>> {
  const found = await shareAccess(storage, share);
  if (!found) throw new SmbError('BAD_NETWORK_NAME');
  if (snapshot !== undefined && !(await listPreviousVersions(storage, share)).includes(snapshot)) {
    throw new SmbError('BAD_NETWORK_NAME');
  }
  const maximalAccess = snapshot === undefined ? FULL_ACCESS : SNAPSHOT_RIGHTS;
  return { share, shareId: found.id, snapshot, maximalAccess };
}

/** Of \\server\share or \\server\share\@GMT-…, a snapshot of it: the name of the server is the client's affair. */
function parseTreePath(path: string): { readonly name: string; readonly snapshot: bigint | undefined } {
  const [, , server, name, token, ...others] = path.split('\\');
  const snapshot = token === undefined ? undefined : parseSnapshotName(token);
  const isSnapshotUnknown = token !== undefined && snapshot === undefined;
  if (!path.startsWith('\\\\') || server === undefined || isSnapshotUnknown || others.length > 0) {
    throw new SmbError('BAD_NETWORK_NAME');
  }
  if (name === undefined || name === '' || name.length > SHARE_NAME_CHARACTERS_MAX) {
    throw new SmbError('BAD_NETWORK_NAME');
  }
  return { name, snapshot };
}
