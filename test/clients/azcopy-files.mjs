/** Microsoft's azcopy on shares: a folder up, listed, synced, down and away, copies between shares and containers, with the SAS of a share. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BlobServiceClient, ContainerSASPermissions } from '@azure/storage-blob';
import { ShareSASPermissions, ShareServiceClient } from '@azure/storage-file-share';
import { azcopyEnvironment, isSame } from './azcopy.mjs';
import { run } from './steps.mjs';

/** @typedef {import('./clients.mjs').Client} Client */

const ODD_NAME = 'below/a b+ü%25.txt';

/** @type {Client['run']} */
export async function runAzcopyOnShares({ command, env }, { target, folder }) {
  const options = { cwd: folder, env: { ...env, ...azcopyEnvironment(folder) } };
  const files = new Map([
    ['empty', Buffer.alloc(0)],
    [ODD_NAME, Buffer.from('odd')],
    ['large', randomBytes(20 * 1024 * 1024)],
  ]);
  const [up, down, downAgain, synced] = ['up', 'down', 'again', 'synced'].map((name) => join(folder, name));
  mkdirSync(join(up, 'below'), { recursive: true });
  mkdirSync(synced);
  for (const [name, bytes] of files) writeFileSync(join(up, name), bytes);
  const service = ShareServiceClient.fromConnectionString(target.connectionString);
  const [share, other] = ['azcopy', 'other'].map((name) => service.getShareClient(name));
  for (const each of [share, other]) await each.create();
  const container = BlobServiceClient.fromConnectionString(target.connectionString).getContainerClient('blobs');
  await container.create();
  const expiresOn = new Date(Date.now() + 3_600_000);
  const permissions = ShareSASPermissions.parse('rcwdl');
  const [there, elsewhere] = [share, other].map((each) => each.generateSasUrl({ permissions, expiresOn }));
  const blobs = await container.generateSasUrl({ permissions: ContainerSASPermissions.parse('racwdlt'), expiresOn });
  const all = [...files.keys()].sort().join(', ');
  const namesIn = async (/** @type {import('@azure/storage-file-share').ShareClient} */ each) =>
    (await filesBelow(each.rootDirectoryClient)).sort().join(', ');

  /** @type {[string, string[], () => Promise<unknown>, unknown][]} */
  const steps = [
    [
      'copies up',
      ['copy', `${up}/*`, there, '--recursive', '--from-to=LocalFile', '--put-md5'],
      () => namesIn(share),
      all,
    ],
    ['lists', ['list', there, '--location=File'], () => namesIn(share), all],
    [
      'copies down',
      ['copy', there, down, '--recursive', '--from-to=FileLocal', '--check-md5=FailIfDifferent'],
      async () => isSame(join(down, 'azcopy'), files),
      true,
    ],
    [
      'copies to another share on the server, with permissions',
      ['copy', there, elsewhere, '--recursive', '--from-to=FileFile', '--preserve-permissions=true'],
      () => namesIn(other),
      all,
    ],
    [
      'copies down what was copied on the server',
      ['copy', elsewhere, downAgain, '--recursive', '--from-to=FileLocal'],
      async () => isSame(join(downAgain, 'other'), files),
      true,
    ],
    [
      'copies to a container on the server',
      ['copy', there, blobs, '--recursive', '--from-to=FileBlob'],
      async () => (await container.getBlobClient('azcopy/large').downloadToBuffer()).equals(files.get('large')),
      true,
    ],
    [
      'syncs what was deleted',
      ['sync', up, there, '--delete-destination=true', '--from-to=LocalFile'],
      () => namesIn(share),
      `${ODD_NAME}, large`,
    ],
    [
      'syncs down',
      ['sync', there, synced, '--from-to=FileLocal'],
      async () => isSame(synced, new Map([...files].filter(([name]) => name !== 'empty'))),
      true,
    ],
    ['removes', ['remove', there, '--recursive', '--from-to=FileTrash'], () => namesIn(share), ''],
  ];
  const checks = [];
  for (const [title, words, seen, expected] of steps) {
    if (title.startsWith('syncs what')) rmSync(join(up, 'empty'));
    const { status, stdout } = await run(command, words, options);
    const found = status === 0 ? await seen().catch(String) : undefined;
    checks.push(found === expected ? { title } : { title, fault: `${status}: ${found}: ${stdout.slice(-600)}` });
  }
  return checks;
}

/** @param {import('@azure/storage-file-share').ShareDirectoryClient} directory @param {string} [path] @returns {Promise<string[]>} */
async function filesBelow(directory, path = '') {
  const found = [];
  for await (const { kind, name } of directory.listFilesAndDirectories()) {
    if (kind === 'file') found.push(path + name);
    else found.push(...(await filesBelow(directory.getDirectoryClient(name), `${path}${name}/`)));
  }
  return found;
}
