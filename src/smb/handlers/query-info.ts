/** QUERY_INFO (MS-SMB2 3.3.5.20): tables of information classes, and what happens if the client has too little room. */
import { getHandlePermission } from '../../services/file/handle-properties.ts';
import { type OpenContext, type Reply, withStatus } from '../command.ts';
import type { Dialect } from '../dialects.ts';
import type { FileOpen } from '../file-open.ts';
import { SmbError } from '../statuses.ts';
import { INFO_TYPE, type QueryInfoRequest, type QueryInfoResponse } from '../wire/query-info.ts';
import { fileInfoClasses } from './query-file-info.ts';
import { fsInfoClasses } from './query-fs-info.ts';

/** A row of a table of classes. */
export interface InfoClass {
  /** Bytes of the fixed part: with less room nothing is answered. What follows may be cut off. */
  readonly size: number;
  /** The first dialect that has the class; undefined: all have it. */
  readonly since?: Dialect;
  query(open: FileOpen): Promise<Buffer>;
}

export async function queryInfo(
  request: QueryInfoRequest,
  { connection, open }: OpenContext,
): Promise<QueryInfoResponse | Reply<QueryInfoResponse>> {
  const { infoType, fileInfoClass, outputBufferLength: room } = request;
  if (room > connection.server.limits.transactBytes) throw new SmbError('INVALID_PARAMETER');
  if (infoType === INFO_TYPE.security) return querySecurity(request, open);
  if (infoType === INFO_TYPE.quota) throw new SmbError('NOT_SUPPORTED');
  const classes = { [INFO_TYPE.file]: fileInfoClasses, [INFO_TYPE.fileSystem]: fsInfoClasses }[infoType];
  if (!classes) throw new SmbError('INVALID_PARAMETER');
  const found = classes.get(fileInfoClass);
  if (!found) throw new SmbError('INVALID_INFO_CLASS');
  if (typeof found === 'string') throw new SmbError(found);
  if (found.since !== undefined && connection.negotiated!.dialect < found.since) throw new SmbError('NOT_SUPPORTED');
  if (room < found.size) throw new SmbError('INFO_LENGTH_MISMATCH');
  const output = await found.query(open);
  return output.length <= room ? { output } : withStatus('BUFFER_OVERFLOW', { output: output.subarray(0, room) });
}

async function querySecurity(request: QueryInfoRequest, open: FileOpen): Promise<QueryInfoResponse> {
  const output = await getHandlePermission(open.storage, open.handle, request.additionalInformation);
  if (output.length <= request.outputBufferLength) return { output };
  const needed = Buffer.alloc(4);
  needed.writeUInt32LE(output.length);
  throw new SmbError('BUFFER_TOO_SMALL', needed);
}
