/** What a client can make the server hold, and for how long; server.test.ts has sessions, trees and opens. */
import { afterEach, expect, it, vi } from 'vitest';
import type { SmbConnection } from '../../test/support/smb-connection.ts';
import { encodeBody } from '../../test/support/smb-connection.ts';
import { openFile, writeFile } from '../../test/support/smb-files.ts';
import { ACCOUNT, TestSmbServer } from '../../test/support/smb-server.ts';
import { type Log, silentLog } from '../base/log.ts';
import { EmptyBody } from './wire/empty.ts';
import { ReadRequest } from './wire/read.ts';

const LOGOFF = 2;
const ECHO = 13;
const READ = 8;
const HOUR = 3_600_000;

let server: TestSmbServer;
const ends: string[] = [];
const refusals: string[] = [];
const log: Log = Object.assign(Object.create(silentLog), {
  warn: (_fields: object, message: string) => {
    if (message === 'SMB sign-in refused') refusals.push(message);
  },
  debug: ({ reason }: { readonly reason: string }, message: string) => {
    if (message === 'SMB connection ended') ends.push(reason);
  },
});

afterEach(async () => {
  await server.stop();
  ends.length = 0;
  refusals.length = 0;
});

const echoes = (count: number) =>
  Array.from({ length: count }, () => ({ command: ECHO, body: encodeBody(EmptyBody, {}) }));
const readRequest = (fileId: Awaited<ReturnType<typeof openFile>>, length: number): ReadRequest => ({
  ...{ padding: 0, flags: 0, length, offset: 0n, fileId, minimumCount: 0, channel: 0, remainingBytes: 0 },
  readChannelInfo: Buffer.alloc(0),
});

it('There are so many connections and no more', async () => {
  server = await TestSmbServer.start({ connections: 2 });
  const [first] = [await server.signIn(), await server.signIn()];
  await (await server.connect()).ended();
  expect((await first.echo()).status).toBe('STATUS_SUCCESS');
});

it('A session has so many connections and no more', async () => {
  server = await TestSmbServer.start({ channelsPerSession: 2 });
  const { sessionId, signer } = await server.signIn();
  const bind = async () => {
    const other = await server.connect();
    await other.negotiate();
    Object.assign(other, { sessionId, signer });
    return (await other.signIn(ACCOUNT.name, ACCOUNT.keys[0]!, { flags: 1 })).status;
  };
  expect(await bind()).toBe('STATUS_SUCCESS');
  expect(await bind()).toBe('STATUS_INSUFFICIENT_RESOURCES');
});

it('A compound has so many messages and no more', async () => {
  server = await TestSmbServer.start({ compoundMessages: 3 });
  const connection = await server.signIn();
  expect(await connection.send(echoes(3))).toHaveLength(3);
  await expect(connection.send(echoes(4))).rejects.toThrow('ended');
});

it('A client has so many credits and no more', async () => {
  server = await TestSmbServer.start({ credits: 5 });
  const connection = await server.signIn();
  for (let i = 0; i < 4; i++) await connection.request(ECHO, EmptyBody, {}, { credits: 100 });
  expect((await connection.request(ECHO, EmptyBody, {}, { credits: 100 })).header.credits).toBe(1);
  const beyond = { messageId: connection.nextMessageId + 5n };
  await expect(connection.request(ECHO, EmptyBody, {}, beyond)).rejects.toThrow('ended');
});

it('A packet and a transfer have so many bytes and no more', async () => {
  server = await TestSmbServer.start({ transferBytes: 65_536, transactBytes: 65_536 });
  const connection = await server.inShare();
  const fileId = await openFile(connection, 'f');
  expect((await connection.request(READ, ReadRequest, readRequest(fileId, 65_536))).status).toBe('STATUS_END_OF_FILE');
  const tooLong = await connection.request(READ, ReadRequest, readRequest(fileId, 65_537), { creditCharge: 2 });
  expect(tooLong.status).toBe('STATUS_INVALID_PARAMETER');
  connection.sendBytes(Buffer.from('00100000', 'hex'));
  await connection.ended();
});

it('A payload that the CreditCharge does not pay for is invalid', async () => {
  server = await TestSmbServer.start();
  const connection = await server.inShare();
  const fileId = await openFile(connection, 'f');
  const answer = await connection.request(READ, ReadRequest, readRequest(fileId, 65_537));
  expect(answer.status).toBe('STATUS_INVALID_PARAMETER');
});

it('A client that does not read its answers is disconnected', async () => {
  server = await TestSmbServer.start({}, log);
  const [connection, other] = [await server.inShare(), await server.signIn()];
  const fileId = await openFile(connection, 'f');
  await writeFile(connection, fileId, 0, Buffer.alloc(60_000, 'x'));
  connection.stopReading();
  await sendReads(connection, fileId);
  server.changeLimits({ stalledMilliseconds: 1 });
  await vi.waitFor(() => expect(ends).toContain('the client stalled'), 20_000);
  server.changeLimits({ stalledMilliseconds: HOUR });
  expect((await other.echo()).status).toBe('STATUS_SUCCESS');
});

/** More than the buffers of the system take. */
async function sendReads(connection: SmbConnection, fileId: Awaited<ReturnType<typeof openFile>>): Promise<void> {
  const body = encodeBody(ReadRequest, readRequest(fileId, 60_000));
  const first = connection.nextMessageId;
  for (let i = 0n; i < 200n; i++) {
    connection.sendPacket(connection.encode([{ command: READ, body, header: { messageId: first + i, credits: 200 } }]));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

it('A connection whose last session has ended is closed after a while', async () => {
  server = await TestSmbServer.start();
  const [connection, other] = [await server.signIn(), await server.signIn()];
  expect((await connection.request(LOGOFF, EmptyBody, {})).status).toBe('STATUS_SUCCESS');
  server.changeLimits({ idleMilliseconds: 1 });
  await connection.ended();
  expect((await other.echo()).status).toBe('STATUS_SUCCESS');
});

it('After too many wrong passwords of an address even a right one is not tried at once', async () => {
  server = await TestSmbServer.start({ wrongPasswordsAtOnce: 3, wrongPasswordMilliseconds: HOUR }, log);
  const signedIn = await server.signIn();
  const late = await server.connect();
  await late.negotiate();
  for (let i = 1; i <= 3; i++) {
    const guess = await server.connect();
    await guess.negotiate();
    guess.signIn(ACCOUNT.name, 'wrong').catch(() => undefined);
    await vi.waitFor(() => expect(refusals).toHaveLength(i));
  }
  const outcome = expect(late.signIn(ACCOUNT.name, ACCOUNT.keys[0]!)).rejects.toThrow('ended');
  for (let i = 0; i < 20; i++) expect((await signedIn.echo()).status).toBe('STATUS_SUCCESS');
  server.changeLimits({ signInMilliseconds: 1 });
  await outcome;
});
