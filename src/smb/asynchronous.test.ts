/** Answers that come late: STATUS_PENDING, the answer after it, and CANCEL. The handler of CHANGE_NOTIFY is one that waits. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { SmbAnswer, SmbConnection } from '../../test/support/smb-connection.ts';
import { encodeBody } from '../../test/support/smb-connection.ts';
import { create, TestSmbServer } from '../../test/support/smb-server.ts';
import type { OpenContext } from './command.ts';
import type { SmbLimits } from './limits.ts';
import { SmbError } from './statuses.ts';
import { ChangeNotifyRequest, ChangeNotifyResponse } from './wire/change-notify.ts';
import { CreateResponse } from './wire/create.ts';
import { EmptyBody } from './wire/empty.ts';
import type { FileId } from './wire/file-id.ts';
import { HEADER_FLAG } from './wire/header.ts';

/** The requests that wait, in the order of their arrival. */
const waiting: { readonly signal: AbortSignal; notify(output: string): void }[] = [];
let announces: boolean;

vi.mock('./handlers/not-supported.ts', () => ({
  notSupported: (_request: ChangeNotifyRequest, { signal, goAsync }: OpenContext) => {
    if (announces) goAsync();
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new SmbError('CANCELLED')));
      waiting.push({ signal, notify: (output) => resolve({ output: Buffer.from(output) }) });
    });
  },
}));

const CHANGE_NOTIFY = 15;
const CANCEL = 12;
const LOGOFF = 2;
const ECHO = 13;

let server: TestSmbServer;
let connection: SmbConnection;
let fileId: FileId;

beforeEach(() => {
  announces = true;
});
afterEach(async () => {
  await server.stop();
  waiting.length = 0;
});

async function start(limits: Partial<SmbLimits> = {}): Promise<void> {
  server = await TestSmbServer.start(limits);
  connection = await server.inShare();
  const [created] = await connection.send([create('a')]);
  fileId = created!.decode(CreateResponse).fileId;
}

const notifyBody = () =>
  encodeBody(ChangeNotifyRequest, { flags: 0, outputBufferLength: 100, fileId, completionFilter: 1 });

async function beginWaiting(): Promise<SmbAnswer> {
  const [interim] = await connection.send([{ command: CHANGE_NOTIFY, body: notifyBody() }]);
  return interim!;
}

function cancel(target: { readonly asyncId: bigint } | { readonly messageId: bigint }, change = (_: Buffer) => {}) {
  const flags = HEADER_FLAG.signed | ('asyncId' in target ? HEADER_FLAG.async : 0);
  const header = { messageId: 0n, ...target, flags };
  const packet = connection.encode([{ command: CANCEL, body: encodeBody(EmptyBody, {}), header }]);
  change(packet);
  connection.sendPacket(packet);
}

const receive = async (): Promise<SmbAnswer> => (await connection.receive())![0]!;

describe('While as much runs as may', () => {
  const order = async () => {
    announces = false;
    connection.sendPacket(connection.encode([{ command: CHANGE_NOTIFY, body: notifyBody() }]));
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    connection.sendPacket(connection.encode([{ command: ECHO, body: encodeBody(EmptyBody, {}) }]));
    // The server has read what it reads: another connection has been answered since.
    const other = await server.signIn();
    for (let i = 0; i < 3; i++) await other.echo();
    waiting[0]!.notify('changes');
    return [(await receive()).header.command, (await receive()).header.command];
  };

  it('a connection is not read: what it sends next waits', async () => {
    await start({ runningRequests: 1 });
    expect(await order()).toEqual([CHANGE_NOTIFY, ECHO]);
  });

  it('nor while requests may answer as many bytes as may be in memory', async () => {
    await start({ outstandingBytes: 150 });
    expect(await order()).toEqual([CHANGE_NOTIFY, ECHO]);
  });

  it('others are', async () => {
    await start();
    expect(await order()).toEqual([ECHO, CHANGE_NOTIFY]);
  });
});

describe('An answer that comes late', () => {
  it('is announced by the server if its handler has not done so', async () => {
    announces = false;
    await start({ interimMilliseconds: 0 });
    const { header, status } = await beginWaiting();
    expect(status).toBe('STATUS_PENDING');
    cancel({ asyncId: header.asyncId });
    expect(await receive()).toMatchObject({ status: 'STATUS_CANCELLED', header: { asyncId: header.asyncId } });
  });

  it('is announced with an AsyncId and the credits, and has the same AsyncId', async () => {
    await start();
    const { header, status, bytes } = await beginWaiting();
    expect(status).toBe('STATUS_PENDING');
    expect(header.flags & HEADER_FLAG.async).not.toBe(0);
    expect(header.asyncId).not.toBe(0n);
    expect(header.credits).toBeGreaterThan(0);
    expect(connection.signer!.verify(bytes)).toBe(true);
    expect((await connection.echo()).status).toBe('STATUS_SUCCESS');
    waiting[0]!.notify('changes');
    const last = await receive();
    expect(last.status).toBe('STATUS_SUCCESS');
    expect(last.header).toMatchObject({ messageId: header.messageId, asyncId: header.asyncId, credits: 0 });
    expect(last.decode(ChangeNotifyResponse).output.toString()).toBe('changes');
    expect(connection.signer!.verify(last.bytes)).toBe(true);
  });

  it('of the last message of a compound follows the others, and of another one is refused', async () => {
    await start();
    const message = { command: CHANGE_NOTIFY, body: notifyBody() };
    const echo = { command: 13, body: encodeBody(EmptyBody, {}) };
    const answers = await connection.send([echo, message]);
    expect(answers.map(({ status }) => status)).toEqual(['STATUS_SUCCESS', 'STATUS_PENDING']);
    const refused = await connection.send([message, echo]);
    expect(refused.map(({ status }) => status)).toEqual(['STATUS_INSUFFICIENT_RESOURCES', 'STATUS_SUCCESS']);
  });

  it('leaves room for requests that run, up to a limit of its own', async () => {
    await start({ runningRequests: 1, asyncRequests: 2 });
    for (const _time of [1, 2]) expect((await beginWaiting()).status).toBe('STATUS_PENDING');
    expect((await beginWaiting()).status).toBe('STATUS_INSUFFICIENT_RESOURCES');
    waiting[0]!.notify('');
    expect((await receive()).status).toBe('STATUS_SUCCESS');
    expect((await beginWaiting()).status).toBe('STATUS_PENDING');
  });

  it('is cancelled when its session ends', async () => {
    await start();
    await beginWaiting();
    const ended = [await connection.request(LOGOFF, EmptyBody, {}), await receive()];
    expect(ended.map(({ status }) => status).sort()).toEqual(['STATUS_CANCELLED', 'STATUS_SUCCESS']);
  });

  it('is given up when its connection ends', async () => {
    await start();
    await beginWaiting();
    connection.close();
    await vi.waitFor(() => expect(waiting[0]!.signal.aborted).toBe(true), 5_000);
  });
});

describe('CANCEL', () => {
  it('ends the request of its AsyncId and no other, and is not answered itself', async () => {
    await start();
    const [first, second] = [await beginWaiting(), await beginWaiting()];
    cancel({ asyncId: second.header.asyncId });
    const cancelled = await receive();
    expect(cancelled.status).toBe('STATUS_CANCELLED');
    expect(cancelled.header.asyncId).toBe(second.header.asyncId);
    expect((await connection.echo()).status).toBe('STATUS_SUCCESS');
    waiting[0]!.notify('');
    expect((await receive()).header.asyncId).toBe(first.header.asyncId);
  });

  it('ends a request that was not announced by its MessageId', async () => {
    announces = false;
    await start();
    const { header } = await connection.echo();
    connection.sendPacket(connection.encode([{ command: CHANGE_NOTIFY, body: notifyBody() }]));
    await vi.waitFor(() => expect(waiting).toHaveLength(1), 5_000);
    cancel({ messageId: header.messageId + 1n });
    const cancelled = await receive();
    expect(cancelled.status).toBe('STATUS_CANCELLED');
    expect(cancelled.header.flags & HEADER_FLAG.async).toBe(0);
  });

  it('of a request that there is not, that has ended, or with a wrong signature does nothing', async () => {
    await start();
    const { header } = await beginWaiting();
    cancel({ asyncId: 999n });
    cancel({ messageId: 999n });
    cancel({ asyncId: header.asyncId }, (packet) => {
      packet[50]! ^= 1;
    });
    expect((await connection.echo()).status).toBe('STATUS_SUCCESS');
    expect(waiting[0]!.signal.aborted).toBe(false);
    waiting[0]!.notify('');
    expect((await receive()).status).toBe('STATUS_SUCCESS');
    cancel({ asyncId: header.asyncId });
    expect((await connection.echo()).status).toBe('STATUS_SUCCESS');
  });
});
