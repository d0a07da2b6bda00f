/** Create File with the bytes of its first range: both are one commit. */
import { withStagedBytes } from '../common/staged-bytes.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { fail } from './errors.ts';
import { writeBytes } from './file-content.ts';
import { type CreateFileInput, checkCreateInput, checkReplaceable, createFile, putFile } from './files.ts';
import { pathQueueKey, resolve } from './namespace.ts';
import type { File } from './node-rows.ts';

/** For Expect: 100-continue: fails as Create File would, before the body is sent. */
export async function precheckCreateFile(storage: Storage, input: CreateFileInput): Promise<void> {
  const { path, leaseId } = checkCreateInput(input);
  await storage.partition.read(async (at) => {
    await checkReplaceable(at, await resolve(at, storage, input.share, path), leaseId);
  });
}

export async function createFileWithBytes(
  storage: Storage,
  input: CreateFileInput & { readonly body: SentContent },
): Promise<{ readonly file: File; readonly md5?: string | undefined }> {
  const { body, length } = input;
  if (body.length === 0) return { file: await createFile(storage, input) };
  const { path, leaseId, metadata } = checkCreateInput(input);
  if (body.length > length)
    throw fail('InvalidHeaderValue', { HeaderName: 'Content-Length', HeaderValue: String(body.length) });
  const { account, content, partition, sweeper } = storage;
  const newId = content.newId();
  const look = async () => {
    await precheckCreateFile(storage, input);
    return 0;
  };
  const { written: file, md5 } = await withStagedBytes(storage, { body, wantsMd5: true }, look, async (bytes) => {
    const { value } = await content.ranges.withRoom(account, () =>
      partition.transact(pathQueueKey(storage, input, path), async (tx) => {
        const target = await resolve(tx, storage, input.share, path);
        const { record } = await writeBytes(tx, storage, target.share, {}, { from: 0, bytes, newId });
        return putFile(tx, storage, target, { ...input, leaseId, metadata, contentId: record.contentId });
      }),
    );
    if (value.needsSweep) sweeper.wake();
    return value.file;
  });
  return { file, md5 };
}
