/** CREATE on a share (MS-SMB2 3.3.5.9): translates the request for the service, which decides everything in one transaction. */
import { StorageError } from '../../services/common/errors.ts';
import { type Opened, openNode } from '../../services/file/open-node.ts';
import type { TreeContext } from '../command.ts';
import { FileOpen } from '../file-open.ts';
import { viewNode } from '../file-views.ts';
import { SmbError } from '../statuses.ts';
import { type CreateRequest, type CreateResponse, OPLOCK_LEVEL_NONE } from '../wire/create.ts';
import { readCreateContexts, writeCreateContexts } from '../wire/create-contexts.ts';
import { answerContexts, parseContexts } from './create-contexts.ts';
import { type CheckedCreate, checkCreateRequest, modeFrom } from './create-request.ts';
import { openPreviousVersion, parseVersionedName, SNAPSHOT_RIGHTS } from './previous-versions.ts';

/** MS-SMB2 2.2.14 */
const CREATE_ACTIONS: Readonly<Record<Opened['action'], number>> = {
  superseded: 0,
  opened: 1,
  created: 2,
  overwritten: 3,
};

export async function create(request: CreateRequest, context: TreeContext): Promise<CreateResponse> {
  const { connection, session, storage, tree } = context;
  const asked = parseContexts(readCreateContexts(request.createContexts));
  const { path, second } = parseVersionedName(request.name, tree, asked.timewarp);
  const checked = checkCreateRequest(request, tree.maximalAccess);
  const input = {
    ...{ share: tree.share, path, keepsTrailingDots: true, allowsPrivateUse: true },
    ...{ disposition: checked.disposition, kind: checked.kind, rights: checked.rights },
    ...{ shareMode: request.shareAccess, deletesOnClose: checked.deletesOnClose },
    smb: { attributes: checked.attributes, ...(asked.permission && { permission: asked.permission }) },
    client: { session: session.id.toString(), ip: connection.client },
  };
  let opened: Opened | undefined;
  const open = await session.opens.add(async (fileId) => {
    opened = await withKindStatus(checked.kind, () =>
      second === undefined ? openNode(storage, input) : openPreviousVersion(storage, { ...input, second }),
    );
    const { handle, node } = opened;
    // Whether there is such a version is told before what may be done with it.
    const { rights } = second === undefined ? checked : checkCreateRequest(request, SNAPSHOT_RIGHTS);
    return new FileOpen({ fileId, tree, storage, handle, nodeKind: node.kind, rights, mode: modeFrom(request) });
  });
  const { node, action } = opened!;
  if (action !== 'opened') open.allocation = asked.allocationSize;
  return {
    oplockLevel: OPLOCK_LEVEL_NONE,
    flags: 0,
    createAction: CREATE_ACTIONS[action],
    ...viewNode(node, open.allocation),
    fileId: open.fileId,
    createContexts: writeCreateContexts(answerContexts(asked, tree, node)),
  };
}

/** What is there is of the other kind: the answer depends on what was asked for. */
async function withKindStatus(kind: CheckedCreate['kind'], open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof StorageError) || error.code !== 'ResourceTypeMismatch') throw error;
    if (kind === 'directory') throw new SmbError('NOT_A_DIRECTORY');
    throw new SmbError(kind === 'file' ? 'FILE_IS_A_DIRECTORY' : 'OBJECT_NAME_COLLISION');
  }
}
