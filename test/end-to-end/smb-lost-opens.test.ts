/** The store loses the rows of open files while the server lives on, as PostgreSQL does in a failover: SMB's connections that rest on them end. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ownerKey } from '../../src/content/membership/owner-rows.ts';
import { type HandleServer, startHandleServer } from '../support/handle-server.ts';
import { SmbConnection } from '../support/smb-connection.ts';
import { create } from '../support/smb-server.ts';
import { account, accountKey } from '../support/test-server.ts';

const SHARE = 'docs';

let running: HandleServer;
const connections: SmbConnection[] = [];

beforeEach(async () => {
  running = await startHandleServer();
  await running.files.getShareClient(SHARE).create();
});

afterEach(async () => {
  for (const connection of connections.splice(0)) connection.close();
  await running.stop();
});

async function connect(share = SHARE): Promise<SmbConnection> {
  const connection = await SmbConnection.open(running.server.smbUrl);
  connections.push(connection);
  await connection.negotiate();
  await connection.signIn(account, accountKey);
  expect((await connection.connectTree(share)).status).toBe('STATUS_SUCCESS');
  return connection;
}

async function open(connection: SmbConnection, name: string): Promise<string> {
  return (await connection.send([create(name)]))[0]!.status;
}

async function loseOwner(): Promise<void> {
  const { partition, owner } = running.storage;
  const key = ownerKey(owner!.claim.epoch);
  await partition.transact(key, async (tx) => tx.remove(key));
}

it('ends the connections with open files when a CREATE finds the loss, and no others; files can be opened again', async () => {
  const [holder, other, idle, pipes] = [await connect(), await connect(), await connect(), await connect('IPC$')];
  expect(await open(holder, 'held')).toBe('STATUS_SUCCESS');
  expect(await open(pipes, 'srvsvc')).toBe('STATUS_SUCCESS');
  await loseOwner();
  await expect(open(other, 'new')).rejects.toThrow('ended');
  await holder.ended();
  for (const unharmed of [idle, pipes]) expect((await unharmed.echo()).status).toBe('STATUS_SUCCESS');
  // The claim that the refused CREATE makes again takes a moment.
  await vi.waitFor(async () => expect(await open(idle, 'held')).toBe('STATUS_SUCCESS'), 5_000);
  expect(await open(await connect(), 'new')).toBe('STATUS_SUCCESS');
});
