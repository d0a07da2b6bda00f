/** What clients query and set: each class of MS-FSCC that they use is answered, or refused by the status that they expect. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SmbConnection } from '../../../test/support/smb-connection.ts';
import { create, TestSmbServer } from '../../../test/support/smb-server.ts';
import { readChain } from '../wire/chain.ts';
import { CreateResponse } from '../wire/create.ts';
import { DIRECTORY_LEVELS } from '../wire/directory-info.ts';
import type { FileId } from '../wire/file-id.ts';
import * as info from '../wire/file-info.ts';
import { FSCTL, IOCTL_IS_FSCTL, IoctlRequest, PipeWaitRequest } from '../wire/ioctl.ts';
import { QUERY_DIRECTORY_FLAGS, QueryDirectoryRequest, QueryDirectoryResponse } from '../wire/query-directory.ts';
import { INFO_TYPE, QueryInfoRequest, QueryInfoResponse } from '../wire/query-info.ts';
import { SetInfoRequest } from '../wire/set-info.ts';

const [IOCTL, QUERY_DIRECTORY, QUERY_INFO, SET_INFO] = [11, 14, 16, 17];
const ALL_RIGHTS = 0x1f_01ff;
const DIRECTORY = { createOptions: 1 };

let server: TestSmbServer;
let connection: SmbConnection;
beforeEach(async () => {
  server = await TestSmbServer.start();
  connection = await server.inShare();
});
afterEach(() => server.stop());

async function open(name: string, fields: Parameters<typeof create>[1] = {}): Promise<FileId> {
  const [answer] = await connection.send([create(name, { desiredAccess: ALL_RIGHTS, ...fields })]);
  expect(answer!.status).toBe('STATUS_SUCCESS');
  return answer!.decode(CreateResponse).fileId;
}

async function query(fileId: FileId, infoType: number, fileInfoClass: number, outputBufferLength = 65_536) {
  const answer = await connection.request(QUERY_INFO, QueryInfoRequest, {
    ...{ infoType, fileInfoClass, outputBufferLength, fileId, flags: 0 },
    ...{ input: Buffer.alloc(0), additionalInformation: infoType === INFO_TYPE.security ? 7 : 0 },
  });
  const hasOutput = answer.status === 'STATUS_SUCCESS' || answer.status === 'STATUS_BUFFER_OVERFLOW';
  return { status: answer.status, output: hasOutput ? answer.decode(QueryInfoResponse).output : undefined };
}

async function set(fileId: FileId, infoType: number, fileInfoClass: number, buffer: Buffer): Promise<string> {
  const fields = { infoType, fileInfoClass, buffer, additionalInformation: 0, fileId };
  return (await connection.request(SET_INFO, SetInfoRequest, fields)).status;
}

describe('QUERY_INFO of a file', () => {
  /** The room that Windows takes at least. */
  const ROOM_MIN = {
    ...{
      basic: 40,
      standard: 24,
      internal: 8,
      ea: 4,
      access: 4,
      name: 8,
      position: 8,
      mode: 4,
      alignment: 4,
      all: 104,
    },
    ...{ alternateName: 8, stream: 32, compression: 16, networkOpen: 56, attributeTag: 8, normalizedName: 8, id: 24 },
  } as const;

  it.each(Object.entries(ROOM_MIN))('answers class %s, with room for %i bytes at least', async (name, room) => {
    const fileId = await open('a file of some name');
    const fileInfoClass = info.FILE_INFO[name as keyof typeof ROOM_MIN];
    const whole = await query(fileId, INFO_TYPE.file, fileInfoClass);
    expect(whole.status).toBe('STATUS_SUCCESS');
    const length = whole.output!.length;
    expect((await query(fileId, INFO_TYPE.file, fileInfoClass, room - 1)).status).toBe('STATUS_INFO_LENGTH_MISMATCH');
    expect(await query(fileId, INFO_TYPE.file, fileInfoClass, length)).toEqual(whole);
    if (length === room) return;
    const cut = { status: 'STATUS_BUFFER_OVERFLOW', output: whole.output!.subarray(0, room) };
    expect(await query(fileId, INFO_TYPE.file, fileInfoClass, room)).toEqual(cut);
  });

  it.each([
    ['extended attributes, of which there are none', info.FILE_INFO.fullEa, 'STATUS_NO_EAS_ON_FILE'],
    ['a class that only SET_INFO has', info.FILE_INFO.rename, 'STATUS_INVALID_INFO_CLASS'],
    ['a class that there is not', 99, 'STATUS_INVALID_INFO_CLASS'],
  ])('refuses %s', async (_title, fileInfoClass, status) => {
    expect((await query(await open('a'), INFO_TYPE.file, fileInfoClass)).status).toBe(status);
  });

  it('names the one stream of a file, and none of a directory', async () => {
    const ofFile = await query(await open('a'), INFO_TYPE.file, info.FILE_INFO.stream);
    expect(ofFile.output!.subarray(24).toString('utf16le')).toBe('::$DATA');
    const ofDirectory = await query(await open('d', DIRECTORY), INFO_TYPE.file, info.FILE_INFO.stream);
    expect(ofDirectory).toEqual({ status: 'STATUS_SUCCESS', output: Buffer.alloc(0) });
  });

  it('has the normalized name in dialect 3.1.1 alone', async () => {
    connection = await server.inShare([0x302]);
    const { status } = await query(await open('a'), INFO_TYPE.file, info.FILE_INFO.normalizedName);
    expect(status).toBe('STATUS_NOT_SUPPORTED');
  });
});

describe('QUERY_INFO of the file system, of security and of quotas', () => {
  it.each([
    ...([
      ['volume', 1, 24] as const,
      ['size', 3, 24],
      ['device', 4, 8],
      ['attribute', 5, 16],
      ['full size', 7, 32],
    ] as const),
    ['sector size', 11, 28] as const,
  ])('answers class %s', async (_name, fileInfoClass, room) => {
    const root = await open('', DIRECTORY);
    expect((await query(root, INFO_TYPE.fileSystem, fileInfoClass)).status).toBe('STATUS_SUCCESS');
    const { status } = await query(root, INFO_TYPE.fileSystem, fileInfoClass, room - 1);
    expect(status).toBe('STATUS_INFO_LENGTH_MISMATCH');
  });

  it.each([
    ['the quotas of users', INFO_TYPE.fileSystem, 6, 'STATUS_NOT_SUPPORTED'],
    ['object ids', INFO_TYPE.fileSystem, 8, 'STATUS_NOT_SUPPORTED'],
    ['another class', INFO_TYPE.fileSystem, 99, 'STATUS_INVALID_INFO_CLASS'],
    ['a list of quotas', INFO_TYPE.quota, 0, 'STATUS_NOT_SUPPORTED'],
    ['another type', 9, 1, 'STATUS_INVALID_PARAMETER'],
  ])('refuses %s', async (_title, infoType, fileInfoClass, status) => {
    expect((await query(await open('', DIRECTORY), infoType, fileInfoClass)).status).toBe(status);
  });

  it('answers owner, group and list of a file, or how much room they take', async () => {
    const fileId = await open('a');
    expect((await query(fileId, INFO_TYPE.security, 0)).status).toBe('STATUS_SUCCESS');
    expect((await query(fileId, INFO_TYPE.security, 0, 1)).status).toBe('STATUS_BUFFER_TOO_SMALL');
  });
});

describe('SET_INFO', () => {
  const rename = { replaceIfExists: 0, rootDirectory: 0n, fileName: 'another' };
  it.each([
    ['basic', info.FileBasicInformation.encode({ ...times(0n), fileAttributes: 0 }), 'SUCCESS'],
    ['rename', info.FileRenameInformation.encode(rename), 'SUCCESS'],
    ['renameEx', info.FileRenameInformationEx.encode({ ...rename, flags: 0 }), 'SUCCESS'],
    ['link', info.FileRenameInformation.encode(rename), 'NOT_SUPPORTED'],
    ['disposition', info.FileDispositionInformation.encode({ deletePending: 1 }), 'SUCCESS'],
    ['dispositionEx', info.FileDispositionInformationEx.encode({ flags: 1 }), 'SUCCESS'],
    ['position', info.FilePositionInformation.encode({ currentByteOffset: 9n }), 'SUCCESS'],
    ['mode', info.FileModeInformation.encode({ mode: 2 }), 'SUCCESS'],
    ['mode', info.FileModeInformation.encode({ mode: 1 }), 'INVALID_PARAMETER'],
    ['allocation', info.FileAllocationInformation.encode({ allocationSize: 9n }), 'SUCCESS'],
    ['endOfFile', info.FileEndOfFileInformation.encode({ endOfFile: 9n }), 'SUCCESS'],
    ['fullEa', Buffer.alloc(8), 'EAS_NOT_SUPPORTED'],
    ['validDataLength', Buffer.alloc(8), 'PRIVILEGE_NOT_HELD'],
    ['standard', Buffer.alloc(24), 'INVALID_INFO_CLASS'],
  ] as const)('of class %s is answered', async (name, buffer, status) => {
    const fileId = await open('a');
    expect(await set(fileId, INFO_TYPE.file, info.FILE_INFO[name], buffer)).toBe(`STATUS_${status}`);
    if (status !== 'SUCCESS') return;
    const short = buffer.subarray(0, 0);
    expect(await set(fileId, INFO_TYPE.file, info.FILE_INFO[name], short)).toBe('STATUS_INFO_LENGTH_MISMATCH');
  });

  it('sets each time, the change time, too, and leaves alone what is zero', async () => {
    const fileId = await open('a');
    const sent = {
      creationTime: 1n << 57n,
      lastAccessTime: 2n << 56n,
      lastWriteTime: 3n << 55n,
      changeTime: 5n << 54n,
    };
    const asked = [
      { ...sent, fileAttributes: 1 },
      { ...times(0n), fileAttributes: 0x80 },
      { ...times(0xffff_ffff_ffff_ffffn), fileAttributes: 0x2 },
      { ...times(0xffff_ffff_ffff_fffen), fileAttributes: 0 },
    ];
    const shown = [1, 0x80, 2, 2];
    for (const [i, value] of asked.entries()) {
      const buffer = info.FileBasicInformation.encode(value);
      expect(await set(fileId, INFO_TYPE.file, info.FILE_INFO.basic, buffer)).toBe('STATUS_SUCCESS');
      const { output } = await query(fileId, INFO_TYPE.file, info.FILE_INFO.basic);
      expect(info.FileBasicInformation.decode(output!)).toEqual({ ...sent, fileAttributes: shown[i] });
    }
  });

  it('sets neither quotas nor the label of a volume', async () => {
    const fileId = await open('', DIRECTORY);
    for (const infoType of [INFO_TYPE.fileSystem, INFO_TYPE.quota])
      expect(await set(fileId, infoType, 2, Buffer.alloc(8))).toBe('STATUS_NOT_SUPPORTED');
  });
});

describe('QUERY_DIRECTORY', () => {
  const LONG = 'a name of more than 8.3 characters';
  async function list(fileId: FileId, fileInformationClass: number, flags: number, fileName = '*', room = 65_536) {
    const fields = { fileInformationClass, flags, fileIndex: 0, fileId, fileName, outputBufferLength: room };
    const answer = await connection.request(QUERY_DIRECTORY, QueryDirectoryRequest, fields);
    if (answer.status !== 'STATUS_SUCCESS') return answer.status;
    const level = DIRECTORY_LEVELS.get(fileInformationClass)!;
    return readChain(answer.decode(QueryDirectoryResponse).output, { minimum: level.size, max: 100 }).map((entry) => {
      const values = level.decode(entry);
      const name = entry.subarray(level.size, level.size + values.fileNameLength).toString('utf16le');
      return { ...values, name };
    });
  }
  const names = (entries: Awaited<ReturnType<typeof list>>) =>
    typeof entries === 'string' ? entries : entries.map(({ name }) => name);

  it.each([...DIRECTORY_LEVELS.keys()])('lists names in level %i, as often as it begins again', async (level) => {
    await open(LONG);
    const root = await open('', DIRECTORY);
    expect(names(await list(root, level, 0))).toEqual(['.', '..', LONG]);
    expect(names(await list(root, level, 0))).toBe('STATUS_NO_MORE_FILES');
    const { restartScans, returnSingleEntry, reopen } = QUERY_DIRECTORY_FLAGS;
    expect(names(await list(root, level, restartScans | returnSingleEntry))).toEqual(['.']);
    expect(names(await list(root, level, returnSingleEntry))).toEqual(['..']);
    expect(names(await list(root, level, reopen, 'A NAME*'))).toEqual([LONG]);
    expect(names(await list(root, level, reopen, 'b*'))).toBe('STATUS_NO_MORE_FILES');
    expect(names(await list(root, level, reopen, '*', 8))).toBe('STATUS_INFO_LENGTH_MISMATCH');
  });

  it('refuses other levels, and what is no directory', async () => {
    expect(await list(await open('', DIRECTORY), 60, 0)).toBe('STATUS_INVALID_INFO_CLASS');
    expect(await list(await open('a'), 1, 0)).toBe('STATUS_INVALID_PARAMETER');
  });

  it.each([3, 37])('shows in level %i the short name that the file answers and is opened by', async (level) => {
    const file = await open(LONG);
    const [entry] = (await list(await open('', DIRECTORY), level, 0, LONG)) as Exclude<
      Awaited<ReturnType<typeof list>>,
      string
    >;
    const shortName = entry!.shortName.toString('utf16le', 0, entry!.shortNameLength);
    expect(shortName).toMatch(/^\w{6}~\w\.\w{3}$/);
    const { output } = await query(file, INFO_TYPE.file, info.FILE_INFO.alternateName);
    expect(info.FileNameInformation.decode(output!).fileName).toBe(shortName);
    const found = await query(await open(shortName, { createDisposition: 1 }), INFO_TYPE.file, info.FILE_INFO.name);
    expect(info.FileNameInformation.decode(found.output!).fileName).toBe(`\\${LONG}`);
  });
});

describe('IOCTL', () => {
  const UNKNOWN = { persistent: 0xffff_ffff_ffff_ffffn, volatile: 0xffff_ffff_ffff_ffffn };
  const control = async (ctlCode: number, fileId: FileId, input: Buffer = Buffer.alloc(0)) => {
    const sizes = { maxInputResponse: 0, maxOutputResponse: 4_096, output: Buffer.alloc(0) };
    const fields = { ctlCode, fileId, input, ...sizes, flags: IOCTL_IS_FSCTL };
    return (await connection.request(IOCTL, IoctlRequest, fields)).status;
  };

  it.each([
    ...(['srvRequestResumeKey', 'srvEnumerateSnapshots'] as const),
    ...(['setSparse', 'createOrGetObjectId', 'getCompression'] as const),
  ])('%s is answered', async (name) => {
    expect(await control(FSCTL[name], await open('a'))).toBe('STATUS_SUCCESS');
  });

  it.each([
    ['setZeroData', 'INVALID_PARAMETER'],
    ['queryAllocatedRanges', 'INVALID_PARAMETER'],
    ['lmrRequestResiliency', 'INVALID_DEVICE_REQUEST'],
    ['getReparsePoint', 'INVALID_DEVICE_REQUEST'],
    ['setReparsePoint', 'INVALID_DEVICE_REQUEST'],
    ['pipeTransceive', 'INVALID_DEVICE_REQUEST'],
    ['pipeWait', 'INVALID_PARAMETER'],
    ['queryNetworkInterfaceInfo', 'INVALID_PARAMETER'],
    ['validateNegotiateInfo', 'INVALID_PARAMETER'],
    ['dfsGetReferrals', 'INVALID_PARAMETER'],
  ] as const)('%s on a file, without an input, is refused by STATUS_%s', async (name, status) => {
    expect(await control(FSCTL[name], await open('a'))).toBe(`STATUS_${status}`);
  });

  it('concerns the connection where it names no open', async () => {
    expect(await control(FSCTL.queryNetworkInterfaceInfo, UNKNOWN)).toBe('STATUS_SUCCESS');
    expect(await control(FSCTL.dfsGetReferrals, UNKNOWN)).toBe('STATUS_NOT_FOUND');
    expect(await control(FSCTL.pipeWait, UNKNOWN)).toBe('STATUS_INVALID_DEVICE_REQUEST');
  });

  it('waits for no pipe: there is one, or there is none', async () => {
    await connection.connectTree('IPC$');
    const wait = (name: string) =>
      control(FSCTL.pipeWait, UNKNOWN, PipeWaitRequest.encode({ timeout: 0n, name, timeoutSpecified: 0 }));
    expect(await wait('SrvSvc')).toBe('STATUS_SUCCESS');
    expect(await wait('spoolss')).toBe('STATUS_OBJECT_NAME_NOT_FOUND');
    expect(await control(FSCTL.pipeWait, UNKNOWN)).toBe('STATUS_INVALID_PARAMETER');
  });
});

function times(each: bigint) {
  return { creationTime: each, lastAccessTime: each, lastWriteTime: each, changeTime: each };
}
