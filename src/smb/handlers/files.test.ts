/** CREATE, WRITE and CLOSE as clients send them in ways that their users do not see: names, contexts, compounds, times. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SHARE } from '../../../test/support/file-storage.ts';
import type { SmbConnection } from '../../../test/support/smb-connection.ts';
import { encodeBody } from '../../../test/support/smb-connection.ts';
import { create, TestSmbServer } from '../../../test/support/smb-server.ts';
import { filetimeFromTicks, TICKS_PER_SECOND } from '../../base/time.ts';
import { getFile } from '../../services/file/files.ts';
import { CLOSE_POSTQUERY_ATTRIB, CloseRequest, CloseResponse } from '../wire/close.ts';
import { CreateResponse } from '../wire/create.ts';
import type { FileId } from '../wire/file-id.ts';
import * as info from '../wire/file-info.ts';
import { FlushRequest } from '../wire/flush.ts';
import { HEADER_BYTES } from '../wire/header.ts';
import { INFO_TYPE, QueryInfoRequest, QueryInfoResponse } from '../wire/query-info.ts';
import { ReadRequest } from '../wire/read.ts';
import { SetInfoRequest } from '../wire/set-info.ts';
import { WriteRequest } from '../wire/write.ts';

const [CLOSE, FLUSH, READ, WRITE, QUERY_INFO, SET_INFO] = [6, 7, 8, 9, 16, 17];
const ALL_RIGHTS = 0x1f_01ff;
const OPEN = { createDisposition: 1 };
const RELATED = 4;
const PREVIOUS = { persistent: 0xffff_ffff_ffff_ffffn, volatile: 0xffff_ffff_ffff_ffffn };
const FREEZE = 0xffff_ffff_ffff_ffffn;

let server: TestSmbServer;
let connection: SmbConnection;
beforeEach(async () => {
  server = await TestSmbServer.start();
  connection = await server.inShare();
});
afterEach(() => server.stop());

const send = async (...asked: Parameters<typeof create>) => (await connection.send([create(...asked)]))[0]!;

async function open(...[name, fields, contexts]: Parameters<typeof create>): Promise<FileId> {
  const answer = await send(name, { desiredAccess: ALL_RIGHTS, ...fields }, contexts);
  expect(answer.status).toBe('STATUS_SUCCESS');
  return answer.decode(CreateResponse).fileId;
}

async function query(fileId: FileId): Promise<info.FileBasicInformation> {
  const answer = await connection.request(QUERY_INFO, QueryInfoRequest, {
    ...{ infoType: INFO_TYPE.file, fileInfoClass: info.FILE_INFO.basic, outputBufferLength: 100, fileId, flags: 0 },
    ...{ input: Buffer.alloc(0), additionalInformation: 0 },
  });
  return info.FileBasicInformation.decode(answer.decode(QueryInfoResponse).output);
}

/** A second after what was done before. */
async function write(fileId: FileId): Promise<void> {
  await server.storage.partition.clock.advance(TICKS_PER_SECOND);
  const answer = await connection.request(WRITE, WriteRequest, {
    ...{ data: Buffer.from('abc'), offset: 0n, fileId, channel: 0, remainingBytes: 0, flags: 0 },
    writeChannelInfo: Buffer.alloc(0),
  });
  expect(answer.status).toBe('STATUS_SUCCESS');
}

async function set(fileId: FileId, fileInfoClass: number, buffer: Buffer): Promise<void> {
  const fields = { infoType: INFO_TYPE.file, fileInfoClass, buffer, additionalInformation: 0, fileId };
  expect((await connection.request(SET_INFO, SetInfoRequest, fields)).status).toBe('STATUS_SUCCESS');
}

const close = async (fileId: FileId) =>
  (await connection.request(CLOSE, CloseRequest, { flags: CLOSE_POSTQUERY_ATTRIB, fileId })).decode(CloseResponse);

/** As REST shows it. */
async function storedLastWrite(path: string): Promise<bigint> {
  const { file } = await getFile(server.storage, { share: SHARE, path, leaseId: undefined, snapshot: undefined });
  return filetimeFromTicks(file.times.lastWrite);
}

describe('A name', () => {
  it('may have slashes between its parts', async () => {
    await open('d', { createOptions: 1 });
    const one = await send('d/file');
    expect((await send('d\\file', OPEN)).status).toBe('STATUS_SUCCESS');
    expect(one.status).toBe('STATUS_SUCCESS');
    expect((await send('/d', OPEN)).status).toBe('STATUS_OBJECT_NAME_INVALID');
    expect((await send('d/../d', OPEN)).status).toBe('STATUS_OBJECT_PATH_SYNTAX_BAD');
  });

  it('may have the characters that clients write for those that SMB reserves', async () => {
    await open('a\uf03ab\uf022');
    expect((await send('A\uf03aB\uf022', OPEN)).status).toBe('STATUS_SUCCESS');
    const rename = { replaceIfExists: 0, rootDirectory: 0n, fileName: 'what\uf025' };
    await set(await open('c'), info.FILE_INFO.rename, info.FileRenameInformation.encode(rename));
    expect((await send('what\uf025', OPEN)).status).toBe('STATUS_SUCCESS');
  });

  it.each(['a::$DATA', 'a:stream', 'a:stream:$DATA', '$Extend\\$Quota:$Q:$INDEX_ALLOCATION'])(
    'of a stream is invalid: %s',
    async (name) => {
      await open('a');
      expect((await send(name, OPEN)).status).toBe('STATUS_OBJECT_NAME_INVALID');
    },
  );
});

describe('A create context', () => {
  it.each([
    ['x', 'INVALID_PARAMETER'],
    ['xxx', 'INVALID_PARAMETER'],
    ['xxxx', 'SUCCESS'],
    ['a name of 20 letters', 'SUCCESS'],
    ['ExtA', 'EAS_NOT_SUPPORTED'],
  ])('of the name %j is answered by STATUS_%s', async (name, status) => {
    expect((await send('a', {}, [{ name, data: Buffer.alloc(0) }])).status).toBe(`STATUS_${status}`);
  });
});

describe('The answers of a compound', () => {
  it('are padded to multiples of 8 bytes, the last one, too', async () => {
    await write(await open('a'));
    const read = encodeBody(ReadRequest, {
      ...{ padding: 0, flags: 0, length: 3, offset: 0n, fileId: PREVIOUS, minimumCount: 1, channel: 0 },
      ...{ remainingBytes: 0, readChannelInfo: Buffer.alloc(0) },
    });
    const answers = await connection.send([create('a'), { command: READ, body: read, header: { flags: RELATED } }]);
    expect(answers.map(({ status }) => status)).toEqual(['STATUS_SUCCESS', 'STATUS_SUCCESS']);
    expect(answers[1]!.bytes.length - HEADER_BYTES).toBe(24);
    const alone = await connection.send([
      { command: READ, body: encodeBody(ReadRequest, { ...ReadRequest.decode(read), fileId: await open('a') }) },
    ]);
    expect(alone[0]!.bytes.length - HEADER_BYTES).toBe(19);
  });
});

describe('The time of the last write', () => {
  it('of a write after the first shows by the close, as the time of the close; REST shows each at once', async () => {
    const fileId = await open('a');
    await write(fileId);
    await connection.request(FLUSH, FlushRequest, { fileId });
    const { lastWriteTime: first } = await query(fileId);
    expect(first).toBe(await storedLastWrite('a'));
    await write(fileId);
    expect((await query(fileId)).lastWriteTime).toBe(first);
    const second = await storedLastWrite('a');
    expect(second).toBeGreaterThan(first);
    await server.storage.partition.clock.advance(TICKS_PER_SECOND);
    const { lastWriteTime } = await close(fileId);
    expect(lastWriteTime).toBeGreaterThan(second);
    expect(await storedLastWrite('a')).toBe(lastWriteTime);
  });

  it.each([
    ['FileBasicInformation', info.FILE_INFO.basic, basic({})],
    ['FileEndOfFileInformation', info.FILE_INFO.endOfFile, info.FileEndOfFileInformation.encode({ endOfFile: 3n })],
    [
      'FileAllocationInformation',
      info.FILE_INFO.allocation,
      info.FileAllocationInformation.encode({ allocationSize: 3n }),
    ],
  ])('shows when %s is set', async (_name, fileInfoClass, buffer) => {
    const fileId = await open('a');
    await write(fileId);
    await connection.request(FLUSH, FlushRequest, { fileId });
    await write(fileId);
    await set(fileId, fileInfoClass, buffer);
    expect((await query(fileId)).lastWriteTime).toBe(await storedLastWrite('a'));
  });

  it('of a client that is disconnected is that of the end of its open', async () => {
    const other = connection;
    const fileId = await open('a');
    await write(fileId);
    await connection.request(FLUSH, FlushRequest, { fileId });
    await write(fileId);
    const stored = await storedLastWrite('a');
    connection = await server.inShare();
    await server.storage.partition.clock.advance(TICKS_PER_SECOND);
    other.close();
    await expect.poll(() => storedLastWrite('a')).toBeGreaterThan(stored);
  });

  it('and that of the change stay while they are frozen, and not after', async () => {
    const fileId = await open('a');
    const { lastWriteTime, changeTime } = await query(fileId);
    await set(fileId, info.FILE_INFO.basic, basic({ lastWriteTime: FREEZE, changeTime: FREEZE }));
    await write(fileId);
    expect(await query(fileId)).toMatchObject({ lastWriteTime, changeTime });
    await set(fileId, info.FILE_INFO.basic, basic({ lastWriteTime: FREEZE - 1n, changeTime: FREEZE - 1n }));
    expect(await query(fileId)).toMatchObject({ lastWriteTime, changeTime });
    await write(fileId);
    const closed = await close(fileId);
    expect(closed.lastWriteTime).toBeGreaterThan(lastWriteTime);
    expect(closed.changeTime).toBeGreaterThan(changeTime);
  });

  it('can be set up to the year 9999, the last one that REST can name', async () => {
    const fileId = await open('a');
    const lastWriteTime = 0x24c8_5a5e_d1c0_3fffn;
    await set(fileId, info.FILE_INFO.basic, basic({ lastWriteTime }));
    expect((await query(fileId)).lastWriteTime).toBe(lastWriteTime);
    const later = set(fileId, info.FILE_INFO.basic, basic({ lastWriteTime: lastWriteTime + 1n }));
    await expect(later).rejects.toThrow();
  });
});

function basic(times: Partial<info.FileBasicInformation>): Buffer {
  const zero = { creationTime: 0n, lastAccessTime: 0n, lastWriteTime: 0n, changeTime: 0n, fileAttributes: 0 };
  return info.FileBasicInformation.encode({ ...zero, ...times });
}
