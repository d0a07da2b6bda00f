import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NO_METADATA, openShare, SHARE } from '../../test/support/file-storage.ts';
import { encodeBody, SmbConnection } from '../../test/support/smb-connection.ts';
import { type Log, silentLog } from '../base/log.ts';
import type { KnownAccount } from '../services/accounts/accounts.ts';
import type { Storage } from '../services/common/storage.ts';
import { listHandles } from '../services/file/handle-lists.ts';
import { createShare, deleteShare } from '../services/file/shares.ts';
import { CommandMetrics } from './command-metrics.ts';
import { SmbServer } from './server.ts';
import { CloseRequest } from './wire/close.ts';
import { CreateRequest } from './wire/create.ts';
import { EmptyBody } from './wire/empty.ts';
import { FSCTL, IoctlRequest } from './wire/ioctl.ts';
import { ValidateNegotiateRequest } from './wire/negotiate.ts';
import { QueryInfoRequest } from './wire/query-info.ts';

const OPEN_IF = 3;
const PREVIOUS = { persistent: 0xffff_ffff_ffff_ffffn, volatile: 0xffff_ffff_ffff_ffffn };
const RELATED = 4;

let accounts: Map<string, KnownAccount>;
let storage: Storage;
let server: SmbServer;
let url: string;
let lines: { readonly level: string; readonly message: string; readonly fields: object }[];
const metrics = new CommandMetrics();
const connections: SmbConnection[] = [];

async function startServer(options: Partial<ConstructorParameters<typeof SmbServer>[0]> = {}): Promise<void> {
  server = new SmbServer({
    ...{
      accounts: { find: (name) => accounts.get(name) },
      storageFor: (_account, granted) => ({ ...storage, granted }),
    },
    ...{ log: recordingLog(), metrics, now: () => 638_000_000_000_000_000n, isEncryptionRequired: false },
    ...options,
    limits: { wrongPasswordMilliseconds: 1, ...options.limits },
  });
  url = `smb://127.0.0.1:${await server.listen(0, '127.0.0.1')}`;
}

function recordingLog(): Log {
  const write = (level: string) => (fields: object | string, message?: string) =>
    void lines.push(
      typeof fields === 'string' ? { level, message: fields, fields: {} } : { level, message: message!, fields },
    );
  return {
    ...silentLog,
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    isLevelEnabled: () => true,
  };
}

async function connect(): Promise<SmbConnection> {
  const connection = await SmbConnection.open(url);
  connections.push(connection);
  return connection;
}

async function signedIn(securityMode = 1): Promise<SmbConnection> {
  const connection = await connect();
  await connection.negotiate();
  const answer = await connection.signIn('Mine', 'b25l', { securityMode });
  expect(answer.status).toBe('STATUS_SUCCESS');
  return connection;
}

async function inShare(): Promise<SmbConnection> {
  const connection = await signedIn();
  expect((await connection.connectTree(SHARE)).status).toBe('STATUS_SUCCESS');
  return connection;
}

const createFile = (name: string) =>
  encodeBody(CreateRequest, {
    ...{
      securityFlags: 0,
      requestedOplockLevel: 9,
      impersonationLevel: 2,
      smbCreateFlags: 0n,
      desiredAccess: 0x12_019f,
    },
    ...{ fileAttributes: 0, shareAccess: 7, createDisposition: OPEN_IF, createOptions: 0, name },
    createContexts: Buffer.alloc(0),
  });
const closeFile = (fileId = PREVIOUS) => encodeBody(CloseRequest, { flags: 0, fileId });

beforeEach(async () => {
  lines = [];
  accounts = new Map([['mine', { id: 1n, name: 'mine', keys: ['b25l', 'dHdv'] }]]);
  ({ storage } = await openShare());
});

afterEach(async () => {
  for (const connection of connections.splice(0)) connection.close();
  await server.close();
  expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
});

describe('A session', () => {
  it('is that of an account by either of its keys, in any case of its name', async () => {
    await startServer();
    for (const key of ['b25l', 'dHdv']) {
      const connection = await connect();
      await connection.negotiate();
      expect((await connection.signIn('MINE', key)).status).toBe('STATUS_SUCCESS');
    }
    expect(lines.filter(({ message }) => message === 'SMB session began')).toHaveLength(2);
  });

  it('is refused with a wrong password, and the log says so', async () => {
    await startServer();
    const connection = await connect();
    await connection.negotiate();
    expect((await connection.signIn('mine', 'wrong')).status).toBe('STATUS_LOGON_FAILURE');
    expect((await connection.request(3, EmptyBody, {})).status).toBe('STATUS_USER_SESSION_DELETED');
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', message: 'SMB sign-in refused' }));
  });

  it.each([
    ['is removed', () => accounts.delete('mine')],
    ['has another key', () => accounts.set('mine', { id: 1n, name: 'mine', keys: ['dHdv'] })],
    ['is another one of the same name', () => accounts.set('mine', { id: 2n, name: 'mine', keys: ['b25l'] })],
  ])('ends when its account %s', async (_title, change) => {
    await startServer();
    const connection = await inShare();
    change();
    expect((await connection.request(4, EmptyBody, {})).status).toBe('STATUS_USER_SESSION_DELETED');
    expect((await connection.request(2, EmptyBody, {})).status).toBe('STATUS_USER_SESSION_DELETED');
  });

  it('goes on when the other key of its account changes', async () => {
    await startServer();
    const connection = await inShare();
    accounts.set('mine', { id: 1n, name: 'mine', keys: ['b25l', 'bmV3'] });
    expect((await connection.request(4, EmptyBody, {})).status).toBe('STATUS_SUCCESS');
  });

  it('takes no unsigned or wrongly signed message once the client has asked for signatures', async () => {
    await startServer();
    const connection = await signedIn(3);
    const unsigned = { command: 2, body: encodeBody(EmptyBody, {}), sign: false };
    expect((await connection.send([unsigned]))[0]!.status).toBe('STATUS_ACCESS_DENIED');
    const wrong = connection.encode([{ ...unsigned, sign: true }]);
    wrong[50]! ^= 1;
    connection.sendPacket(wrong);
    const refused = (await connection.receive())![0]!;
    expect(refused.status).toBe('STATUS_ACCESS_DENIED');
    expect(connection.signer!.verify(refused.bytes)).toBe(true);
    const right = (await connection.send([{ ...unsigned, sign: true }]))[0]!;
    expect(right.status).toBe('STATUS_SUCCESS');
    expect(connection.signer!.verify(right.bytes)).toBe(true);
  });

  it('is refused to a client that cannot encrypt where encryption is required', async () => {
    await startServer({ isEncryptionRequired: true });
    const connection = await connect();
    await connection.negotiate([0x210]);
    expect((await connection.signIn('mine', 'b25l')).status).toBe('STATUS_ACCESS_DENIED');
  });

  it('ends with LOGOFF', async () => {
    await startServer();
    const connection = await inShare();
    expect((await connection.request(2, EmptyBody, {})).status).toBe('STATUS_SUCCESS');
    const refused = await connection.connectTree(SHARE);
    expect(refused.status).toBe('STATUS_USER_SESSION_DELETED');
    expect(connection.signer!.verify(refused.bytes)).toBe(true);
  });
});

describe('A tree', () => {
  it('is a share of the account, in any case, and IPC$', async () => {
    await startServer();
    const connection = await signedIn();
    expect((await connection.connectTree(SHARE.toUpperCase())).status).toBe('STATUS_SUCCESS');
    expect((await connection.connectTree('ipc$')).status).toBe('STATUS_SUCCESS');
    expect((await connection.connectTree('others')).status).toBe('STATUS_BAD_NETWORK_NAME');
    expect((await connection.connectTree('a\\b')).status).toBe('STATUS_BAD_NETWORK_NAME');
  });

  it('of a share that is deleted is gone, and is not that of another share of the same name', async () => {
    await startServer();
    const connection = await inShare();
    await deleteShare(storage, { share: SHARE, leaseId: undefined });
    const create = { command: 5, body: createFile('a') };
    expect((await connection.send([create]))[0]!.status).toBe('STATUS_NETWORK_NAME_DELETED');
    await createShare(storage, { share: SHARE, metadata: NO_METADATA, quota: undefined, tier: undefined });
    expect((await connection.send([create]))[0]!.status).toBe('STATUS_NETWORK_NAME_DELETED');
  });

  it('does not work after TREE_DISCONNECT', async () => {
    await startServer();
    const connection = await inShare();
    expect((await connection.request(4, EmptyBody, {})).status).toBe('STATUS_SUCCESS');
    expect((await connection.request(4, EmptyBody, {})).status).toBe('STATUS_NETWORK_NAME_DELETED');
  });
});

describe('A compound', () => {
  const related = { flags: RELATED };

  it('hands the open of its CREATE to the messages that are related', async () => {
    await startServer();
    const connection = await inShare();
    const answers = await connection.send([
      { command: 5, body: createFile('a') },
      { command: 6, body: closeFile(), header: related },
    ]);
    expect(answers.map(({ status }) => status)).toEqual(['STATUS_SUCCESS', 'STATUS_SUCCESS']);
    expect(answers[0]!.bytes.length % 8).toBe(0);
    for (const { bytes } of answers) expect(connection.signer!.verify(bytes)).toBe(true);
  });

  it('fails as a whole with the status of its CREATE', async () => {
    await startServer();
    const connection = await inShare();
    const answers = await connection.send([
      { command: 5, body: createFile('none\\a') },
      { command: 6, body: closeFile(), header: related },
      { command: 6, body: closeFile(), header: related },
    ]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(['STATUS_OBJECT_PATH_NOT_FOUND']));
  });

  it('goes on after a failure that is not that of its CREATE', async () => {
    await startServer();
    const connection = await inShare();
    const unknownClass = encodeBody(QueryInfoRequest, {
      ...{ infoType: 1, fileInfoClass: 200, outputBufferLength: 100, input: Buffer.alloc(0) },
      ...{ additionalInformation: 0, flags: 0, fileId: PREVIOUS },
    });
    const answers = await connection.send([
      { command: 5, body: createFile('a') },
      { command: 16, body: unknownClass, header: related },
      { command: 6, body: closeFile(), header: related },
    ]);
    expect(answers.map(({ status }) => status)).toEqual([
      'STATUS_SUCCESS',
      'STATUS_INVALID_INFO_CLASS',
      'STATUS_SUCCESS',
    ]);
  });

  it('that begins with a related message is invalid', async () => {
    await startServer();
    const connection = await inShare();
    const answers = await connection.send([
      { command: 5, body: createFile('a'), header: related },
      { command: 6, body: closeFile(), header: related },
    ]);
    expect(answers.map(({ status }) => status)).toEqual(['STATUS_INVALID_PARAMETER', 'STATUS_INVALID_PARAMETER']);
  });
});

describe('VALIDATE_NEGOTIATE_INFO', () => {
  const validate = (dialects: readonly number[]) => {
    const list = Buffer.alloc(2 * dialects.length);
    for (const [index, dialect] of dialects.entries()) list.writeUInt16LE(dialect, 2 * index);
    const input = ValidateNegotiateRequest.encode({
      ...{
        capabilities: 0x7f,
        guid: Buffer.alloc(16, 9),
        securityMode: 1,
        dialectCount: dialects.length,
        dialects: list,
      },
    });
    return { ...ioctlFields, ctlCode: FSCTL.validateNegotiateInfo, input, maxOutputResponse: 24 };
  };
  const ioctlFields = { fileId: PREVIOUS, output: Buffer.alloc(0), maxInputResponse: 0, flags: 1 };

  it('confirms what was negotiated, and ends the connection of a client that negotiated something else', async () => {
    await startServer();
    const connection = await connect();
    await connection.negotiate([0x210, 0x300]);
    await connection.signIn('mine', 'b25l');
    await connection.connectTree('IPC$');
    const answer = await connection.request(11, IoctlRequest, validate([0x210, 0x300]));
    expect(answer.status).toBe('STATUS_SUCCESS');
    expect(connection.signer!.verify(answer.bytes)).toBe(true);
    await expect(connection.request(11, IoctlRequest, validate([0x210]))).rejects.toThrow('ended');
  });

  it('refuses referrals: there is no distributed file system', async () => {
    await startServer();
    const connection = await signedIn();
    await connection.connectTree('IPC$');
    const request = { ...ioctlFields, ctlCode: FSCTL.dfsGetReferrals, input: Buffer.alloc(4), maxOutputResponse: 100 };
    expect((await connection.request(11, IoctlRequest, request)).status).toBe('STATUS_NOT_FOUND');
  });
});

describe('A bad packet', () => {
  const bad: [string, (connection: SmbConnection) => void][] = [
    ['of another protocol', (connection) => connection.sendBytes(Buffer.from('GET / HTTP/1.1\r\n\r\n'))],
    ['that is too long before the sign-in', (connection) => connection.sendBytes(Buffer.from('00ffffff', 'hex'))],
    ['shorter than a header', (connection) => connection.sendPacket(Buffer.from('fe534d4240', 'hex'))],
    [
      'with a MessageId that was not granted',
      (connection) =>
        connection.sendPacket(
          connection.encode([{ command: 13, body: encodeBody(EmptyBody, {}), header: { messageId: 999n } }]),
        ),
    ],
    [
      'that is encrypted for no session',
      (connection) => connection.sendPacket(Buffer.concat([Buffer.from('fd534d42', 'hex'), Buffer.alloc(80)])),
    ],
    [
      'of SMB1',
      (connection) => connection.sendPacket(Buffer.concat([Buffer.from('ff534d4273', 'hex'), Buffer.alloc(40)])),
    ],
    [
      'that is an answer',
      (connection) =>
        connection.sendPacket(
          connection.encode([{ command: 13, body: encodeBody(EmptyBody, {}), header: { flags: 1 } }]),
        ),
    ],
  ];
  it.each(bad)('%s ends its connection, and no other', async (_title, send) => {
    await startServer();
    const [other, connection] = [await inShare(), await connect()];
    await connection.negotiate();
    send(connection);
    await connection.ended();
    expect((await other.echo()).status).toBe('STATUS_SUCCESS');
  });

  it('whose body is not what its lengths say is an invalid parameter', async () => {
    await startServer();
    const connection = await inShare();
    for (const body of [Buffer.alloc(2), Buffer.from('3900', 'hex'), Buffer.alloc(60, 0xff)]) {
      expect((await connection.send([{ command: 5, body }]))[0]!.status).toBe('STATUS_INVALID_PARAMETER');
    }
    expect((await connection.send([{ command: 99, body: Buffer.alloc(4) }]))[0]!.status).toBe(
      'STATUS_INVALID_PARAMETER',
    );
  });
});

describe('Limits', () => {
  it('end a client that does not sign in', async () => {
    await startServer({ limits: { signInMilliseconds: 1 } });
    const [silent, busy] = [await connect(), await connect()];
    await busy.negotiate();
    const keepTrying = async () => {
      while (!busy.isClosed) await busy.echo().catch(() => undefined);
    };
    await Promise.all([silent.ended(), keepTrying()]);
  });

  it('end a client that stalls within a packet, though it has signed in', async () => {
    await startServer({ limits: { stalledMilliseconds: 1 } });
    const [connection, idle] = [await signedIn(), await signedIn()];
    connection.sendBytes(Buffer.from('0000', 'hex'));
    await connection.ended();
    expect((await idle.echo()).status).toBe('STATUS_SUCCESS');
  });

  it('hold for connections of one address, sessions, trees and opens', async () => {
    const limits = {
      connectionsPerAddressBeforeSignIn: 2,
      sessionsPerConnection: 1,
      treesPerSession: 2,
      opensPerSession: 1,
    };
    await startServer({ limits });
    const connection = await inShare();
    expect((await connection.connectTree(SHARE)).status).toBe('STATUS_SUCCESS');
    const tree = connection.treeId;
    expect((await connection.connectTree(SHARE)).status).toBe('STATUS_INSUFFICIENT_RESOURCES');
    connection.treeId = tree;
    expect((await connection.send([{ command: 5, body: createFile('a') }]))[0]!.status).toBe('STATUS_SUCCESS');
    expect((await connection.send([{ command: 5, body: createFile('b') }]))[0]!.status).toBe(
      'STATUS_TOO_MANY_OPENED_FILES',
    );
    const { sessionId } = connection;
    connection.sessionId = 0n;
    expect((await connection.signIn('mine', 'b25l')).status).toBe('STATUS_INSUFFICIENT_RESOURCES');
    connection.sessionId = sessionId;
    await connect();
    await connect();
    await (await connect()).ended();
    expect((await connection.echo()).status).toBe('STATUS_SUCCESS');
  });

  it('let a client go on that sends more than may run at once', async () => {
    await startServer({ limits: { runningRequests: 1, outstandingBytes: 100 } });
    const connection = await inShare();
    const packets = Array.from({ length: 8 }, () => connection.encode([{ command: 5, body: createFile('a') }]));
    for (const packet of packets) connection.sendPacket(packet);
    for (const _packet of packets) expect((await connection.receive())![0]!.status).toBe('STATUS_SUCCESS');
  });
});

describe('The end of the server', () => {
  const countHandles = async () => {
    const input = { share: SHARE, path: '', marker: undefined, resultsMax: undefined, isRecursive: true };
    return (await listHandles(storage, input as never)).handles.length;
  };

  it('ends connections and closes opens', async () => {
    await startServer();
    const connection = await inShare();
    await connection.send([{ command: 5, body: createFile('a') }]);
    expect(await countHandles()).toBe(1);
    await server.close();
    await connection.ended();
    expect(await countHandles()).toBe(0);
    expect(lines).toContainEqual(expect.objectContaining({ message: 'SMB session ended' }));
  });
});
