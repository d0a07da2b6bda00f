/** Put Range: bytes are written or cleared in one commit. */
import type { ByteRange } from '../../content/ranges/range-maps.ts';
import type { Snapshot } from '../../partition/partition.ts';
import {
  type LastWriteMode,
  PUT_RANGE_BYTES_MAX,
  parseLastWriteMode,
  parseWriteRange,
} from '../../rules/file/ranges.ts';
import { type StagedBytes, withStagedBytes } from '../common/staged-bytes.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { type ByteChange, changeFileBytes } from './change-bytes.ts';
import { fail } from './errors.ts';
import { clearBytes, writeBytes } from './file-content.ts';
import type { FileInput } from './files.ts';
import { checkPath, type FoundFile, pathQueueKey, resolveFile } from './namespace.ts';
import type { File } from './node-rows.ts';
import { checkSharing } from './opens.ts';
import { checkFileLease, checkNoPendingCopy, checkNotReadOnly, parseLeaseId } from './request-checks.ts';

export { FILE_BYTES_MAX, PUT_RANGE_BYTES_MAX } from '../../rules/file/ranges.ts';

export interface WriteRangeInput extends FileInput {
  /** As sent. */
  readonly range: string;
  /** As sent: whether the time of the last write changes. */
  readonly lastWrite: string | undefined;
  /** In versions before 2021-06-08 a write changes no time but Last-Modified. */
  readonly keepsTimes: boolean;
}

export interface PutRangeInput extends WriteRangeInput {
  readonly body: SentContent;
}

/** A request that is well-formed. */
export interface CheckedWrite {
  readonly range: ByteRange;
  /** Undefined: no time is changed. */
  readonly mode: LastWriteMode | undefined;
}

/** For Expect: 100-continue: fails as Put Range would, before the body is sent. */
export async function precheckPutRange(
  storage: Storage,
  input: WriteRangeInput,
  { range }: Pick<CheckedWrite, 'range'> = checkPutRange(input),
): Promise<void> {
  const path = checkPath(input);
  await storage.partition.read(async (at) => {
    const target = await resolveFile(at, storage, input.share, path);
    await checkWritable(at, target, input, range);
  });
}

export async function putRange(storage: Storage, input: PutRangeInput) {
  const write = checkPutRange(input);
  const { from, to } = write.range;
  const { body } = input;
  if (body.length !== to - from)
    throw fail('InvalidHeaderValue', { HeaderName: 'Content-Length', HeaderValue: String(body.length) });
  const look = async () => {
    await precheckPutRange(storage, input);
    return from;
  };
  const staged = { body, wantsMd5: true };
  const { written, md5 } = await withStagedBytes(storage, staged, look, (bytes) =>
    commitRange(storage, input, write, bytes),
  );
  return { file: written.file, md5 };
}

/** One commit that writes the bytes. */
export function commitRange(storage: Storage, input: FileInput, write: CheckedWrite, bytes: StagedBytes) {
  const { from } = write.range;
  return changeBytes(storage, input, write, (tx, { share, node }, newId) =>
    writeBytes(tx, storage, share, node, { from, bytes, newId }),
  );
}

/** A range of any length is one commit. */
export async function clearFileRange(storage: Storage, input: WriteRangeInput) {
  const write = checkWriteInput(input);
  return changeBytes(storage, input, write, (tx, { share, node }, newId) =>
    clearBytes(tx, storage, share, node, write.range, newId),
  );
}

function changeBytes(
  storage: Storage,
  input: FileInput,
  { range, mode }: CheckedWrite,
  change: ByteChange,
): Promise<{ readonly file: File }> {
  const path = checkPath(input);
  return changeFileBytes(storage, pathQueueKey(storage, input, path), mode && { mode }, change, async (tx) => {
    const target = await resolveFile(tx, storage, input.share, path);
    await checkWritable(tx, target, input, range);
    return target;
  });
}

/** Of a write whose bytes come with it. */
export function checkPutRange(input: WriteRangeInput): CheckedWrite {
  const write = checkWriteInput(input);
  if (write.range.to - write.range.from > PUT_RANGE_BYTES_MAX)
    throw fail('RequestBodyTooLarge', { MaxLimit: String(PUT_RANGE_BYTES_MAX) });
  return write;
}

function checkWriteInput({ range: text, lastWrite, keepsTimes }: WriteRangeInput): CheckedWrite {
  const range = parseWriteRange(text);
  if (!range) throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-range', HeaderValue: text });
  if (keepsTimes) return { range, mode: undefined };
  const mode = parseLastWriteMode(lastWrite);
  if (!mode)
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-file-last-write-time', HeaderValue: String(lastWrite) });
  return { range, mode };
}

/** A write never makes a file longer. */
async function checkWritable(
  at: Snapshot,
  target: FoundFile,
  { leaseId }: FileInput,
  { to }: ByteRange,
): Promise<void> {
  const { node: file } = target;
  await checkSharing(at, target, 'write');
  checkFileLease(at, file, parseLeaseId(leaseId), 'write');
  checkNotReadOnly(file);
  checkNoPendingCopy(file);
  if (to > file.length) throw fail('InvalidRange');
}
