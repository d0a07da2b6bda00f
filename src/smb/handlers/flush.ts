/** FLUSH (MS-SMB2 3.3.5.11): every write is durable when it is answered, so that only the time of the last write is left to show. */
import { afterFlush } from '../../services/file/write-times.ts';
import type { OpenContext } from '../command.ts';
import type { EmptyBody } from '../wire/empty.ts';
import type { FlushRequest } from '../wire/flush.ts';

/** FILE_WRITE_DATA and FILE_APPEND_DATA; of a directory: to add files and directories. */
const WRITES = 0x6;

export async function flush(_request: FlushRequest, { open }: OpenContext): Promise<EmptyBody> {
  await open.view(WRITES);
  open.written = afterFlush(open.written);
  return {};
}
