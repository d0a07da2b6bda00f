/** Bytes of a file as the content of a request: the services take them as if a client had sent them. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { type SentContent, WHOLE_BYTES_MAX } from '../services/common/upload.ts';

export function bytesContent(whole: Buffer): SentContent {
  return {
    length: whole.length,
    expected: {},
    ...(whole.length <= WHOLE_BYTES_MAX && { whole }),
    async *bytes() {
      yield whole;
    },
  };
}

/** A range of a file. Fails, now or in the stream, if the file ends before it. */
export async function fileContent(file: string, offset: number, length: number): Promise<SentContent> {
  if (length > WHOLE_BYTES_MAX) {
    return { length, expected: {}, bytes: () => createReadStream(file, { start: offset, end: offset + length - 1 }) };
  }
  const handle = await open(file);
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(length), 0, length, offset);
    if (bytesRead < length) throw new Error(`${bytesRead} bytes instead of ${length}`);
    return bytesContent(buffer);
  } finally {
    await handle.close();
  }
}
