/** `kill -9` of servers through which SMB clients hold files open: the files are free once the death is known, and none is deleted. */
import type { ShareClient } from '@azure/storage-file-share';
import { check, type Where } from 'holdfast';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ACCESS, DISPOSITION, SHARE, SmbClient } from '../../examples/managing-concurrency/smb-client.ts';
import type { FileId } from '../../src/smb/wire/file-id.ts';
import { FileDispositionInformation } from '../../src/smb/wire/file-info.ts';
import { SetInfoRequest } from '../../src/smb/wire/set-info.ts';
import { newFolder } from '../support/disposable-servers.ts';
import { missing } from '../support/postgres-cluster.ts';
import { restartableServer, root, type Server, startServers, stopServers } from '../support/restartable-servers.ts';
import { run } from '../support/server-process.mjs';
import { account, accountKey, expectRefusal, filesAt } from '../support/test-server.ts';
import { newDatabase } from '../support/three-processes.ts';

const SET_INFO = 17;
const FILE_INFO = 1;
const DISPOSITION_CLASS = 13;
const EXCLUSIVE = { access: ACCESS.read | ACCESS.write | ACCESS.delete, share: SHARE.none };
/** Eight heartbeats of the others, two seconds apart, and what a busy machine adds to them. */
const DEATH_IS_KNOWN = { timeout: 90_000, interval: 250 };

async function startStore(count: number, flags: readonly string[], where: Where) {
  const servers = Array.from({ length: count }, () => restartableServer([...flags, '--log-level', 'warn']));
  onTestFinished(() => stopServers(servers));
  await startServers(servers);
  await shareAt(servers[0]!).create();
  return { servers, where };
}

async function startThree() {
  const [partition, extents] = [await newDatabase(), newFolder()];
  return startStore(3, ['--partition', partition, '--extents', extents], { partition, extents });
}

function shareAt(server: Server): ShareClient {
  const origin = new URL(server.originOf('File')!);
  return filesAt(`${origin.origin}/${account}`, () => origin).getShareClient('held');
}

const fileAt = (server: Server, name: string) => shareAt(server).rootDirectoryClient.getFileClient(name);

async function namesAt(server: Server): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of shareAt(server).rootDirectoryClient.listFilesAndDirectories()) names.push(name);
  return names;
}

async function smbAt(server: Server): Promise<SmbClient> {
  const { hostname: host, port } = new URL(server.smbUrl()!);
  const client = await SmbClient.connect({
    ...{ host, port: Number(port), share: 'held', user: account, password: accountKey },
  });
  onTestFinished(() => client.end());
  return client;
}

async function markForDeletion(client: SmbClient, fileId: FileId): Promise<void> {
  await client.request(SET_INFO, SetInfoRequest, {
    ...{ infoType: FILE_INFO, fileInfoClass: DISPOSITION_CLASS, additionalInformation: 0, fileId },
    buffer: FileDispositionInformation.encode({ deletePending: 1 }),
  });
}

/** One file is held alone, another is marked for deletion, both by a client of this server. */
async function holdTwo(server: Server): Promise<void> {
  const client = await smbAt(server);
  const created = { ...EXCLUSIVE, disposition: DISPOSITION.create };
  const held = await client.open('held.txt', created);
  await client.write(held, 0n, Buffer.from('text'));
  await markForDeletion(client, await client.open('marked.txt', created));
}

async function expectHeld(server: Server): Promise<void> {
  await expectRefusal(fileAt(server, 'held.txt').downloadToBuffer(), 409, 'SharingViolation');
  await expectRefusal(fileAt(server, 'marked.txt').getProperties(), 409, 'SMBDeletePending');
  expect(await namesAt(server)).toEqual(['held.txt']);
}

async function expectFree(server: Server): Promise<void> {
  expect(await namesAt(server)).toEqual(['held.txt', 'marked.txt']);
  expect((await fileAt(server, 'held.txt').downloadToBuffer()).toString()).toBe('text');
  const client = await smbAt(server);
  for (const name of ['held.txt', 'marked.txt']) await client.close(await client.open(name, EXCLUSIVE));
  for await (const page of shareAt(server).rootDirectoryClient.listHandles({ recursive: true }).byPage())
    expect(page.handleList ?? []).toEqual([]);
  for (const name of ['held.txt', 'marked.txt']) await fileAt(server, name).delete();
}

/** What `holdfast handles` prints, or why it fails. */
async function handles(folder: string, ...words: string[]): Promise<string> {
  const command = run([process.execPath, `${root}/dist/bin/holdfast.js`, 'handles', ...words, '-l', folder]);
  const { code } = await command.ended;
  return (code === 0 ? command.stdout() : command.stderr()).trim();
}

it('holdfast handles lists and closes what clients have open, while a server runs', async () => {
  const folder = newFolder();
  const { servers } = await startStore(1, ['--location', folder], folder);
  const [server] = servers as [Server];
  expect(await handles(folder, 'list')).toBe('Nothing is open.');
  await holdTwo(server);
  const [held = '', marked, ...more] = (await handles(folder, 'list')).split('\n');
  expect(held).toMatch(/^\d+ {2}held\/held\.txt {2}Read\+Write\+Delete, sharing nothing {2}127\.0\.0\.1:\d+ {2}\d/);
  expect([marked, more]).toEqual([expect.stringContaining('held/marked.txt'), []]);
  expect(await handles(folder, 'list', 'none')).toBe('holdfast: The specified share does not exist.');
  expect(await handles(folder, 'close', 'held/held.txt', '--all', '--recursive')).toContain('only a directory');
  expect(await handles(folder, 'close', 'held/held.txt', '--id', 'x')).toContain('x is no id of a handle');
  expect(await handles(folder, 'close', 'held/held.txt', '--id', '1')).toBe('0 handles are closed.');
  expect(await handles(folder, 'close', 'held/held.txt', '--id', held.split(' ')[0]!)).toBe('1 handle is closed.');
  expect((await fileAt(server, 'held.txt').downloadToBuffer()).toString()).toBe('text');
  expect(await handles(folder, 'close', 'held', '--all', '--recursive', '--json')).toBe('{"closed":1}');
  expect(await handles(folder, 'list')).toBe('Nothing is open.');
  await server.kill('SIGKILL');
  expect(await handles(folder, 'list')).toBe(`holdfast: No server runs on ${folder}.`);
});

describe('What SMB clients held open through a server that was killed', () => {
  it('is there and free after the next start', async () => {
    const folder = newFolder();
    const { servers, where } = await startStore(1, ['--location', folder], folder);
    const [server] = servers as [Server];
    await holdTwo(server);
    await expectHeld(server);
    await server.kill('SIGKILL');
    await server.start();
    await expectFree(server);
    await server.kill('SIGTERM');
    expect((await check(where)).findings).toEqual([]);
  });

  describe.skipIf(missing || process.env.HOLDFAST_TEST_ON_POSTGRES === 'nothing')('on PostgreSQL', () => {
    it('is held until the others know of the death, and free from then on', { timeout: 180_000 }, async () => {
      const { servers, where } = await startThree();
      const [first, second, third] = servers as [Server, Server, Server];
      await holdTwo(first);
      await expectHeld(second);
      await first.kill('SIGKILL');
      // A process that is silent may be slow: it holds its files until it is evicted.
      await expectHeld(second);
      await vi.waitFor(() => fileAt(second, 'held.txt').downloadToBuffer(), DEATH_IS_KNOWN);
      expect(await namesAt(third)).toEqual(['held.txt', 'marked.txt']);
      await expectFree(third);
      expect((await check(where)).findings).toEqual([]);
    });

    it('is opened alone through one of two servers, never through both', { timeout: 180_000 }, async () => {
      const { servers } = await startThree();
      const clients = await Promise.all(servers.slice(1).map(smbAt));
      await fileAt(servers[0]!, 'one.txt').create(4);
      const winners = new Set<number>();
      for (let round = 0; round < 20; round++) {
        const opens = await Promise.allSettled(clients.map((client) => client.open('one.txt', EXCLUSIVE)));
        const winner = opens.findIndex(({ status }) => status === 'fulfilled');
        const [won, lost] = winner === 0 ? opens : opens.toReversed();
        expect([round, won, lost]).toMatchObject([
          round,
          { status: 'fulfilled' },
          { status: 'rejected', reason: { message: 'STATUS_SHARING_VIOLATION' } },
        ]);
        winners.add(winner);
        if (won?.status === 'fulfilled') await clients[winner]!.close(won.value);
      }
      console.log(`Won through server ${[...winners].join(' and ')}.`);
    });
  });
});
