/** Named pipes of IPC$: CREATE, WRITE, READ, FSCTL_PIPE_TRANSCEIVE and CLOSE of srvsvc, which lists the shares of the account. */

import type { Storage } from '../../services/common/storage.ts';
import { shareAccess } from '../../services/file/access.ts';
import { listShares } from '../../services/file/list-shares.ts';
import { type HandlerResult, type OpenContext, type TreeContext, withStatus } from '../command.ts';
import { PipeOpen } from '../pipe-open.ts';
import { RpcEndpoint } from '../rpc/endpoint.ts';
import { type SharesToList, srvsvc } from '../rpc/srvsvc.ts';
import { SmbError } from '../statuses.ts';
import type { PipeTree, Tree } from '../trees.ts';
import type { CloseResponse } from '../wire/close.ts';
import type { CreateRequest, CreateResponse } from '../wire/create.ts';
import type { EmptyBody } from '../wire/empty.ts';
import { type IoctlRequest, PipeWaitRequest } from '../wire/ioctl.ts';
import type { ReadRequest, ReadResponse } from '../wire/read.ts';
import type { WriteRequest, WriteResponse } from '../wire/write.ts';

type PipeContext = OpenContext<PipeTree, PipeOpen>;

const OPENED = 1;
const ATTRIBUTE_NORMAL = 0x80;
/** As Windows says of a pipe. */
const ALLOCATION_BYTES = 4_096n;

const NO_TIMES = { creationTime: 0n, lastAccessTime: 0n, lastWriteTime: 0n, changeTime: 0n } as const;

export async function openPipe(request: CreateRequest, context: TreeContext<PipeTree>): Promise<CreateResponse> {
  const { session, storage, tree, connection } = context;
  checkPipeName(request.name);
  const shares = sharesOf(storage, connection.server.name);
  const open = await session.opens.add((fileId) => new PipeOpen(fileId, tree, new RpcEndpoint(srvsvc(shares))));
  return {
    ...{ oplockLevel: 0, flags: 0, createAction: OPENED, ...NO_TIMES, allocationSize: ALLOCATION_BYTES, endOfFile: 0n },
    ...{ fileAttributes: ATTRIBUTE_NORMAL, fileId: open.fileId, createContexts: Buffer.alloc(0) },
  };
}

function checkPipeName(name: string): void {
  if (name.toLowerCase().replace(/^\\/, '') !== 'srvsvc') throw new SmbError('OBJECT_NAME_NOT_FOUND');
}

/** FSCTL_PIPE_WAIT: a pipe that exists can always be opened, so that nobody waits. */
export function waitForPipe({ input }: IoctlRequest, { tree }: TreeContext<Tree>): Buffer {
  if (tree.kind !== 'pipe') throw new SmbError('INVALID_DEVICE_REQUEST');
  if (input.length < PipeWaitRequest.size) throw new SmbError('INVALID_PARAMETER');
  checkPipeName(PipeWaitRequest.decode(input).name);
  return Buffer.alloc(0);
}

export async function closePipe(_request: unknown, { session, open }: PipeContext): Promise<CloseResponse> {
  await session.opens.close(open);
  return { flags: 0, ...NO_TIMES, allocationSize: 0n, endOfFile: 0n, fileAttributes: 0 };
}

export async function writePipe({ data }: WriteRequest, { open }: PipeContext): Promise<WriteResponse> {
  await open.write(data);
  return { count: data.length, remaining: 0 };
}

export async function readPipe({ length }: ReadRequest, { open }: PipeContext): Promise<HandlerResult<ReadResponse>> {
  const { data, isCut } = await open.read(length);
  const response = { data, dataRemaining: 0 };
  return isCut ? withStatus('BUFFER_OVERFLOW', response) : response;
}

export function flushPipe(): EmptyBody {
  return {};
}

/** A write and a read in one. */
export async function transceivePipe(
  { input, maxOutputResponse }: IoctlRequest,
  { open }: PipeContext,
): Promise<HandlerResult<Buffer>> {
  await open.write(input);
  const { data, isCut } = await open.read(maxOutputResponse);
  return isCut ? withStatus('BUFFER_OVERFLOW', data) : data;
}

function sharesOf(storage: Storage, serverName: string): SharesToList {
  return {
    serverName,
    async list() {
      const names: string[] = [];
      let marker = '';
      do {
        const page = { prefix: undefined, marker: marker || undefined, resultsMax: undefined };
        marker = await listShares(storage, page, (shares) => names.push(...shares.map(({ name }) => name)));
      } while (marker !== '');
      return names;
    },
    async find(name) {
      const share = name.toLowerCase();
      return (await shareAccess(storage, share)) ? share : undefined;
    },
  };
}
