/** IOCTL: the table of file system controls that are understood (MS-SMB2 3.3.5.15). */
import { type HandlerResult, type OpenContext, Reply, type TreeContext } from '../command.ts';
import type { PipeOpen } from '../pipe-open.ts';
import { SmbError, STATUS } from '../statuses.ts';
import type { PipeTree, Tree } from '../trees.ts';
import { isPreviousFileId } from '../wire/file-id.ts';
import { FSCTL, IOCTL_IS_FSCTL, type IoctlRequest, type IoctlResponse } from '../wire/ioctl.ts';
import { copyChunks, requestResumeKey } from './copy-chunks.ts';
import {
  getCompression,
  getObjectId,
  queryAllocatedRanges,
  setCompression,
  setSparseFile,
  setZeroData,
} from './file-fsctls.ts';
import { networkInterfaces } from './network-interfaces.ts';
import { transceivePipe, waitForPipe } from './pipes.ts';
import { enumerateSnapshots } from './previous-versions.ts';
import { validateNegotiate } from './validate-negotiate.ts';

/** The output; with another status than success, as `withStatus('BUFFER_OVERFLOW', output)`. */
type FsctlResult = HandlerResult<Buffer>;
type Fsctl<Context> = (request: IoctlRequest, context: Context) => FsctlResult | Promise<FsctlResult>;

export type ConnectionFsctls = Readonly<Record<number, Fsctl<TreeContext<Tree>>>>;
export type FileFsctls = Readonly<Record<number, Fsctl<OpenContext>>>;
export type PipeFsctls = Readonly<Record<number, Fsctl<OpenContext<PipeTree, PipeOpen>>>>;

/** Those that concern the connection or the tree: they name no open. */
export const connectionFsctls: ConnectionFsctls = {
  [FSCTL.validateNegotiateInfo]: validateNegotiate,
  [FSCTL.queryNetworkInterfaceInfo]: networkInterfaces,
  [FSCTL.dfsGetReferrals]: refuseReferral,
  [FSCTL.dfsGetReferralsEx]: refuseReferral,
  [FSCTL.pipeWait]: waitForPipe,
};

/** Those of files and directories. */
export const fileFsctls: FileFsctls = {
  [FSCTL.setSparse]: setSparseFile,
  [FSCTL.setZeroData]: setZeroData,
  [FSCTL.queryAllocatedRanges]: queryAllocatedRanges,
  [FSCTL.createOrGetObjectId]: getObjectId,
  [FSCTL.getCompression]: getCompression,
  [FSCTL.setCompression]: setCompression,
  [FSCTL.srvEnumerateSnapshots]: enumerateSnapshots,
  [FSCTL.srvRequestResumeKey]: requestResumeKey,
  [FSCTL.srvCopyChunk]: copyChunks,
  [FSCTL.srvCopyChunkWrite]: copyChunks,
};

/** Those of named pipes. */
export const pipeFsctls: PipeFsctls = { [FSCTL.pipeTransceive]: transceivePipe };

export async function ioctl(request: IoctlRequest, context: TreeContext<Tree>): Promise<HandlerResult<IoctlResponse>> {
  if (request.flags !== IOCTL_IS_FSCTL) throw new SmbError('NOT_SUPPORTED');
  const { output, status } = await runFsctl(request, context);
  const { ctlCode, fileId } = request;
  return new Reply(status, { ctlCode, fileId, input: Buffer.alloc(0), output, flags: 0 });
}

async function runFsctl(request: IoctlRequest, context: TreeContext<Tree>) {
  const result = await startFsctl(request, context);
  return result instanceof Reply
    ? { output: result.body, status: result.status }
    : { output: result, status: STATUS.SUCCESS };
}

function startFsctl(request: IoctlRequest, context: TreeContext<Tree>): FsctlResult | Promise<FsctlResult> {
  const { ctlCode, fileId } = request;
  const ofConnection = connectionFsctls[ctlCode];
  if (ofConnection) {
    if (!isPreviousFileId(fileId)) throw new SmbError('INVALID_PARAMETER');
    return ofConnection(request, context);
  }
  const { tree } = context;
  const open = context.findOpen(fileId);
  const ofFile = fileFsctls[ctlCode];
  if (tree.kind === 'disk' && open.kind === 'disk' && ofFile) return ofFile(request, { ...context, tree, open });
  const ofPipe = pipeFsctls[ctlCode];
  if (tree.kind === 'pipe' && open.kind === 'pipe' && ofPipe) return ofPipe(request, { ...context, tree, open });
  throw new SmbError('INVALID_DEVICE_REQUEST');
}

/** There is no distributed file system: the path is what it is. */
function refuseReferral(): never {
  throw new SmbError('NOT_FOUND');
}
