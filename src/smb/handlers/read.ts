/** READ (MS-SMB2 3.3.5.12). */
import { readRange } from '../../services/file/handle-ranges.ts';
import type { OpenContext } from '../command.ts';
import { checkIsFile, checkOffset } from '../request-checks.ts';
import { SmbError } from '../statuses.ts';
import type { ReadRequest, ReadResponse } from '../wire/read.ts';

export async function read(request: ReadRequest, { open }: OpenContext): Promise<ReadResponse> {
  const { length, offset, minimumCount } = request;
  checkIsFile(open);
  const from = checkOffset(offset, length);
  const data = await readRange(open.storage, open.handle, { from, to: from + length });
  if (data.length < minimumCount || (data.length === 0 && length > 0)) throw new SmbError('END_OF_FILE');
  open.position = offset + BigInt(data.length);
  return { data, dataRemaining: 0 };
}
