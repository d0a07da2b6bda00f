/** CREATE: every disposition, option, right, attribute and context, by itself (MS-SMB2 2.2.13, MS-FSA 2.1.5.1). */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NO_METADATA, SHARE } from '../../../test/support/file-storage.ts';
import { openAs } from '../../../test/support/handle-server.ts';
import type { SmbConnection } from '../../../test/support/smb-connection.ts';
import { create, TestSmbServer } from '../../../test/support/smb-server.ts';
import { filetimeFromTicks } from '../../base/time.ts';
import { getHandlePermission } from '../../services/file/handle-properties.ts';
import { snapshotShare } from '../../services/file/share-snapshots.ts';
import { CloseRequest } from '../wire/close.ts';
import { CreateResponse } from '../wire/create.ts';
import {
  AaplQuery,
  AllocationSizeContext,
  MaximalAccessResponse,
  QueryOnDiskIdResponse,
  readCreateContexts,
  TimewarpContext,
} from '../wire/create-contexts.ts';

const CLOSE = 6;
const ALL_RIGHTS = 0x1f_01ff;
const MAXIMUM_ALLOWED = 0x200_0000;
const BITS = Array.from({ length: 32 }, (_, i) => 2 ** i);
const [SUPERSEDE, OPEN, CREATE, OPEN_IF, OVERWRITE, OVERWRITE_IF] = [0, 1, 2, 3, 4, 5];
const DIRECTORY_FILE = 1;
const DELETE_ON_CLOSE = 0x1000;

let server: TestSmbServer;
let connection: SmbConnection;
beforeEach(async () => {
  server = await TestSmbServer.start();
  connection = await server.inShare();
});
afterEach(() => server.stop());

/** The file is closed again. */
async function send(...[name, fields, contexts]: Parameters<typeof create>) {
  const [answer] = await connection.send([create(name, { desiredAccess: ALL_RIGHTS, ...fields }, contexts)]);
  if (answer!.status !== 'STATUS_SUCCESS') return { status: answer!.status, opened: undefined };
  const opened = answer!.decode(CreateResponse);
  await connection.request(CLOSE, CloseRequest, { flags: 0, fileId: opened.fileId });
  return { status: answer!.status, opened };
}

/** The bits for which an open has each status, as sums. */
async function sumByStatus(fieldsOf: (bit: number) => Parameters<typeof create>[1]) {
  const sums: Record<string, number> = {};
  for (const bit of BITS) {
    const { status } = await send('a', fieldsOf(bit));
    sums[status] = (sums[status] ?? 0) + bit;
  }
  return sums;
}

describe('A disposition', () => {
  const ACTIONS = ['superseded', 'opened', 'created', 'overwritten'];
  it.each([
    [SUPERSEDE, 'superseded', 'created', 'INVALID_PARAMETER'],
    [OPEN, 'opened', 'OBJECT_NAME_NOT_FOUND', 'opened'],
    [CREATE, 'OBJECT_NAME_COLLISION', 'created', 'OBJECT_NAME_COLLISION'],
    [OPEN_IF, 'opened', 'created', 'opened'],
    [OVERWRITE, 'overwritten', 'OBJECT_NAME_NOT_FOUND', 'INVALID_PARAMETER'],
    [OVERWRITE_IF, 'overwritten', 'created', 'INVALID_PARAMETER'],
  ])('%i finds a file: %s, nothing: %s, a directory: %s', async (createDisposition, found, absent, directory) => {
    await send('file');
    await send('directory', { createOptions: DIRECTORY_FILE });
    const outcome = async (name: string, createOptions = 0) => {
      const { status, opened } = await send(name, { createDisposition, createOptions });
      return opened ? ACTIONS[opened.createAction] : status.replace('STATUS_', '');
    };
    expect(await outcome('file')).toBe(found);
    expect(await outcome('nothing')).toBe(absent);
    expect(await outcome('directory', DIRECTORY_FILE)).toBe(directory);
  });

  it.each([
    [{ createDisposition: 6 }, 'INVALID_PARAMETER'],
    [{ shareAccess: 8 }, 'INVALID_PARAMETER'],
    [{ impersonationLevel: 4 }, 'BAD_IMPERSONATION_LEVEL'],
    [{ createOptions: 0x41 }, 'INVALID_PARAMETER'],
    [{ desiredAccess: 0 }, 'ACCESS_DENIED'],
    [{ createOptions: DELETE_ON_CLOSE, desiredAccess: 0x12_019f }, 'ACCESS_DENIED'],
  ])('with %j is refused by STATUS_%s', async (fields, status) => {
    expect((await send('a', fields)).status).toBe(`STATUS_${status}`);
  });
});

describe('Each bit of a field', () => {
  it('of the options is taken, not supported or invalid, as in Windows', async () => {
    await send('a');
    const sums = await sumByStatus((bit) => ({ createOptions: bit === DELETE_ON_CLOSE ? 0 : bit }));
    expect(sums).toEqual({
      STATUS_SUCCESS: 0x00ef_df7e,
      STATUS_NOT_A_DIRECTORY: 0x1,
      STATUS_NOT_SUPPORTED: 0x0010_2080,
      STATUS_INVALID_PARAMETER: 0xff00_0000,
    });
  });

  it('of the access mask is granted, or denied where it has no meaning', async () => {
    const sums = await sumByStatus((bit) => ({ desiredAccess: bit }));
    expect(sums).toEqual({ STATUS_ACCESS_DENIED: 0x0ce0_fe00, STATUS_SUCCESS: 0xf31f_01ff });
  });

  it('of the attributes is kept, ignored or invalid', async () => {
    const kept: number[] = [];
    const sums: Record<string, number> = {};
    for (const fileAttributes of BITS) {
      const { status, opened } = await send(`file ${fileAttributes}`, { fileAttributes });
      sums[status] = (sums[status] ?? 0) + fileAttributes;
      if (opened && opened.fileAttributes & fileAttributes) kept.push(fileAttributes);
    }
    expect(sums).toEqual({ STATUS_SUCCESS: 0x7fb7, STATUS_INVALID_PARAMETER: 0xffff_8048 });
    expect(kept).toEqual([0x1, 0x2, 0x4, 0x20, 0x100, 0x1000, 0x2000]);
  });
});

describe('A create context', () => {
  const answersTo = async (name: string, data: Buffer, fields = {}) => {
    const { status, opened } = await send('a', fields, [{ name, data }]);
    expect(status).toBe('STATUS_SUCCESS');
    return { opened: opened!, contexts: readCreateContexts(opened!.createContexts) };
  };

  it('MxAc is answered with the rights that the user can have', async () => {
    const { contexts } = await answersTo('MxAc', Buffer.alloc(0), { desiredAccess: MAXIMUM_ALLOWED });
    expect(contexts.map(({ name }) => name)).toEqual(['MxAc']);
    expect(MaximalAccessResponse.decode(contexts[0]!.data)).toEqual({ queryStatus: 0, maximalAccess: ALL_RIGHTS });
  });

  it('QFid is answered with the ids of file and volume', async () => {
    const [one, other] = [await answersTo('QFid', Buffer.alloc(0)), await answersTo('QFid', Buffer.alloc(0))];
    const { diskFileId, volumeId } = QueryOnDiskIdResponse.decode(one.contexts[0]!.data);
    expect(diskFileId).not.toBe(0n);
    expect(volumeId).not.toBe(0n);
    expect(other.contexts).toEqual(one.contexts);
  });

  it('AlSi is shown as the size of what is created', async () => {
    const data = AllocationSizeContext.encode({ allocationSize: 1n << 20n });
    expect((await answersTo('AlSi', data, { createDisposition: OVERWRITE_IF })).opened.allocationSize).toBe(1n << 20n);
  });

  it('AAPL is answered with capabilities', async () => {
    const data = AaplQuery.encode({ command: 1, requestBitmap: 7n, clientCapabilities: 0n });
    expect((await answersTo('AAPL', data)).contexts.map(({ name }) => name)).toEqual(['AAPL']);
  });

  it('SecD is the permission of what is created', async () => {
    const { opened } = await answersTo('SecD', EVERYONE_READS);
    expect(opened.createAction).toBe(CREATE);
    const { handle } = await openAs(server.storage, SHARE, 'a', { rights: ALL_RIGHTS } as never);
    const stored = await getHandlePermission(server.storage, handle, 4);
    expect(stored.includes(EVERYONE_READS.subarray(20))).toBe(true);
    expect((await send('b', {}, [{ name: 'SecD', data: Buffer.alloc(3) }])).status).not.toBe('STATUS_SUCCESS');
  });

  it('TWrp opens a previous version, if there is one of that second', async () => {
    await send('a');
    const { snapshot } = await snapshotShare(server.storage, { share: SHARE, metadata: [...NO_METADATA] });
    const at = (timestamp: bigint) =>
      send('a', { createDisposition: OPEN, desiredAccess: MAXIMUM_ALLOWED }, [
        { name: 'TWrp', data: TimewarpContext.encode({ timestamp }) },
      ]);
    expect((await at(filetimeFromTicks(snapshot))).status).toBe('STATUS_SUCCESS');
    expect((await at(10_000n)).status).toBe('STATUS_OBJECT_NAME_NOT_FOUND');
  });
});

/** D:(A;;0x120089;;;WD) */
const EVERYONE_READS = Buffer.from(
  '010004800000000000000000000000001400000002001c000100000000001400890012000101000000000001' + '00000000',
  'hex',
);
