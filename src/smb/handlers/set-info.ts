/** SET_INFO (MS-SMB2 3.3.5.21): a table of information classes that can be set. */

import { setHandlePermission } from '../../services/file/handle-properties.ts';
import { setAllocation, setEndOfFile } from '../../services/file/handle-ranges.ts';
import { renameThroughHandle } from '../../services/file/handle-rename.ts';
import { setDeletePending } from '../../services/file/handles.ts';
import { afterFlush } from '../../services/file/write-times.ts';
import type { OpenContext } from '../command.ts';
import type { FileOpen } from '../file-open.ts';
import { parseFileName } from '../names.ts';
import { checkIsFile, checkOffset } from '../request-checks.ts';
import { SmbError, type StatusName } from '../statuses.ts';
import * as info from '../wire/file-info.ts';
import { INFO_TYPE } from '../wire/query-info.ts';
import type { SetInfoRequest, SetInfoResponse } from '../wire/set-info.ts';
import type { Struct } from '../wire/struct.ts';
import { setBasic } from './set-basic-info.ts';

const { FILE_INFO, RENAME_FLAGS, DISPOSITION_FLAGS } = info;

/** Write through, sequential, unbuffered, and the two synchronous modes: MS-FSCC 2.4.31. */
const SETTABLE_MODE = 0x3e;

type SetClass = (buffer: Buffer, open: FileOpen) => Promise<void>;

/** A shorter buffer is a length mismatch; bytes after the struct are ignored. */
function setting<T>(struct: Struct<T>, set: (value: T, open: FileOpen) => Promise<void> | void): SetClass {
  return async (buffer, open) => {
    if (buffer.length < struct.size) throw new SmbError('INFO_LENGTH_MISMATCH');
    await set(struct.decode(buffer), open);
  };
}

async function rename(
  open: FileOpen,
  { fileName, rootDirectory }: { readonly fileName: string; readonly rootDirectory: bigint },
  flags: number,
): Promise<void> {
  // Names are relative to the share.
  if (rootDirectory !== 0n) throw new SmbError('INVALID_PARAMETER');
  const path = parseFileName(fileName.startsWith('\\') ? fileName.slice(1) : fileName);
  await renameThroughHandle(open.storage, open.handle, {
    ...{ path, keepsTrailingDots: true, allowsPrivateUse: true },
    replaces: (flags & RENAME_FLAGS.replaceIfExists) !== 0,
    ignoresReadOnly: (flags & RENAME_FLAGS.ignoreReadOnly) !== 0,
  });
}

/** By FileInfoClass; a text is the status of a class that is known and refused. */
export const setClasses: ReadonlyMap<number, SetClass | StatusName> = new Map<number, SetClass | StatusName>([
  [FILE_INFO.basic, setting(info.FileBasicInformation, setBasic)],
  [
    FILE_INFO.rename,
    setting(info.FileRenameInformation, (value, open) =>
      rename(open, value, value.replaceIfExists ? RENAME_FLAGS.replaceIfExists : 0),
    ),
  ],
  [FILE_INFO.renameEx, setting(info.FileRenameInformationEx, (value, open) => rename(open, value, value.flags))],
  [FILE_INFO.link, 'NOT_SUPPORTED'],
  [
    FILE_INFO.disposition,
    setting(info.FileDispositionInformation, ({ deletePending }, { storage, handle }) =>
      setDeletePending(storage, handle, deletePending !== 0),
    ),
  ],
  [
    FILE_INFO.dispositionEx,
    setting(info.FileDispositionInformationEx, ({ flags }, { storage, handle }) =>
      setDeletePending(storage, handle, (flags & DISPOSITION_FLAGS.delete) !== 0),
    ),
  ],
  [
    FILE_INFO.position,
    setting(info.FilePositionInformation, ({ currentByteOffset }, open) => {
      checkOffset(currentByteOffset);
      open.position = currentByteOffset;
    }),
  ],
  [
    FILE_INFO.mode,
    setting(info.FileModeInformation, ({ mode }, open) => {
      if (mode & ~SETTABLE_MODE) throw new SmbError('INVALID_PARAMETER');
      open.mode = mode;
    }),
  ],
  [FILE_INFO.fullEa, 'EAS_NOT_SUPPORTED'],
  [
    FILE_INFO.allocation,
    setting(info.FileAllocationInformation, async ({ allocationSize }, open) => {
      checkIsFile(open);
      const size = checkOffset(allocationSize);
      await setAllocation(open.storage, open.handle, { size, ...open.changedTimes });
      open.allocation = allocationSize;
      open.written = afterFlush(open.written);
    }),
  ],
  [
    FILE_INFO.endOfFile,
    setting(info.FileEndOfFileInformation, async ({ endOfFile }, open) => {
      checkIsFile(open);
      const end = checkOffset(endOfFile);
      await setEndOfFile(open.storage, open.handle, { end, ...open.changedTimes });
      open.allocation = 0n;
      open.written = afterFlush(open.written);
    }),
  ],
  // What was not written is zeros in any case.
  [FILE_INFO.validDataLength, 'PRIVILEGE_NOT_HELD'],
  [FILE_INFO.shortName, 'NOT_SUPPORTED'],
]);

export async function setInfo(request: SetInfoRequest, { connection, open }: OpenContext): Promise<SetInfoResponse> {
  const { infoType, fileInfoClass, buffer, additionalInformation } = request;
  if (buffer.length > connection.server.limits.transactBytes) throw new SmbError('INVALID_PARAMETER');
  if (open.isPreviousVersion) throw new SmbError('ACCESS_DENIED');
  if (infoType === INFO_TYPE.security) {
    await setHandlePermission(open.storage, open.handle, additionalInformation, Buffer.from(buffer));
    return {};
  }
  if (infoType === INFO_TYPE.fileSystem || infoType === INFO_TYPE.quota) throw new SmbError('NOT_SUPPORTED');
  if (infoType !== INFO_TYPE.file) throw new SmbError('INVALID_PARAMETER');
  const set = setClasses.get(fileInfoClass);
  if (!set) throw new SmbError('INVALID_INFO_CLASS');
  if (typeof set === 'string') throw new SmbError(set);
  await set(buffer, open);
  return {};
}
