/** rclone, as Debian packages it, with its backend for Azure's blobs. */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ContainerSASPermissions } from '@azure/storage-blob';
import { describe, expect, it, onTestFinished } from 'vitest';
import { noRclone } from '../support/installed-tools.ts';
import { type Running, serverFor } from '../support/test-server.ts';
import { run } from './steps.mjs';

type Ended = Awaited<ReturnType<typeof run>>;

const MIB = 1024 * 1024;

describe('rclone', () => {
  // Longer than any of these commands takes: a client that never tries again would meet a closing connection.
  const running = serverFor('LMDB', { blobKeepAliveSeconds: 300 });

  it('copies a tree up and down again, whatever the names and lengths', async (context) => {
    if (noRclone) return context.skip(noRclone);
    const remote = newRemote(running);
    const { folder, files } = newTree();
    await remote.rclone('copy', folder, 'holdfast:tree');
    expect(JSON.parse((await remote.rclone('lsjson', '--recursive', '--files-only', 'holdfast:tree')).stdout)).toEqual(
      expect.arrayContaining(
        [...files].map(([name, bytes]) => expect.objectContaining({ Path: name, Size: bytes.length })),
      ),
    );
    const down = newFolder();
    await remote.rclone('copy', 'holdfast:tree', down);
    expect(contentOf(down)).toEqual(files);
  });

  it('uploads a large file in blocks', async (context) => {
    if (noRclone) return context.skip(noRclone);
    const remote = newRemote(running);
    const folder = newFolder();
    const bytes = randomBytes(20 * MIB);
    writeFileSync(join(folder, 'large'), bytes);
    await remote.rclone('copy', folder, 'holdfast:large');
    const blob = running.service.getContainerClient(remote.containerOf('large')).getBlockBlobClient('large');
    expect((await blob.getBlockList('committed')).committedBlocks).toHaveLength(5);
    expect((await blob.downloadToBuffer()).equals(bytes)).toBe(true);
    await remote.rclone('check', '--download', folder, 'holdfast:large');
  });

  it('finds with check that one byte was changed, by hash and by download', async (context) => {
    if (noRclone) return context.skip(noRclone);
    const remote = newRemote(running);
    const { folder } = newTree();
    await remote.rclone('copy', folder, 'holdfast:tree');
    await remote.rclone('check', folder, 'holdfast:tree');
    const blob = running.service.getContainerClient(remote.containerOf('tree')).getBlockBlobClient('plain.txt');
    const { metadata } = await blob.getProperties();
    await blob.upload('plaiN', 5, { metadata: metadata! });
    for (const how of ['--checkers=2', '--download']) {
      const { status, stderr } = await remote.try('check', how, folder, 'holdfast:tree');
      expect([status, stderr]).toEqual([1, expect.stringMatching(/1 differences found/)]);
    }
  });

  it('copies changed and added files with sync, and deletes removed ones', async (context) => {
    if (noRclone) return context.skip(noRclone);
    const remote = newRemote(running);
    const { folder } = newTree();
    await remote.rclone('sync', folder, 'holdfast:tree');
    writeFileSync(join(folder, 'plain.txt'), 'another text');
    writeFileSync(join(folder, 'added'), 'new');
    rmSync(join(folder, 'one'), { recursive: true });
    const { stderr } = await remote.rclone('sync', '--verbose', folder, 'holdfast:tree');
    expect(stderr).toMatch(/plain\.txt: Copied \(replaced existing\)/);
    expect(stderr).toMatch(/added: Copied \(new\)/);
    expect(stderr).toMatch(/one\/two\/three: Deleted/);
    await remote.rclone('check', folder, 'holdfast:tree');
    const again = await remote.rclone('sync', '--verbose', folder, 'holdfast:tree');
    expect(again.stderr).toContain('There was nothing to transfer');
  });

  it('copies and moves on the server', async (context) => {
    if (noRclone) return context.skip(noRclone);
    const remote = newRemote(running);
    const { folder, files } = newTree();
    await remote.rclone('copy', folder, 'holdfast:tree');
    await remote.rclone('copy', 'holdfast:tree', 'holdfast:other/below');
    await remote.rclone('move', 'holdfast:tree', 'holdfast:moved');
    expect((await remote.rclone('ls', 'holdfast:tree')).stdout).toBe('');
    await remote.rclone('check', folder, 'holdfast:moved');
    await remote.rclone('check', folder, 'holdfast:other/below');
    const size = JSON.parse((await remote.rclone('size', '--json', 'holdfast:moved')).stdout);
    expect(size).toMatchObject({
      count: files.size,
      bytes: [...files.values()].reduce((sum, at) => sum + at.length, 0),
    });
  });

  it('deletes files, folders and containers', async (context) => {
    if (noRclone) return context.skip(noRclone);
    const remote = newRemote(running);
    const { folder, files } = newTree();
    await remote.rclone('copy', folder, 'holdfast:tree');
    await remote.rclone('deletefile', 'holdfast:tree/plain.txt');
    await remote.rclone('purge', 'holdfast:tree/one');
    const left = (await remote.rclone('lsf', '--recursive', '--files-only', 'holdfast:tree')).stdout.trim().split('\n');
    expect(left.sort()).toEqual([...files.keys()].filter((name) => !/^(?:plain\.txt$|one\/)/.test(name)).sort());
    await remote.rclone('delete', 'holdfast:tree');
    expect((await remote.rclone('lsf', 'holdfast:')).stdout).toContain(`${remote.containerOf('tree')}/`);
    await remote.rclone('mkdir', 'holdfast:empty');
    await remote.rclone('rmdir', 'holdfast:empty');
    await remote.rclone('purge', 'holdfast:tree');
    expect((await remote.rclone('lsf', 'holdfast:')).stdout).not.toContain(remote.prefix);
  });

  it('works with the SAS of a container in place of a key', async (context) => {
    if (noRclone) return context.skip(noRclone);
    const container = await running.newContainer();
    const sasUrl = await container.generateSasUrl({
      permissions: ContainerSASPermissions.parse('racwdl'),
      expiresOn: new Date(Date.now() + 3_600_000),
    });
    const { folder } = newTree();
    const rclone = rcloneWith({ sas_url: sasUrl });
    const there = `holdfast:${container.containerName}`;
    await rclone('sync', folder, there);
    await rclone('check', '--download', folder, there);
    await rclone('delete', there);
    expect((await rclone('lsf', there)).stdout).toBe('');
  });
});

/** Containers of one test, by a prefix of their own. */
function newRemote({ server }: Running) {
  const prefix = `r-${randomUUID().slice(0, 8)}-`;
  const containerOf = (name: string) => `${prefix}${name}`;
  const rclone = rcloneWith({ use_emulator: 'true', endpoint: server.blobUrl });
  const own = (words: readonly string[]) => words.map((word) => word.replace(/^holdfast:(?=.)/, `holdfast:${prefix}`));
  return {
    prefix,
    containerOf,
    rclone: (...words: string[]) => rclone(...own(words)),
    try: (...words: string[]) => start({ use_emulator: 'true', endpoint: server.blobUrl }, own(words)),
  };
}

function rcloneWith(settings: Readonly<Record<string, string>>) {
  return async (...words: string[]): Promise<Ended> => {
    const ended = await start(settings, words);
    if (ended.status !== 0) throw new Error(`rclone ${words.join(' ')} ended with ${ended.status}: ${ended.stderr}`);
    return ended;
  };
}

/** Without a configuration of the user's, and without trying again: a refusal is to be seen. */
function start(settings: Readonly<Record<string, string>>, words: readonly string[]): Promise<Ended> {
  const env: Record<string, string> = {
    RCLONE_CONFIG: '/dev/null',
    RCLONE_RETRIES: '1',
    RCLONE_LOW_LEVEL_RETRIES: '1',
    RCLONE_CONFIG_HOLDFAST_TYPE: 'azureblob',
  };
  for (const [name, value] of Object.entries(settings)) env[`RCLONE_CONFIG_HOLDFAST_${name.toUpperCase()}`] = value;
  return run('rclone', words, { env, minutes: 0.4 });
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-rclone-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function newTree(): { folder: string; files: ReadonlyMap<string, Buffer> } {
  const folder = newFolder();
  const files = new Map<string, Buffer>([
    ['plain.txt', Buffer.from('plain')],
    ['empty', Buffer.alloc(0)],
    ['one/two/three', Buffer.from('3')],
    ['one/two.txt', randomBytes(100_000)],
    ['with space/a + b % c # d ? e & f = g.txt', Buffer.from('odd')],
    ['100%25/%2F', Buffer.from('percent')],
    ['ünïcode/日本語 😀', Buffer.from('unicode')],
    ["quote's (1) [2] {3} ~!@$^;,`", Buffer.from('signs')],
    ['long/'.repeat(20).concat('name'), Buffer.from('deep')],
    ['exactly 16 KiB', randomBytes(16 * 1024)],
  ]);
  for (const [name, bytes] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), bytes);
  }
  return { folder, files };
}

function contentOf(folder: string): ReadonlyMap<string, Buffer> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  return new Map(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(folder.length + 1), readFileSync(path)];
    }),
  );
}
