/** WRITE (MS-SMB2 3.3.5.13). The bytes are durable when it is answered. */
import { writeRange } from '../../services/file/handle-ranges.ts';
import { afterWrite } from '../../services/file/write-times.ts';
import type { OpenContext } from '../command.ts';
import { checkIsFile, checkWriteOffset } from '../request-checks.ts';
import { SmbError } from '../statuses.ts';
import type { WriteRequest, WriteResponse } from '../wire/write.ts';

export async function write(request: WriteRequest, { connection, open }: OpenContext): Promise<WriteResponse> {
  const { data, offset } = request;
  if (data.length > connection.server.limits.transactBytes) throw new SmbError('INVALID_PARAMETER');
  checkIsFile(open);
  const from = checkWriteOffset(offset, data.length);
  const lastWrite = await writeRange(open.storage, open.handle, { from, bytes: data, ...open.changedTimes });
  if (lastWrite) open.written = afterWrite(open.written, lastWrite);
  open.position = offset + BigInt(data.length);
  return { count: data.length, remaining: 0 };
}
