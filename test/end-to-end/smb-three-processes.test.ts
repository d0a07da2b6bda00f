/** A share through three processes on one PostgreSQL: what one does by SMB the others see at once. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { withAccounts } from '../../src/server/open-storage.ts';
import { missing } from '../support/postgres-cluster.ts';
import { restartableServer, startServers, stopServers } from '../support/restartable-servers.ts';
import { SmbConnection } from '../support/smb-connection.ts';
import {
  closeFile,
  DISPOSITION,
  listNames,
  markForDeletion,
  openDirectory,
  openFile,
  readFile,
  renameFile,
  writeFile,
} from '../support/smb-files.ts';
import { account, accountKey, filesAt } from '../support/test-server.ts';
import { newDatabase } from '../support/three-processes.ts';

const SHARE = 'common';
const EXISTING = { createDisposition: DISPOSITION.open };
/** The directory of accounts asks for changes about once a second. */
const KEY_IS_KNOWN = { timeout: 30_000, interval: 100 };

describe.skipIf(missing || process.env.HOLDFAST_TEST_ON_POSTGRES === 'nothing')('A share of three processes', () => {
  let partition: string;
  let servers: ReturnType<typeof restartableServer>[] = [];
  const extents = mkdtempSync(join(tmpdir(), 'holdfast-extents-'));
  let clients: [SmbConnection, SmbConnection, SmbConnection];
  const opened: SmbConnection[] = [];

  async function signIn(server: number, user: string, key: string): Promise<SmbConnection> {
    const connection = await SmbConnection.open(servers[server]!.smbUrl()!);
    opened.push(connection);
    await connection.negotiate();
    expect((await connection.signIn(user, key)).status).toBe('STATUS_SUCCESS');
    return connection;
  }

  async function inShare(server: number): Promise<SmbConnection> {
    const connection = await signIn(server, account, accountKey);
    expect((await connection.connectTree(SHARE)).status).toBe('STATUS_SUCCESS');
    return connection;
  }

  beforeAll(async () => {
    partition = await newDatabase();
    const words = ['--partition', partition, '--extents', extents, '--log-level', 'warn'];
    servers = Array.from({ length: 3 }, () => restartableServer(words));
    await startServers(servers);
    const origin = new URL(servers[0]!.originOf('File')!);
    await filesAt(`${origin.origin}/${account}`, () => origin)
      .getShareClient(SHARE)
      .create();
    clients = [await inShare(0), await inShare(1), await inShare(2)];
  }, 120_000);

  afterAll(async () => {
    for (const connection of opened) connection.close();
    await stopServers(servers);
    rmSync(extents, { recursive: true, force: true });
  });

  it('is walked, read, written, renamed and emptied through each of them', async () => {
    for (const [turn, names] of [['f', 'g'] as const, ['h', 'i'] as const, ['j', 'k'] as const].entries()) {
      const [one, two, three] = [0, 1, 2].map((at) => clients[(turn + at) % 3]!) as typeof clients;
      const [before, after] = [`d${turn}\\${names[0]}`, `d${turn}\\${names[1]}`];
      await closeFile(one, await openDirectory(one, `d${turn}`));
      const held = await openFile(one, before, { createDisposition: DISPOSITION.create });
      await writeFile(one, held, 0, 'one');
      const folder = await openDirectory(two, `d${turn}`);
      expect(await listNames(two, folder)).toEqual([names[0]]);
      const second = await openFile(two, before, EXISTING);
      expect((await readFile(two, second)).toString()).toBe('one');
      const third = await openFile(three, before, EXISTING);
      await writeFile(three, third, 3, ' and three');
      expect((await readFile(one, held)).toString()).toBe('one and three');
      // A file that others have open is renamed by the one that shares it with them.
      await renameFile(two, second, after);
      expect(await listNames(two, folder)).toEqual([names[1]]);
      await expect(openFile(three, before, EXISTING)).rejects.toThrow('STATUS_OBJECT_NAME_NOT_FOUND');
      expect((await readFile(one, held)).toString()).toBe('one and three');
      for (const [client, fileId] of [[one, held] as const, [two, second] as const]) await closeFile(client, fileId);
      await expect(openFile(one, after, { ...EXISTING, shareAccess: 0 })).rejects.toThrow('STATUS_SHARING_VIOLATION');
      await closeFile(three, third);
      const alone = await openFile(one, after, { ...EXISTING, shareAccess: 0 });
      await expect(openFile(two, after, EXISTING)).rejects.toThrow('STATUS_SHARING_VIOLATION');
      await markForDeletion(one, alone);
      await closeFile(one, alone);
      await expect(openFile(three, after, EXISTING)).rejects.toThrow('STATUS_OBJECT_NAME_NOT_FOUND');
      const emptied = await openFile(three, `d${turn}`, EXISTING);
      await markForDeletion(three, emptied);
      await expect(openFile(one, `d${turn}\\late`)).rejects.toThrow('STATUS_DELETE_PENDING');
      for (const [client, fileId] of [[two, folder] as const, [three, emptied] as const])
        await closeFile(client, fileId);
      await expect(openFile(one, `d${turn}`, EXISTING)).rejects.toThrow('STATUS_OBJECT_NAME_NOT_FOUND');
    }
  });

  it('has a file that one of them deletes until the last of the others has closed it', async () => {
    const [one, two, three] = clients;
    const [held, other] = [await openFile(one, 'f'), await openFile(two, 'f')];
    await markForDeletion(one, held);
    await expect(openFile(three, 'f')).rejects.toThrow('STATUS_DELETE_PENDING');
    await closeFile(one, held);
    await writeFile(two, other, 0, 'still there');
    await expect(openFile(one, 'f')).rejects.toThrow('STATUS_DELETE_PENDING');
    await closeFile(two, other);
    await closeFile(three, await openFile(three, 'f', { createDisposition: DISPOSITION.create }));
  });

  it('ends the sessions of a key that another process changes', async () => {
    const [first, second] = (await withAccounts({ partition }, (accounts) => accounts.add('mine'))).keys;
    const by = (server: number, key: string) => vi.waitFor(() => signIn(server, 'mine', key), KEY_IS_KNOWN);
    const ending = [await by(0, first!), await by(1, first!), await by(2, first!)];
    const staying = await by(1, second!);
    await withAccounts({ partition }, (accounts) => accounts.rotateKey('mine', 1));
    for (const connection of ending) {
      await vi.waitFor(async () => {
        expect((await connection.connectTree('IPC$')).status).toBe('STATUS_USER_SESSION_DELETED');
      }, KEY_IS_KNOWN);
    }
    expect((await staying.connectTree('IPC$')).status).toBe('STATUS_SUCCESS');
  }, 90_000);
});
