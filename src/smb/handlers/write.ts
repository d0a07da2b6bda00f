/** WRITE (MS-SMB2 3.3.5.13). The bytes are durable when it is answered. */
import { writeRange } from '../../services/file/handle-ranges.ts';
import type { OpenContext } from '../command.ts';
import { checkIsFile, checkWriteOffset } from '../request-checks.ts';
import { SmbError } from '../statuses.ts';
import type { WriteRequest, WriteResponse } from '../wire/write.ts';

export async function write(request: WriteRequest, { connection, open }: OpenContext): Promise<WriteResponse> {
  const { data, offset } = request;
  if (data.length > connection.server.limits.transactBytes) throw new SmbError('INVALID_PARAMETER');
  checkIsFile(open);
  const from = checkWriteOffset(offset, data.length);
  await writeRange(open.storage, open.handle, { from, bytes: data, mode: open.lastWriteMode });
  open.position = offset + BigInt(data.length);
  return { count: data.length, remaining: 0 };
}
