/** Files that clients of SMB hold open, over the wire, beside Microsoft's SDK; what the one writes, the other reads, with the same times. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ShareClient } from '@azure/storage-file-share';
import { afterAll, describe, expect, it } from 'vitest';
import { CreateResponse } from '../../src/smb/wire/create.ts';
import { debianPython, noImpacket, noSmbclient } from '../support/installed-tools.ts';
import { type ClientFailed, runClient } from '../support/run-client.ts';
import { SmbConnection } from '../support/smb-connection.ts';
import { closeFile, DISPOSITION, openFile, readFile, writeFile } from '../support/smb-files.ts';
import { create } from '../support/smb-server.ts';
import { account, accountKey, serverFor } from '../support/test-server.ts';
import { SHARING_VIOLATIONS, type ShareMode } from '../truth-tables/share-modes.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-smb-files-'));
const running = serverFor('LMDB');
const port = () => new URL(running.server.smbUrl).port;

const holders: ChildProcess[] = [];
afterAll(() => {
  for (const holder of holders) holder.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** A client that holds files open. */
async function startHolder(share: string) {
  const script = join(import.meta.dirname, '..', 'support', 'smb-holder.py');
  const holder = spawn(debianPython, [script, port(), account, accountKey, share], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  holders.push(holder);
  const answers = createInterface(holder.stdout!);
  return async (line: string): Promise<string> => {
    const answer = once(answers, 'line');
    holder.stdin!.write(`${line}\n`);
    return String((await answer)[0]);
  };
}

/** What the commands print, whether they succeed or not. */
async function smbclient(share: string, commands: string): Promise<string> {
  const words = [`//127.0.0.1/${share}`, '-p', port(), '-U', `${account}%${accountKey}`, '-c', commands];
  const { stdout, stderr } = await runClient('smbclient', words, { cwd: folder }).catch(
    (failed: ClientFailed) => failed,
  );
  return stdout + stderr;
}

const SHARE_MODES: Readonly<Record<ShareMode, number>> = { None: 0, R: 1, W: 2, RW: 3, D: 4, RD: 5, WD: 6, RWD: 7 };
const GENERIC_READ = 0x8000_0000;
const NON_DIRECTORY = 0x40;
const DELETE = 0x1_0000;
const DELETE_ON_CLOSE = 0x1000;

/** The code of the refusal; empty: none. */
const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => '',
    (error: { readonly code?: string; readonly details?: { readonly errorCode?: string } }) =>
      error.details?.errorCode ?? error.code ?? String(error),
  );

function operationsOn(share: ShareClient, name: string): Readonly<Record<string, () => Promise<unknown>>> {
  const file = share.rootDirectoryClient.getFileClient(name);
  return {
    'Get File Properties': () => file.getProperties(),
    'Get File': () => file.downloadToBuffer(),
    'List Ranges': () => file.getRangeList(),
    'Put Range': () => file.uploadRange('x', 0, 1),
    'Set File Properties': () => file.setHttpHeaders({ fileContentType: 'a/b' }),
    'Set File Metadata': () => file.setMetadata({ a: 'b' }),
    'Lease File': async () => {
      const lease = file.getShareLeaseClient();
      await lease.acquireLease(-1);
      await lease.releaseLease();
    },
    'Create File': () => file.create(3),
    'Delete File': () => file.delete(),
  };
}

describe.skipIf(noImpacket)(`A file that SMB holds${noImpacket ? ` (${noImpacket})` : ''}`, () => {
  it('refuses the operations of REST that its share mode excludes, and no other', async () => {
    const share = await running.newShare();
    const hold = await startHolder(share.name);
    const wrong: string[] = [];
    for (const [mode, bits] of Object.entries(SHARE_MODES)) {
      await share.rootDirectoryClient.getFileClient(mode).create(3);
      expect(await hold(`${mode} ${GENERIC_READ.toString(16)} ${bits} ${NON_DIRECTORY.toString(16)}`)).toBe('ok');
      for (const [operation, call] of Object.entries(operationsOn(share, mode))) {
        const expected = SHARING_VIOLATIONS[operation]!.includes(mode as ShareMode) ? 'SharingViolation' : '';
        const seen = await codeOf(call());
        if (seen !== expected) wrong.push(`${operation} beside ${mode}: ${seen || 'proceeds'}`);
      }
      expect(await hold(`close ${mode}`)).toBe('ok');
      expect(await codeOf(share.rootDirectoryClient.getFileClient(mode).delete())).toBe('');
    }
    expect(wrong).toEqual([]);
  }, 120_000);

  it('is pending for deletion until it is closed, and then gone', async () => {
    const share = await running.newShare();
    const root = share.rootDirectoryClient;
    const file = root.getFileClient('f');
    await file.create(3);
    const [one, other] = [await startHolder(share.name), await startHolder(share.name)];
    const access = (GENERIC_READ + DELETE).toString(16);
    expect(await one(`f ${access} 7 ${(NON_DIRECTORY | DELETE_ON_CLOSE).toString(16)}`)).toBe('ok');
    expect(await other(`f ${access} 7 ${NON_DIRECTORY.toString(16)}`)).toBe('ok');
    expect(await one('close f')).toBe('ok');
    const names = async () => {
      const found: string[] = [];
      for await (const { name } of root.listFilesAndDirectories()) found.push(name);
      return found;
    };
    expect(await codeOf(file.getProperties())).toBe('SMBDeletePending');
    expect(await codeOf(file.downloadToBuffer())).toBe('SMBDeletePending');
    expect(await names()).toEqual([]);
    expect(await one(`f ${access} 7 ${NON_DIRECTORY.toString(16)}`)).toBe('STATUS_DELETE_PENDING');
    expect(await other('close f')).toBe('ok');
    expect(await codeOf(file.getProperties())).toBe('ResourceNotFound');
  }, 60_000);

  it('is closed when its client is gone', async () => {
    const share = await running.newShare();
    const file = share.rootDirectoryClient.getFileClient('f');
    await file.create(3);
    const hold = await startHolder(share.name);
    expect(await hold(`f ${GENERIC_READ.toString(16)} 0 ${NON_DIRECTORY.toString(16)}`)).toBe('ok');
    expect(await codeOf(file.downloadToBuffer())).toBe('SharingViolation');
    const holder = holders.at(-1)!;
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    await expect.poll(() => codeOf(file.downloadToBuffer()), { timeout: 20_000 }).toBe('');
  }, 60_000);
});

/** FILETIME counts 100 ns from 1601. */
const millisecondsOf = (fileTime: bigint): number => Number((fileTime - 116_444_736_000_000_000n) / 10_000n);

describe('A file that SMB and REST write at the same time', () => {
  it('has the bytes of both, and the same length, times and attributes on both sides', async () => {
    const share = await running.newShare();
    const file = share.rootDirectoryClient.getFileClient('both');
    const [blocks, size] = [64, 4_096];
    await file.create(blocks * size, { fileAttributes: 'Hidden|Archive' as never });
    const connection = await SmbConnection.open(running.server.smbUrl);
    await connection.negotiate();
    await connection.signIn(account, accountKey);
    await connection.connectTree(share.name);
    const fileId = await openFile(connection, 'both', { createDisposition: DISPOSITION.open });
    const block = (at: number) => Buffer.alloc(size, `${at % 2 === 0 ? 'REST' : 'SMB'} ${at} `);
    const places = Array.from({ length: blocks }, (_, at) => at);
    const overRest = Promise.all(
      places.filter((at) => at % 2 === 0).map((at) => file.uploadRange(block(at), at * size, size)),
    );
    for (const at of places) if (at % 2 === 1) await writeFile(connection, fileId, at * size, block(at));
    await overRest;
    const expected = Buffer.concat(places.map(block));
    expect((await file.downloadToBuffer()).equals(expected)).toBe(true);
    const pages: Buffer[] = [];
    for (let at = 0; at < expected.length; at += 65_536) pages.push(await readFile(connection, fileId, 65_536, at));
    expect(Buffer.concat(pages).equals(expected)).toBe(true);
    await closeFile(connection, fileId);
    const [created] = await connection.send([create('both', { desiredAccess: 0x80 })]);
    const seen = created!.decode(CreateResponse);
    const shown = await file.getProperties();
    expect(shown.fileAttributes).toMatch(/^Hidden ?\| ?Archive$/);
    expect({ ...seen, fileAttributes: seen.fileAttributes & 0x22 }).toMatchObject({
      ...{ endOfFile: BigInt(shown.contentLength!), fileAttributes: 0x22 },
    });
    expect([seen.creationTime, seen.lastWriteTime, seen.changeTime].map(millisecondsOf)).toEqual(
      [shown.fileCreatedOn, shown.fileLastWriteOn, shown.fileChangeOn].map((time) => time!.getTime()),
    );
    connection.close();
  });
});

describe.skipIf(noSmbclient)(`A file over SMB and REST${noSmbclient ? ` (${noSmbclient})` : ''}`, () => {
  it('has the same times and attributes on both sides', async () => {
    const share = await running.newShare();
    const file = share.rootDirectoryClient.getFileClient('f');
    const times = { creationTime: new Date('2001-02-03T04:05:06Z'), lastWriteTime: new Date('2002-03-04T05:06:07Z') };
    await file.create(3, { ...times, fileAttributes: 'Hidden|Archive' as never });
    const shown = await smbclient(share.name, 'allinfo f');
    expect(shown).toMatch(/create_time: +Sat Feb {2}3 04:05:06 2001/);
    expect(shown).toMatch(/write_time: +Mon Mar {2}4 05:06:07 2002/);
    expect(shown).toMatch(/attributes: HA \(22\)/);
    await smbclient(share.name, 'setmode f +s; utimes f -1 -1 2003:04:05-06:07:08 -1');
    const seen = await file.getProperties();
    expect(seen.fileAttributes).toMatch(/Hidden.*System.*Archive/);
    expect(seen.fileLastWriteOn?.toISOString()).toBe('2003-04-05T06:07:08.000Z');
    expect(seen.fileCreatedOn?.toISOString()).toBe('2001-02-03T04:05:06.000Z');
  }, 60_000);

  it('is whole on both sides while both write', async () => {
    const share = await running.newShare();
    const names = Array.from({ length: 60 }, (_, i) => `file${i}`);
    for (const name of names) writeFileSync(join(folder, name), `smb ${name}`.repeat(500));
    const byRest = names.map(async (name) => {
      const file = share.rootDirectoryClient.getFileClient(`rest-${name}`);
      await file.create(9_000);
      await file.uploadRange(Buffer.alloc(9_000, name), 0, 9_000);
    });
    const bySmb = smbclient(share.name, 'prompt; mput file*');
    await Promise.all([...byRest, bySmb]);
    expect(await smbclient(share.name, 'prompt; mget rest-*')).not.toContain('NT_STATUS');
    for (const name of names) {
      const file = share.rootDirectoryClient.getFileClient(name);
      expect(String(await file.downloadToBuffer())).toBe(`smb ${name}`.repeat(500));
      expect(readFileSync(join(folder, `rest-${name}`)).equals(Buffer.alloc(9_000, name))).toBe(true);
    }
  }, 120_000);

  it('has its previous versions in the snapshots of the share', async () => {
    const share = await running.newShare();
    writeFileSync(join(folder, 'v'), 'old');
    await smbclient(share.name, 'put v');
    const { snapshot } = await share.createSnapshot();
    writeFileSync(join(folder, 'v'), 'newer');
    await smbclient(share.name, 'put v');
    const name = `@GMT-${snapshot!
      .slice(0, 19)
      .replace('T', '-')
      .replaceAll(/[-:]/g, '.')
      .replace(/\.(\d\d\.\d\d\.\d\d)$/, '-$1')}`;
    expect(await smbclient(share.name, 'allinfo v')).toContain(name);
    expect(await smbclient(share.name, `get ${name}\\v v.old; get v v.new`)).not.toContain('NT_STATUS');
    expect(readFileSync(join(folder, 'v.old'), 'utf8')).toBe('old');
    expect(readFileSync(join(folder, 'v.new'), 'utf8')).toBe('newer');
    expect(await smbclient(share.name, `put v ${name}\\v`)).toContain('NT_STATUS_ACCESS_DENIED');
  }, 60_000);

  it('is refused above the quota as by a disk that is full', async () => {
    const share = await running.newShare();
    await share.setQuota(1);
    await share.rootDirectoryClient.getFileClient('large').create(2 ** 30 - 2);
    writeFileSync(join(folder, 'small'), 'four');
    expect(await smbclient(share.name, 'put small')).toContain('NT_STATUS_DISK_FULL');
  }, 60_000);
});
