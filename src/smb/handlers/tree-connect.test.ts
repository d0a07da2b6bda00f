import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NO_METADATA, SHARE } from '../../../test/support/file-storage.ts';
import type { SmbConnection } from '../../../test/support/smb-connection.ts';
import { create, TestSmbServer } from '../../../test/support/smb-server.ts';
import { deleteShareSnapshot, snapshotShare } from '../../services/file/share-snapshots.ts';
import { formatSnapshotName } from '../names.ts';
import { CreateResponse } from '../wire/create.ts';
import { TreeConnectResponse } from '../wire/tree-connect.ts';

const OPEN = { createDisposition: 1, desiredAccess: 0x1 };
const READ_ONLY = 0x12_00a9;

let server: TestSmbServer;
beforeEach(async () => {
  server = await TestSmbServer.start();
});
afterEach(() => server.stop());

const statusOf = async (connection: SmbConnection, ...asked: Parameters<typeof create>): Promise<string> =>
  (await connection.send([create(...asked)]))[0]!.status;
const takeSnapshot = async () =>
  (await snapshotShare(server.storage, { share: SHARE, metadata: NO_METADATA })).snapshot;

describe('A tree of a share snapshot', () => {
  it('shows the share as it was, and changes nothing', async () => {
    const share = await server.inShare();
    expect(await statusOf(share, 'before')).toBe('STATUS_SUCCESS');
    const second = await takeSnapshot();
    expect(await statusOf(share, 'after')).toBe('STATUS_SUCCESS');
    const connection = await server.signIn();
    const connected = await connection.connectTree(`${SHARE}\\${formatSnapshotName(second)}`);
    expect(connected.status).toBe('STATUS_SUCCESS');
    expect(connected.decode(TreeConnectResponse).maximalAccess).toBe(READ_ONLY);
    const [opened] = await connection.send([create('before', OPEN)]);
    expect(opened!.decode(CreateResponse).createAction).toBe(1);
    expect(await statusOf(connection, '', OPEN)).toBe('STATUS_SUCCESS');
    expect(await statusOf(connection, 'after', OPEN)).toBe('STATUS_OBJECT_NAME_NOT_FOUND');
    expect(await statusOf(connection, 'before', { ...OPEN, desiredAccess: 0x2 })).toBe('STATUS_ACCESS_DENIED');
    expect(await statusOf(connection, 'before', { ...OPEN, createDisposition: 5 })).toBe('STATUS_ACCESS_DENIED');
    expect(await statusOf(connection, 'new', { ...OPEN, createDisposition: 3 })).not.toBe('STATUS_SUCCESS');
    expect(await statusOf(share, 'new', OPEN)).toBe('STATUS_OBJECT_NAME_NOT_FOUND');
  });

  it('ends with the snapshot', async () => {
    const snapshot = await takeSnapshot();
    const connection = await server.signIn();
    const name = `${SHARE.toUpperCase()}\\${formatSnapshotName(snapshot)}`;
    expect((await connection.connectTree(name)).status).toBe('STATUS_SUCCESS');
    const { treeId } = connection;
    await deleteShareSnapshot(server.storage, { share: SHARE, snapshot, leaseId: undefined });
    expect((await connection.connectTree(name)).status).toBe('STATUS_BAD_NETWORK_NAME');
    connection.treeId = treeId;
    expect(await statusOf(connection, '', OPEN)).toBe('STATUS_OBJECT_NAME_NOT_FOUND');
  });

  it.each([
    ['of a snapshot that there is not', `${SHARE}\\@GMT-2020.01.01-00.00.00`],
    ['of a time that there is not', `${SHARE}\\@GMT-2020.13.01-00.00.00`],
    ['of a share that there is not', 'others\\@GMT-2020.01.01-00.00.00'],
    ['of IPC$', 'IPC$\\@GMT-2020.01.01-00.00.00'],
    ['with more names', `${SHARE}\\@GMT-2020.01.01-00.00.00\\a`],
    ['of a directory', `${SHARE}\\a`],
  ])('%s is a bad network name', async (_title, name) => {
    const connection = await server.signIn();
    expect((await connection.connectTree(name)).status).toBe('STATUS_BAD_NETWORK_NAME');
    expect((await connection.connectTree(SHARE)).status).toBe('STATUS_SUCCESS');
  });
});
