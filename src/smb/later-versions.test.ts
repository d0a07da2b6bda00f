/** Oplocks, leases, durable handles, locks and notifications: refused, or granted nothing, as the protocol allows. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SmbConnection } from '../../test/support/smb-connection.ts';
import { create, TestSmbServer } from '../../test/support/smb-server.ts';
import { ChangeNotifyRequest } from './wire/change-notify.ts';
import { CreateResponse } from './wire/create.ts';
import { LeaseContext, readCreateContexts } from './wire/create-contexts.ts';
import type { FileId } from './wire/file-id.ts';
import { LockRequest } from './wire/lock.ts';
import { LeaseBreakAcknowledgment, OplockBreakAcknowledgment } from './wire/oplock-break.ts';

const OPLOCK_BREAK = 18;
const LEVELS = { none: 0, II: 1, exclusive: 8, batch: 9, lease: 0xff };
const UNKNOWN = { persistent: 999n, volatile: 999n };
const leaseKey = Buffer.alloc(16, 1);

let server: TestSmbServer;
let connection: SmbConnection;
beforeEach(async () => {
  server = await TestSmbServer.start();
  connection = await server.inShare();
});
afterEach(() => server.stop());

async function open(...asked: Parameters<typeof create>): Promise<CreateResponse> {
  const [answer] = await connection.send([create(...asked)]);
  expect(answer!.status).toBe('STATUS_SUCCESS');
  return answer!.decode(CreateResponse);
}

describe('CREATE', () => {
  it.each(Object.entries(LEVELS))('grants no oplock when asked for %s', async (_name, requestedOplockLevel) => {
    expect((await open('a', { requestedOplockLevel })).oplockLevel).toBe(LEVELS.none);
  });

  const lease = LeaseContext.encode({ leaseKey, leaseState: 7, leaseFlags: 0, leaseDuration: 0n });
  it.each([
    ['a lease', 'RqLs', lease],
    ['a lease of version 2', 'RqLs', Buffer.concat([lease, Buffer.alloc(20)])],
    ['a durable handle', 'DHnQ', Buffer.alloc(16)],
    ['a durable handle of version 2', 'DH2Q', Buffer.alloc(32, 1)],
  ])('passes over the request for %s, and answers the contexts beside it', async (_title, name, data) => {
    const contexts = [
      { name, data },
      { name: 'MxAc', data: Buffer.alloc(0) },
    ];
    const { oplockLevel, createContexts } = await open('a', { requestedOplockLevel: LEVELS.lease }, contexts);
    expect(oplockLevel).toBe(LEVELS.none);
    expect(readCreateContexts(createContexts).map((context) => context.name)).toEqual(['MxAc']);
  });
});

describe('OPLOCK_BREAK', () => {
  const acknowledge = async (fileId: FileId, oplockLevel = LEVELS.none) =>
    (await connection.request(OPLOCK_BREAK, OplockBreakAcknowledgment, { oplockLevel, fileId })).status;

  it('acknowledges nothing: no oplock is held', async () => {
    const { fileId } = await open('a', { requestedOplockLevel: LEVELS.batch });
    for (const level of [LEVELS.none, LEVELS.II]) {
      expect(await acknowledge(fileId, level)).toBe('STATUS_INVALID_DEVICE_STATE');
    }
  });

  it('of an open that there is not finds it closed', async () => {
    expect(await acknowledge(UNKNOWN)).toBe('STATUS_FILE_CLOSED');
  });

  it('of a lease finds none', async () => {
    const lease = { flags: 0, leaseKey, leaseState: 1 };
    const { status } = await connection.request(OPLOCK_BREAK, LeaseBreakAcknowledgment, lease);
    expect(status).toBe('STATUS_OBJECT_NAME_NOT_FOUND');
  });

  it.each([
    ['without a size', Buffer.alloc(1)],
    ['of an unknown size', Buffer.from('2000'.padEnd(64, '0'), 'hex')],
    ['shorter than its size', Buffer.from('1800', 'hex')],
    ['of a lease, shorter than its size', Buffer.from('2400', 'hex')],
  ])('%s is an invalid parameter', async (_title, body) => {
    const [answer] = await connection.send([{ command: OPLOCK_BREAK, body }]);
    expect(answer!.status).toBe('STATUS_INVALID_PARAMETER');
  });
});

describe('LOCK and CHANGE_NOTIFY', () => {
  it('are not supported', async () => {
    const { fileId } = await open('a');
    const first = { offset: 0n, length: 1n, flags: 1 };
    const lock = { lockCount: 1, lockSequence: 0, fileId, first, others: Buffer.alloc(0) };
    expect((await connection.request(10, LockRequest, lock)).status).toBe('STATUS_NOT_SUPPORTED');
    const notify = { flags: 0, outputBufferLength: 100, fileId, completionFilter: 1 };
    expect((await connection.request(15, ChangeNotifyRequest, notify)).status).toBe('STATUS_NOT_SUPPORTED');
  });
});
