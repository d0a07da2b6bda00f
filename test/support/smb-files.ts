/** Files through a connection to an SMB server: each function is one message, and throws for a status that is not success. */

import { readChain } from '../../src/smb/wire/chain.ts';
import { CloseRequest } from '../../src/smb/wire/close.ts';
import { CREATE_OPTIONS, CreateRequest, CreateResponse } from '../../src/smb/wire/create.ts';
import type { FileId } from '../../src/smb/wire/file-id.ts';
import { FILE_INFO, FileDispositionInformation, FileRenameInformation } from '../../src/smb/wire/file-info.ts';
import { QueryDirectoryRequest, QueryDirectoryResponse } from '../../src/smb/wire/query-directory.ts';
import { ReadRequest, ReadResponse } from '../../src/smb/wire/read.ts';
import { SetInfoRequest } from '../../src/smb/wire/set-info.ts';
import type { Struct } from '../../src/smb/wire/struct.ts';
import { WriteRequest } from '../../src/smb/wire/write.ts';
import type { SmbAnswer, SmbConnection } from './smb-connection.ts';

const INFO_TYPE_FILE = 1;
const NAMES_INFORMATION = 12;
const NAME_AT = 12;
const NO_CHANNEL = { channel: 0, remainingBytes: 0 };

export const DISPOSITION = { open: 1, create: 2, openIf: 3 } as const;

/** For everything, shared with all, unless asked for otherwise. */
export async function openFile(
  connection: SmbConnection,
  name: string,
  fields: Partial<CreateRequest> = {},
): Promise<FileId> {
  const answer = await ask(connection, 5, CreateRequest, {
    ...{ securityFlags: 0, requestedOplockLevel: 0, impersonationLevel: 2, smbCreateFlags: 0n, fileAttributes: 0 },
    ...{ desiredAccess: 0x1f_01ff, shareAccess: 7, createDisposition: DISPOSITION.openIf, createOptions: 0, name },
    ...{ createContexts: Buffer.alloc(0), ...fields },
  });
  return answer.decode(CreateResponse).fileId;
}

/** To list it. Entries of a directory that somebody has opened for deletion cannot be renamed. */
export function openDirectory(connection: SmbConnection, name: string): Promise<FileId> {
  return openFile(connection, name, { createOptions: CREATE_OPTIONS.directoryFile, desiredAccess: 0x12_0089 });
}

export async function closeFile(connection: SmbConnection, fileId: FileId): Promise<void> {
  await ask(connection, 6, CloseRequest, { flags: 0, fileId });
}

export async function readFile(connection: SmbConnection, fileId: FileId, length = 65_536, at = 0): Promise<Buffer> {
  const place = { padding: 0, flags: 0, length, offset: BigInt(at), fileId, minimumCount: 0 };
  const answer = await ask(connection, 8, ReadRequest, { ...place, ...NO_CHANNEL, readChannelInfo: Buffer.alloc(0) });
  return answer.decode(ReadResponse).data;
}

export async function writeFile(
  connection: SmbConnection,
  fileId: FileId,
  offset: number,
  text: string | Buffer,
): Promise<void> {
  const place = { data: Buffer.from(text), offset: BigInt(offset), fileId, flags: 0 };
  await ask(connection, 9, WriteRequest, { ...place, ...NO_CHANNEL, writeChannelInfo: Buffer.alloc(0) });
}

/** Of the directory's first page. */
export async function listNames(connection: SmbConnection, fileId: FileId, pattern = '*'): Promise<string[]> {
  const answer = await ask(connection, 14, QueryDirectoryRequest, {
    ...{ fileInformationClass: NAMES_INFORMATION, flags: 1, fileIndex: 0, fileId, fileName: pattern },
    outputBufferLength: 65_536,
  });
  const entries = readChain(answer.decode(QueryDirectoryResponse).output, { minimum: NAME_AT, max: 10_000 });
  return entries
    .map((entry) => entry.toString('utf16le', NAME_AT, NAME_AT + entry.readUInt32LE(8)))
    .filter((name) => name !== '.' && name !== '..');
}

export async function renameFile(connection: SmbConnection, fileId: FileId, fileName: string): Promise<void> {
  const information = { replaceIfExists: 0, rootDirectory: 0n, fileName };
  await setInfo(connection, fileId, FILE_INFO.rename, FileRenameInformation.encode(information));
}

export async function markForDeletion(connection: SmbConnection, fileId: FileId): Promise<void> {
  await setInfo(connection, fileId, FILE_INFO.disposition, FileDispositionInformation.encode({ deletePending: 1 }));
}

async function setInfo(connection: SmbConnection, fileId: FileId, fileInfoClass: number, buffer: Buffer) {
  const fields = { infoType: INFO_TYPE_FILE, fileInfoClass, additionalInformation: 0, fileId, buffer };
  await ask(connection, 17, SetInfoRequest, fields);
}

async function ask<T>(connection: SmbConnection, command: number, struct: Struct<T>, body: T): Promise<SmbAnswer> {
  const answer = await connection.request(command, struct, body);
  if (answer.status !== 'STATUS_SUCCESS') throw new Error(answer.status);
  return answer;
}
