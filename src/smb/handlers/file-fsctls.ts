/** File system controls on files and directories (MS-FSCC 2.3): sparse files, zeros, allocated ranges, object ids. */
import { setSparse } from '../../services/file/handle-properties.ts';
import { listAllocated, zeroRange } from '../../services/file/handle-ranges.ts';
import { type HandlerResult, type OpenContext, withStatus } from '../command.ts';
import type { FileOpen } from '../file-open.ts';
import { fileIndex } from '../file-views.ts';
import { checkIsFile, checkOffset } from '../request-checks.ts';
import { SmbError } from '../statuses.ts';
import { FileAllocatedRange, FileZeroDataInformation } from '../wire/file-fsctl.ts';
import type { IoctlRequest } from '../wire/ioctl.ts';
import type { Struct } from '../wire/struct.ts';

const NOTHING = Buffer.alloc(0);
const OBJECT_ID_BYTES = 64;

/** The input of a control; a shorter one is no input. */
export function readInput<T>(struct: Struct<T>, { input }: IoctlRequest): T {
  if (input.length < struct.size) throw new SmbError('INVALID_PARAMETER');
  return struct.decode(input);
}

/** Without an input: sparse. */
export async function setSparseFile({ input }: IoctlRequest, { open }: OpenContext): Promise<Buffer> {
  if (open.nodeKind !== 'file') throw new SmbError('INVALID_PARAMETER');
  await setSparse(open.storage, open.handle, input.length === 0 || input[0] !== 0);
  return NOTHING;
}

export async function setZeroData(request: IoctlRequest, { open }: OpenContext): Promise<Buffer> {
  checkIsFile(open);
  const { fileOffset, beyondFinalZero } = readInput(FileZeroDataInformation, request);
  const [from, to] = [checkOffset(fileOffset), checkOffset(beyondFinalZero)];
  if (from > to) throw new SmbError('INVALID_PARAMETER');
  await zeroRange(open.storage, open.handle, { range: { from, to }, ...open.changedTimes });
  return NOTHING;
}

export async function queryAllocatedRanges(
  request: IoctlRequest,
  { open }: OpenContext,
): Promise<HandlerResult<Buffer>> {
  checkIsFile(open);
  const { fileOffset, length } = readInput(FileAllocatedRange, request);
  const from = checkOffset(fileOffset);
  const to = checkOffset(fileOffset + length);
  const room = Math.floor(request.maxOutputResponse / FileAllocatedRange.size);
  const { ranges, isComplete } = await listAllocated(open.storage, open.handle, { from, to }, room);
  if (room === 0 && !isComplete) throw new SmbError('BUFFER_TOO_SMALL');
  const output = Buffer.concat(
    ranges.map((range) =>
      FileAllocatedRange.encode({ fileOffset: BigInt(range.from), length: BigInt(range.to - range.from) }),
    ),
  );
  return isComplete ? output : withStatus('BUFFER_OVERFLOW', output);
}

const NO_COMPRESSION = Buffer.alloc(2);

export const getCompression = (): Buffer => NO_COMPRESSION;

/** That there is none can be set. */
export function setCompression({ input }: IoctlRequest): Buffer {
  if (input.length < NO_COMPRESSION.length) throw new SmbError('INVALID_PARAMETER');
  if (!input.subarray(0, NO_COMPRESSION.length).equals(NO_COMPRESSION)) throw new SmbError('NOT_SUPPORTED');
  return NOTHING;
}

/** The id of the file in that of its share: it stays through renames, and nothing has to be stored for it. */
export function getObjectId(_request: IoctlRequest, { open }: { readonly open: FileOpen }): Buffer {
  const output = Buffer.alloc(OBJECT_ID_BYTES);
  output.writeBigUInt64LE(fileIndex(open.tree, { id: open.handle.node }), 0);
  output.writeBigUInt64LE(open.tree.shareId, 8);
  return output;
}
