/**
 * Microsoft's azcopy: a folder up, synced, listed, down and away, copies on the server, tiers and tags, disks as page blobs and append blobs, with
 * the SAS of a container.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BlobServiceClient, ContainerSASPermissions } from '@azure/storage-blob';
import { debianLibraries, npm } from './install.mjs';
import { run } from './steps.mjs';

/** @typedef {import('./clients.mjs').Client} Client */

const MIB = 1024 * 1024;

/** @type {Client['install']} */
export async function installAzcopy() {
  const tool = await npm('azcopy', '@azure-tools/azcopy-linux', 'dist/bin/azcopy_linux_amd64');
  chmodSync(tool.command, 0o755);
  if ((await run(tool.command, ['--version'], {})).status === 0) return tool;
  const libraries = await debianLibraries(tool.folder, ['libsecret-1-0', 'libgcrypt20']);
  return { ...tool, env: { LD_LIBRARY_PATH: libraries.join(':') } };
}

/** @type {Client['run']} */
export async function runAzcopy({ command, env }, { target, folder }) {
  const options = { cwd: folder, env: { ...env, ...azcopyEnvironment(folder) } };
  const files = new Map([
    ['empty', Buffer.alloc(0)],
    ['below/a b+ü%25.txt', Buffer.from('odd')],
    ['large', randomBytes(20 * 1024 * 1024)],
  ]);
  const [up, down, downAgain, disks] = ['up', 'down', 'again', 'disks'].map((name) => join(folder, name));
  const image = Buffer.concat([randomBytes(9 * MIB), Buffer.alloc(20 * MIB), randomBytes(3 * MIB)]);
  mkdirSync(disks);
  for (const name of ['disk.vhd', 'image']) writeFileSync(join(disks, name), image);
  mkdirSync(join(up, 'below'), { recursive: true });
  for (const [name, bytes] of files) writeFileSync(join(up, name), bytes);
  const service = BlobServiceClient.fromConnectionString(target.connectionString);
  const containers = ['azcopy', 'other', 'in-place', 'copied'].map((name) => service.getContainerClient(name));
  const [container, other, typed, copied] = containers;
  for (const each of containers) await each.create();
  const [there, elsewhere, inPlace, copies] = await Promise.all(containers.map(signedUrl));
  const copy = ['copy', there, elsewhere, '--recursive', '--from-to=BlobBlob'];
  const all = [...files.keys()].sort().join(', ');
  const names = ['disk.vhd', 'pageblob', 'appendblob'];

  /** @type {[string, string[], () => Promise<unknown>, unknown][]} */
  const steps = [
    [
      'copies up',
      ['copy', `${up}/*`, there, '--recursive', '--from-to=LocalBlob', '--put-md5'],
      () => namesIn(container),
      all,
    ],
    ['lists', ['list', there, '--location=Blob'], () => namesIn(container), all],
    [
      'copies down',
      ['copy', there, down, '--recursive', '--from-to=BlobLocal', '--check-md5=FailIfDifferent'],
      async () => isSame(join(down, 'azcopy'), files),
      true,
    ],
    ['copies on the server', copy, () => namesIn(other), all],
    [
      'copies down what was copied on the server',
      ['copy', elsewhere, downAgain, '--recursive', '--from-to=BlobLocal'],
      async () => isSame(join(downAgain, 'other'), files),
      true,
    ],
    [
      'copies in blocks on the server, with a tier and tags',
      [...copy, '--block-size-mb=4', '--block-blob-tier=Cool', '--blob-tags=by=azcopy', '--include-pattern=large'],
      async () => {
        const blob = other.getBlockBlobClient('large');
        const { accessTier, tagCount } = await blob.getProperties();
        const { committedBlocks } = await blob.getBlockList('committed');
        return `${accessTier} ${tagCount} ${committedBlocks?.length}`;
      },
      'Cool 1 5',
    ],
    [
      'sets tiers and metadata',
      ['set-properties', there, '--recursive', '--from-to=BlobNone', '--block-blob-tier=Cold', '--metadata=by=azcopy'],
      async () => {
        const { accessTier, metadata } = await container.getBlobClient('large').getProperties();
        return `${accessTier} ${metadata?.by}`;
      },
      'Cold azcopy',
    ],
    [
      'syncs what was deleted',
      ['sync', up, there, '--delete-destination=true', '--from-to=LocalBlob'],
      () => namesIn(container),
      'below/a b+ü%25.txt, large',
    ],
    [
      'syncs on the server',
      ['sync', there, elsewhere.replace('?', '/synced?'), '--from-to=BlobBlob'],
      async () => (await namesIn(other)).includes('synced/large'),
      true,
    ],
    [
      'makes a page blob of a .vhd, and writes only what is not zero',
      ['copy', join(disks, 'disk.vhd'), inPlace, '--from-to=LocalBlob'],
      async () => {
        const blob = typed.getPageBlobClient('disk.vhd');
        const { pageRange } = await blob.getPageRanges();
        const { blobType, contentLength } = await blob.getProperties();
        const written = (pageRange ?? []).reduce((sum, { count }) => sum + Number(count), 0);
        return `${blobType} ${contentLength === image.length} ${written <= 16 * MIB}`;
      },
      'PageBlob true true',
    ],
    ...['PageBlob', 'AppendBlob'].map((type) => {
      const name = type.toLowerCase();
      /** @type {[string, string[], () => Promise<unknown>, unknown]} */
      const step = [
        `makes a blob of another type: ${type}`,
        ['copy', join(disks, 'image'), inPlace.replace('?', `/${name}?`), '--from-to=LocalBlob', `--blob-type=${type}`],
        async () => (await typed.getBlobClient(name).getProperties()).blobType,
        type,
      ];
      return step;
    }),
    [
      'copies page and append blobs on the server',
      ['copy', inPlace, copies, '--recursive', '--from-to=BlobBlob'],
      async () => {
        const blobs = names.map((name) => copied.getBlobClient(name));
        return (await Promise.all(blobs.map((blob) => blob.getProperties()))).map(({ blobType }) => blobType).join();
      },
      'PageBlob,PageBlob,AppendBlob',
    ],
    [
      'copies them down',
      ['copy', copies, down, '--recursive', '--from-to=BlobLocal'],
      async () => isSame(join(down, 'copied'), new Map(names.map((name) => [name, image]))),
      true,
    ],
    ['removes', ['remove', there, '--recursive', '--from-to=BlobTrash'], () => namesIn(container), ''],
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

/** What it writes besides stays in this folder. @param {string} folder */
export function azcopyEnvironment(folder) {
  return { AZCOPY_LOG_LOCATION: folder, AZCOPY_JOB_PLAN_LOCATION: folder, AZCOPY_DISABLE_SYSLOG: 'true' };
}

/** @param {import('@azure/storage-blob').ContainerClient} container */
function signedUrl(container) {
  const permissions = ContainerSASPermissions.parse('racwdlt');
  return container.generateSasUrl({ permissions, expiresOn: new Date(Date.now() + 3_600_000) });
}

/** @param {import('@azure/storage-blob').ContainerClient} container */
async function namesIn(container) {
  const found = [];
  for await (const { name } of container.listBlobsFlat()) found.push(name);
  return found.join(', ');
}

/** @param {string} folder @param {ReadonlyMap<string, Buffer>} files */
export function isSame(folder, files) {
  const isEqual = [...files].every(([name, bytes]) => readFileSync(join(folder, name)).equals(bytes));
  return isEqual && readdirSync(folder).length === files.size;
}
