/** Copies by the server: SRV_REQUEST_RESUME_KEY and SRV_COPYCHUNK (MS-SMB2 3.3.5.15.5, 3.3.5.15.6). */
import { COPY_CHUNKS_MAX } from '../../base/input-limits.ts';
import { copyRange } from '../../services/file/handle-copies.ts';
import { type HandlerResult, type OpenContext, withStatus } from '../command.ts';
import type { FileOpen } from '../file-open.ts';
import { checkIsFile, checkOffset, checkWriteOffset } from '../request-checks.ts';
import { SmbError } from '../statuses.ts';
import { type CopyChunk, CopyChunkResponse, ResumeKeyResponse, readCopyChunks } from '../wire/file-fsctl.ts';
import { FileId } from '../wire/file-id.ts';
import { FSCTL, type IoctlRequest } from '../wire/ioctl.ts';

/** Windows has the same limits. */
const LIMITS = { chunksWritten: COPY_CHUNKS_MAX, chunkBytesWritten: 1 << 20, totalBytesWritten: 16 << 20 };
/** FILE_READ_DATA and FILE_EXECUTE; FILE_WRITE_DATA and FILE_APPEND_DATA. */
const READ_DATA = 0x1;
const READS = 0x21;
const WRITES = 0x6;
const RESUME_KEY_BYTES = 24;

/** The key of an open is its FileId: it is of use to the same session alone. */
export function requestResumeKey(request: IoctlRequest, { open }: OpenContext): Buffer {
  if (request.maxOutputResponse < ResumeKeyResponse.size) throw new SmbError('INVALID_PARAMETER');
  const resumeKey = Buffer.alloc(RESUME_KEY_BYTES);
  FileId.encode(open.fileId).copy(resumeKey);
  return ResumeKeyResponse.encode({ resumeKey });
}

export async function copyChunks(request: IoctlRequest, context: OpenContext): Promise<HandlerResult<Buffer>> {
  const { open: target } = context;
  if (request.maxOutputResponse < CopyChunkResponse.size) throw new SmbError('INVALID_PARAMETER');
  const { sourceKey, chunkCount, chunks } = readCopyChunks(request.input);
  const source = findSource(sourceKey, context);
  checkIsFile(target);
  checkRights(source, target, request.ctlCode === FSCTL.srvCopyChunk);
  if (chunkCount > LIMITS.chunksWritten || exceedsLimits(chunks))
    return withStatus('INVALID_PARAMETER', CopyChunkResponse.encode(LIMITS));
  let [chunksWritten, totalBytesWritten] = [0, 0];
  for (const { sourceOffset, targetOffset, length } of chunks) {
    if (context.signal.aborted) throw new SmbError('CANCELLED');
    const from = checkOffset(sourceOffset, length);
    const to = checkWriteOffset(targetOffset, length);
    const isCopied = await copyRange(source, target, { from, to, length, ...target.changedTimes });
    if (!isCopied) return withStatus('INVALID_VIEW_SIZE', answer());
    chunksWritten += 1;
    totalBytesWritten += length;
  }
  return answer();

  function answer(): Buffer {
    return CopyChunkResponse.encode({ chunksWritten, chunkBytesWritten: 0, totalBytesWritten });
  }
}

/** In any share of the session. */
function findSource(key: Buffer, { session }: OpenContext): FileOpen {
  try {
    const source = session.opens.get(FileId.decode(key));
    if (source.kind === 'disk') return source;
  } catch {
    // An unknown FileId: so is the key.
  }
  throw new SmbError('OBJECT_NAME_NOT_FOUND');
}

function checkRights(source: FileOpen, target: FileOpen, readsTarget: boolean): void {
  if (!(source.rights & READS) || !(target.rights & WRITES)) throw new SmbError('ACCESS_DENIED');
  if (readsTarget && !(target.rights & READ_DATA)) throw new SmbError('ACCESS_DENIED');
  if (source.nodeKind !== 'file') throw new SmbError('INVALID_DEVICE_REQUEST');
}

function exceedsLimits(chunks: readonly CopyChunk[]): boolean {
  const total = chunks.reduce((sum, { length }) => sum + length, 0);
  return (
    total > LIMITS.totalBytesWritten || chunks.some(({ length }) => length === 0 || length > LIMITS.chunkBytesWritten)
  );
}
