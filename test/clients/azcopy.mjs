/** Microsoft's azcopy, from the PATH or built by Go: a folder up, synced, listed, down and away, with the SAS of a container. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BlobServiceClient, ContainerSASPermissions } from '@azure/storage-blob';
import { built, fetched, run } from './steps.mjs';

const MODULE = 'github.com/Azure/azure-storage-azcopy/v10@latest';

/** @type {import('./newest.mjs').Client} */
export async function azcopy({ folder, server, print }) {
  mkdirSync(join(folder, 'up', 'below'), { recursive: true });
  const env = { GOBIN: folder, AZCOPY_LOG_LOCATION: folder, AZCOPY_JOB_PLAN_LOCATION: folder };
  const options = { cwd: folder, env, minutes: 15 };
  let command = 'azcopy';
  if ((await run(command, ['--version'], options)).status !== 0) {
    await fetched('go', ['install', MODULE], options);
    command = join(folder, 'azure-storage-azcopy');
    if (!existsSync(command)) command = join(folder, 'v10');
  }
  print(`  ${(await built(command, ['--version'], options)).trim()}`);

  const files = new Map([
    ['empty', Buffer.alloc(0)],
    ['below/a b+ü%25.txt', Buffer.from('odd')],
    ['large', randomBytes(20 * 1024 * 1024)],
  ]);
  for (const [name, bytes] of files) writeFileSync(join(folder, 'up', name), bytes);
  const container = BlobServiceClient.fromConnectionString(server.connectionString).getContainerClient('azcopy');
  await container.create();
  const there = await container.generateSasUrl({
    permissions: ContainerSASPermissions.parse('racwdl'),
    expiresOn: new Date(Date.now() + 3_600_000),
  });
  const names = async () => {
    const found = [];
    for await (const { name } of container.listBlobsFlat()) found.push(name);
    return found.join(', ');
  };
  const up = join(folder, 'up');
  const down = join(folder, 'down');
  /** @type {[string, string[], () => Promise<unknown> | unknown, unknown][]} */
  const steps = [
    [
      'copies up',
      ['copy', `${up}/*`, there, '--recursive', '--from-to=LocalBlob', '--put-md5'],
      names,
      [...files.keys()].sort().join(', '),
    ],
    [
      'copies down',
      ['copy', there, down, '--recursive', '--from-to=BlobLocal'],
      () => isSame(join(down, 'azcopy'), files),
      true,
    ],
    [
      'syncs what was deleted',
      ['sync', up, there, '--delete-destination=true', '--from-to=LocalBlob'],
      names,
      'below/a b+ü%25.txt, large',
    ],
    ['removes', ['remove', there, '--recursive', '--from-to=BlobTrash'], names, ''],
  ];
  const checks = [];
  for (const [title, words, seen, expected] of steps) {
    if (title.startsWith('syncs')) rmSync(join(up, 'empty'));
    const { status, stdout } = await run(command, words, options);
    const found = status === 0 ? await seen() : undefined;
    checks.push(found === expected ? { title } : { title, fault: `${status}: ${found}: ${stdout.slice(-600)}` });
  }
  return checks;
}

/** @param {string} folder @param {ReadonlyMap<string, Buffer>} files */
function isSame(folder, files) {
  const isEqual = [...files].every(([name, bytes]) => readFileSync(join(folder, name)).equals(bytes));
  return isEqual && readdirSync(folder).length === 3;
}
